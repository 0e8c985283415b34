"""The four numbers of the first screen, from saved results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Results that the numbers come from, in the order of the lines.
SOURCES = ("questions-headline", "exact-in-memory", "parquet-large", "questions")


def numbers(folder: Path) -> str:
    """Return the lines of the table, each with the command that measures it."""
    results = [json.loads((folder / f"{name}.json").read_text()) for name in SOURCES]
    makers = (_headline, _in_memory, _parquet, _clusters)
    lines = [f"| {maker(result)} | `{result['command']}` |" for maker, result in zip(makers, results, strict=True)]
    machine = results[0]["machine"]
    where = f"{machine['cores']} cores of an {machine['processor']}"
    return "\n".join(["", f"| measured on {where} | command |", "|---|---|", *lines, ""]) + "\n"


def _headline(result: Mapping[str, Any]) -> str:
    return (
        f"{result['rows']:,} rows × {result['columns']} columns in {result['groups']} groups "
        f"({result['data_bytes'] / 1e9:.1f} GB of Parquet) become {result['summaries_bytes'] / 1e6:.1f} MB in "
        f"{result['pass_seconds']:.0f} s and {result['peak_bytes'] / 1e9:.2f} GB of memory; then "
        f"{result['specifications']:,} regressions with cluster errors take **{result['ask_seconds']:.0f} s**"
    )


def _in_memory(result: Mapping[str, Any]) -> str:
    case = result["cases"]["d54"]
    contestants = case["contestants"]
    ours = contestants[case["main"]]["best_seconds"]
    beside = ", ".join(
        f"{name} {contestants[key]['best_seconds']:.2f} s"
        for key, name in (
            ("scikit-learn", "scikit-learn"),
            ("lstsq", "NumPy's lstsq"),
            ("intelex", "Intel's extension"),
        )
    )
    return f"exact fit to 1,000,000 × 54 in memory: **{ours:.3f} s** ({beside})"


def _parquet(result: Mapping[str, Any]) -> str:
    contestants = result["cases"]["file"]["contestants"]
    ours, reading = contestants["ours"], contestants["read-only-2"]
    return (
        f"exact fit to 10,000,000 × 54 in a Parquet file: **{ours['best_seconds']:.1f} s** in "
        f"{ours['peak_bytes'] / 1e9:.2f} GB of memory (only reading it with pyarrow: {reading['best_seconds']:.1f} s)"
    )


def _clusters(result: Mapping[str, Any]) -> str:
    seconds = {line["who"]: line["seconds"] for line in result["lines"] if line["what"].startswith("CRV3")}
    return (
        f"jackknife cluster errors (CRV3) of 1,000 clusters from summaries: **{seconds['partsketch']:.2g} s** "
        f"(pyfixest from the rows: {seconds['pyfixest']:.2g} s)"
    )
