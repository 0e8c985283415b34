"""A diagnosis as text for the terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from partsketch.common.text import plain
from partsketch.common.units import p_value_phrase, percentage
from partsketch.planner.terminal_plot import terminal_plot

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from partsketch.planner.diagnosis.results import Diagnosis

_MOST_PARTITIONS, _MOST_ROWS, _MOST_MATRIX = 40, 12, 12


def diagnosis_text(found: Diagnosis, width: int = 120) -> str:
    """Return the diagnosis as text."""
    from io import StringIO

    from partsketch.common.terminal import text_console

    file = StringIO()
    print_diagnosis(found, text_console(file, width))
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())


def print_diagnosis(found: Diagnosis, console: Console) -> None:
    """Print the diagnosis on a rich console: partitions, divergence, rows, losses, advice."""
    console.print(
        f"{plain(found.data)}: {found.row_count:,} rows, {found.columns} columns to estimate of rank {found.rank}, "
        f"condition {found.condition:.3g}, target {found.target!r}, {len(found.partitions)} partitions",
        markup=False,
    )
    console.print(_partition_table(found))
    if len(found.partitions) > _MOST_PARTITIONS:
        console.print(f"{len(found.partitions) - _MOST_PARTITIONS} more partitions: --json shows them.")
    if 1 < len(found.partitions) <= _MOST_MATRIX:
        console.print(_matrix_table(found))
    for line in _divergence_lines(found):
        console.print(line, markup=False)
    if found.influential_rows:
        console.print(_row_table(found))
        hidden = len(found.influential_rows) - _MOST_ROWS
        if hidden > 0:
            console.print(f"{hidden} more rows: --json shows them.")
    console.print(_loss_table(found))
    plot = _plot(found)
    if plot:
        console.print(plot, markup=False)
        console.print()
    for sentence in found.advice:
        console.print(f"• {plain(sentence)}", markup=False)


def _partition_table(found: Diagnosis) -> Table:
    table = _table("partition", "rows", "rank", "condition", "distance", "Burg/d", "")
    for part in found.partitions[:_MOST_PARTITIONS]:
        burg = "" if part.burg_divergence is None else f"{part.burg_divergence:.3g}"
        values = (f"{part.row_count:,}", str(part.rank), f"{part.condition:.3g}", f"{part.distance:.3g}", burg)
        table.add_row(plain(part.name), *values, "stands apart" if part.stands_apart else "")
    return table


def _matrix_table(found: Diagnosis) -> Table:
    table = _table("D_ij/d", *(plain(part.name) for part in found.partitions))
    for part, row in zip(found.partitions, found.divergence_matrix, strict=True):
        table.add_row(plain(part.name), *(f"{value / found.rank:.3g}" for value in row))
    return table


def _divergence_lines(found: Diagnosis) -> list[str]:
    beside = []
    if found.random_divergence_ratio is not None:
        beside.append(
            f"{found.random_divergence_ratio:.4g} expected of Gaussian rows in random partitions of these sizes"
        )
    if found.shuffled_divergence_ratio is not None:
        beside.append(f"{found.shuffled_divergence_ratio:.4g} for one random partitioning of these rows")
    if found.ratio_without_rows is not None:
        beside.append(f"{found.ratio_without_rows:.4g} without the rows below")
    lines = [f"D/d = {found.divergence_ratio:.4g}" + (f"; {'; '.join(beside)}" if beside else "")]
    if found.burg_divergence is not None:
        lines.append(f"Mean Burg divergence {found.burg_divergence:.4g}")
    test = found.heterogeneity
    if test is not None and test.p_value is not None:
        lines.append(
            f"Do partitions share coefficients? F = {test.statistic:.4g} with {test.degrees_of_freedom:.3g} and "
            f"{test.residual_degrees_of_freedom:.3g} degrees of freedom, {p_value_phrase(test.p_value)} (beside random "
            "partitions of the same rows)"
        )
    elif test is not None:
        lines.append(f"Do partitions share coefficients? Not tested: {test.reason}")
    return lines


def _row_table(found: Diagnosis) -> Table:
    table = _table("row", "partition", "leverage", "relative leverage", "column", "value", "deviations")
    table.columns[4].justify = "left"
    for row in found.influential_rows[:_MOST_ROWS]:
        table.add_row(
            str(row.row),
            plain(row.partition),
            f"{row.leverage:.3f}",
            f"{row.relative_leverage:.3g}",
            plain(row.column),
            f"{row.value:.4g}",
            f"{row.deviations:.3g}",
        )
    return table


def _loss_table(found: Diagnosis) -> Table:
    table = _table("method", "m", "loses", "one shuffle", "")
    for loss in found.losses:
        table.add_row(
            loss.method,
            "" if loss.sketch_size is None else str(loss.sketch_size),
            "unknown" if loss.excess is None else percentage(loss.excess),
            "" if loss.shuffled is None else percentage(loss.shuffled),
            loss.kind,
        )
    return table


def _plot(found: Diagnosis) -> str:
    if len(found.curve) < 3:
        return ""
    curves = {
        name: [(point.partitions, getattr(point, name) or math.nan) for point in found.curve]
        for name in ("partition", "whole", "stack", "average")
    }
    size = next(loss.sketch_size for loss in found.losses if loss.method == "partition")
    return terminal_plot(curves, title=f"excess loss against k, m = {size}, neighbours merged", x_label="k")


def _table(first: str, *others: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
