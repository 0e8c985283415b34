"""Files with a promise as a table: what is promised, of which columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partsketch.common.text import plain
from partsketch.summaries.noisy_summary import NoisySummary

_PROMISED = (
    "The promise is for one row added or removed, and holds for all that is computed from the file: see "
    "docs/privacy.md."
)


def describe_noisy(name: str, summary: NoisySummary) -> dict[str, Any]:
    """Return everything a file tells but its sums, as plain data."""
    promise = summary.promise
    return {
        "file": name,
        "sites": [summary.name],
        "sketch": "noisy_products",
        "columns": list(summary.columns),
        "targets": list(summary.about.targets),
        "rows": summary.row_count,
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "rho": promise.rho,
        "clip": promise.clip,
        "norm": promise.norm,
        "noise": promise.noise,
        "bounds": {
            column: {"lower": known.lower, "upper": known.upper, "centre": known.centre, "spread": known.spread}
            for column, known in zip(summary.columns[1:], summary.bounds, strict=True)
        },
    }


def print_noisy(written: Sequence[tuple[str, NoisySummary]], sentences: Sequence[str] = ()) -> None:
    """Print one line per file, then its columns, what is promised, and these sentences."""
    from rich import box
    from rich.table import Table

    from partsketch.common.terminal import terminal_console

    console = terminal_console()
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("file", "site"):
        table.add_column(heading)
    for heading in ("ε", "δ", "columns", "rows, clipped, with noise", "bytes"):
        table.add_column(heading, justify="right")
    for name, summary in written:
        promise = summary.promise
        cells = [name, summary.name, f"{promise.epsilon:g}", f"{promise.delta:g}", str(len(summary.columns))]
        table.add_row(*(plain(cell) for cell in [*cells, f"{summary.row_count:,}", f"{len(summary.to_bytes()):,}"]))
    console.print(table)
    for columns, targets in dict.fromkeys((summary.columns, summary.about.targets) for _, summary in written):
        meant = f"; meant as target: {', '.join(targets)}" if targets else ""
        console.print(plain(f"columns: {', '.join(columns)}{meant}"), markup=False)
    for sentence in (_PROMISED, *sentences):
        console.print(plain(sentence), markup=False)
