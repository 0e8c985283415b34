"""Sketch files as a table: what each holds, and what it tells about the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from partsketch.common.text import plain
from partsketch.sites.combine import describe
from partsketch.sketches.base import get_sketch
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT
from partsketch.theory.information import InformationBound, sketch_information_bound
from partsketch.theory.row_removal import row_removal_divergence

#: Of the divergence that is shown.
_ORDER = 2.0

_NOT_PRIVATE = "This is not differential privacy: see docs/sites.md for what a sketch tells and what it does not."


def information_bound(summary: Summary) -> InformationBound | None:
    """Return the bound for a private Gaussian sketch; others come with the means to draw their random numbers again."""
    known = int(INTERCEPT in summary.columns)
    law = get_sketch(summary.kind).law
    # Whoever has an orthogonal sketch can make a Gaussian one of it: it tells more, and this bound does not hold.
    gaussian = law is not None and law.is_exact and math.isinf(law.rotation(1))
    if not summary.about.private or not gaussian or len(summary.columns) <= known or not summary.row_count:
        return None
    return sketch_information_bound(summary.matrix, summary.row_count, known)


def describe_sketch(name: str, summary: Summary) -> dict[str, Any]:
    """Return everything a file tells, as plain data; seeds are left to the file itself."""
    bound = information_bound(summary)
    return {
        **describe(name, summary),
        "columns": list(summary.columns),
        "targets": list(summary.about.targets),
        "weighted": summary.about.weighted,
        "information_bits_per_entry": None if bound is None else bound.bits_per_entry,
        "information_bits_in_total": None if bound is None else bound.total_bits,
    }


def row_sentences(written: Sequence[tuple[str, Summary]], leverages: Sequence[float | None]) -> list[str]:
    """Say what secret Gaussian sketches tell of the row that they tell most of; for the site alone."""
    sentences = []
    for (name, summary), leverage in zip(written, leverages, strict=False):
        if leverage is None or information_bound(summary) is None:
            continue
        divergence = row_removal_divergence(min(leverage, 1.0), summary.matrix.shape[0], _ORDER)
        told = "is not hidden at all" if math.isinf(divergence) else f"shows by a Rényi divergence of {divergence:.2g}"
        sentences.append(
            f"{name}: the row of largest leverage ({leverage:.2g}) {told} "
            f"(order {_ORDER:g}, in nats), against a file without it."
        )
    return sentences


def print_sketches(written: Sequence[tuple[str, Summary]], of_rows: Sequence[str] = ()) -> None:
    """Print one line per file, then its columns and, for private files, what they tell of a row and on average."""
    from rich import box
    from rich.table import Table

    from partsketch.common.terminal import terminal_console

    console = terminal_console()
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("file", "site", "sketch", "private"):
        table.add_column(heading)
    for heading in ("sketch rows", "columns", "rows behind it", "bytes"):
        table.add_column(heading, justify="right")
    for name, summary in written:
        rows = f"{summary.row_count:,}"
        size = summary.matrix.shape
        cells = [name, ", ".join(part.name for part in summary.parts), summary.kind, _yes(summary.about.private)]
        cells += [str(size[0]), str(size[1]), f"about {rows}" if summary.about.rounded_to > 1 else rows]
        table.add_row(*(plain(cell) for cell in [*cells, f"{len(summary.to_bytes()):,}"]))
    console.print(table)
    for columns, targets in dict.fromkeys((summary.columns, summary.about.targets) for _, summary in written):
        meant = f"; meant as target: {', '.join(targets)}" if targets else ""
        console.print(plain(f"columns: {', '.join(columns)}{meant}"))
    for sentence in of_rows:
        console.print(plain(sentence), markup=False)
    bounds = [(name, summary, bound) for name, summary in written if (bound := information_bound(summary)) is not None]
    for name, summary, bound in bounds:
        console.print(plain(_sentence(name, summary, bound)))
    unknown = [name for name, summary in written if summary.about.private and information_bound(summary) is None]
    for name in unknown:
        console.print(plain(f"{name}: no bound is known on what this kind of sketch tells of the rows."))
    if bounds or unknown:
        console.print(_NOT_PRIVATE)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _sentence(name: str, summary: Summary, bound: InformationBound) -> str:
    if summary.matrix.shape[0] >= summary.row_count:
        return f"{name}: the sketch has as many rows as the data, nothing is compressed and no bound protects the rows."
    how = "" if bound.covered_by_paper else " (columns are nearly dependent, which makes it larger)"
    return (
        f"{name}: tells at most {bound.bits_per_entry:.2g} bits per entry of the data on average, "
        f"{bound.total_bits:,.0f} bits in all{how}; sums of products are told on purpose."
    )
