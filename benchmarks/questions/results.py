"""From saved measurements to the tables of summaries and questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def parts(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the generated table of questions."""
    return {"questions": "\n".join(["", *_table(result["lines"]), "", _origin(result)]) + "\n\n"}


def headline(result: Mapping[str, Any]) -> dict[str, str]:
    """Return what the run over many rows took, in words."""
    megabytes = result["peak_bytes"] / 1e6
    words = (
        f"{result['rows']:,} rows × {result['columns']} columns in {result['groups']} groups, "
        f"{result['data_bytes'] / 1e9:.1f} GB of Parquet: one pass took {result['pass_seconds'] / 60:.2f} minutes in "
        f"{megabytes:,.0f} MB of memory and left a file of {result['summaries_bytes'] / 1e6:.2f} MB; "
        f"{result['specifications']:,} regressions with cluster errors from it took {result['ask_seconds']:.1f} s. "
        f"That was {result['pass_processor_seconds'] / 60:.2f} minutes and {result['ask_processor_seconds']:.1f} s of "
        f"processor time; others had {result['others']:.0%} of the machine meanwhile."
    )
    return {"questions-headline": f"\n{words}\n\n{_origin(result)}\n\n"}


def _origin(result: Mapping[str, Any]) -> str:
    machine = result["machine"]
    return (
        f"{result['date'][:10]}, `{result['command']}`; {machine['processor']}, {machine['cores']} cores, "
        f"{machine['memory_bytes'] / 1e9:.0f} GB; revision {result['revision']}."
    )


def _table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| what | who | best s | processor s | others | target s | reached |"
    yield "|---|---|---:|---:|---:|---:|---|"
    for line in lines:
        target = line["target"]
        reached = "" if target is None else "yes" if line["seconds"] <= target else "no"
        asked = "" if target is None else f"{target:.3g}"
        yield (
            f"| {line['what']} | {line['who']} | {line['seconds']:.4f} | {line['processor_seconds']:.4f} | "
            f"{line['others']:.0%} | {asked} | {reached} |"
        )
