"""Drawings of the figures that the paper's text implies: theorem, divergence, gap and bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from partsketch.paper import data_sets
from partsketch.paper.designs import DESIGNS
from partsketch.paper.designs import TITLES as DESIGN_TITLES
from partsketch.paper.drawing import (
    AMBER,
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    column,
    panels,
    partition_axis,
    plain_log_axis,
    shared_legend,
)
from partsketch.paper.results import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from partsketch.paper.study import Study

_DASHES = ("-", "--", ":", "-.")


def _counts(rows: list[Row]) -> list[int]:
    return [cast(int, row["k"]) for row in rows]


def draw_theorem(study: Study, wide: bool) -> Figure:
    """B_β and B_θ as lines, averages over noise and sketches as points, and the z of every cell."""
    names = study.units("figure-4")
    figure, axes = panels(len(names) + 1, wide)
    looks = {"whole": (r"$B_\beta$", BLUE, "s", 0.96), "partition": (r"$B_\theta$", ORANGE, "o", 1.04)}
    for axis, name in zip(axes, names, strict=False):
        cells = study.rows("figure-4", "cells", name)
        sizes = sorted({cast(int, cell["sketch_size"]) for cell in cells})
        for estimator, (symbol, colour, marker, shift) in looks.items():
            for size, dashes in zip(sizes, _DASHES, strict=False):
                rows = [cell for cell in cells if cell["estimator"] == estimator and cell["sketch_size"] == size]
                counts = _counts(rows)
                axis.plot(counts, column(rows, "formula"), dashes, color=colour, label=f"{symbol}, m = {size}")
                errors = [2 * value for value in column(rows, "standard_error")]
                place = [count * shift for count in counts]
                axis.errorbar(place, column(rows, "mean"), errors, fmt=marker, color=colour, markersize=4)
        partition_axis(axis, _counts(cells))
        plain_log_axis(axis)
        axis.set_ylabel("expected excess loss, σ²")
        axis.set_title(f"{DESIGN_TITLES[name].capitalize()} (points ± 2 s.e.)".replace("I.i.d.", "i.i.d."))
    axis = axes[-1]
    start = 0
    for name in names:
        for estimator, (symbol, colour, marker, _) in looks.items():
            rows = [c for c in study.rows("figure-4", "cells", name) if c["estimator"] == estimator]
            axis.plot(range(start, start + len(rows)), column(rows, "z"), marker, color=colour, markersize=4)
            axis.text(start + len(rows) / 2, 4.9, symbol, ha="center", fontsize=9)
            start += len(rows) + 2
        middle = start - len(cells_of(study, name)) / 2 - 3
        axis.text(middle, -5.2, DESIGN_TITLES[name], ha="center", fontsize=8)
    for level, dashes in ((0, "-"), (-2, ":"), (2, ":"), (-4, "--"), (4, "--")):
        axis.axhline(level, color=GREY, linestyle=dashes, linewidth=0.8)
    axis.set_ylim(-5.7, 5.7)
    axis.set_xticks([])
    axis.set_xlabel("cell of the grid of k and m")
    axis.set_ylabel("(mean − formula) / standard error")
    axis.set_title("Distance from the formula")
    shared_legend(figure, axes, wide, columns=6)
    return figure


def cells_of(study: Study, design: str) -> list[Row]:
    """Return the cells of the grid of one design."""
    return study.rows("figure-4", "cells", design)


def draw_divergence(study: Study, wide: bool) -> Figure:
    """D/d against k beside its expectation, on synthetic and real rows, and BD against D − d."""
    averages = study.rows("figure-5", "averages")
    designs = study.rows("figure-5", "designs")
    house = study.rows("figure-5", "data")
    figure, axes = panels(3 if house else 2, wide)
    colours = {"iid": ORANGE, "heterogeneous": PURPLE}
    for name in DESIGNS:
        rows = [row for row in averages if row["design"] == name]
        errors = [2 * value for value in column(rows, "standard_error")]
        label = f"{DESIGN_TITLES[name]}: mean D/d ± 2 s.e."
        look: dict[str, Any] = {"color": colours[name], "label": label}
        if name == "iid":
            axes[0].plot(_counts(rows), column(rows, "expected_over_d"), "-", color=BLACK, label="E[D]/d, Remark 3.4")
        axes[0].errorbar(_counts(rows), column(rows, "divergence_over_d"), errors, fmt="o", **look)
    first = averages[0]
    axes[0].set_title(f"Synthetic: n = {first['n']:,}, d = {first['d']}, {first['designs']} designs")
    if house:
        for order, colour, marker in (("default", BLUE, "s"), ("shuffled", GREEN, "D")):
            rows = [row for row in house if row["order"] == order and row["rows_left_out"]]
            few = rows[0]["rows_left_out"]
            values = np.divide(column(rows, "divergence"), column(rows, "d"))
            label = f"{order}, {few} rows of highest leverage left out"
            axes[1].plot(_counts(rows), values, ":", marker=marker, fillstyle="none", color=colour, label=label)
            rows = [row for row in house if row["order"] == order and not row["rows_left_out"]]
            values = np.divide(column(rows, "divergence"), column(rows, "d"))
            axes[1].plot(_counts(rows), values, "-", marker=marker, color=colour, label=f"House, {order} order: D/d")
        expected = np.divide(column(rows, "expected_gaussian"), column(rows, "d"))
        axes[1].plot(_counts(rows), expected, "-", color=BLACK)
        axes[1].set_title("House: what makes partitions unlike")
    for axis, counts in zip(axes[:-1], (_counts(averages), _counts(house)), strict=False):
        partition_axis(axis, counts)
        plain_log_axis(axis)
        axis.set_ylabel("divergence D / d")
    axis = axes[-1]
    for rows, label, colour, marker in (
        ([row for row in designs if row["design"] == "iid"], "BD, i.i.d.", ORANGE, "o"),
        ([row for row in designs if row["design"] == "heterogeneous"], "BD, heterogeneous", PURPLE, "^"),
        (house, "BD, House", BLUE, "s"),
    ):
        known = [row for row in rows if row["burg_divergence"] is not None and row["k"] != 1]
        if not known:
            continue
        width = [float(cast(float, row.get("d", first["d"]))) for row in known]
        distance = np.subtract(column(known, "divergence"), width)
        axis.plot(distance, column(known, "burg_divergence"), marker, color=colour, alpha=0.7, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    limits = axis.get_xlim()
    axis.plot(limits, limits, "-", color=BLACK, linewidth=0.8, zorder=1)
    axis.set_xlabel("D − d")
    axis.set_ylabel("average Burg divergence BD")
    axis.set_title("BD = D − d (line: equality)")
    shared_legend(figure, axes, wide, columns=4)
    return figure


def draw_gap(study: Study, wide: bool) -> Figure:
    """Draw the printed gap, the corrected one with simulation, and the gap on the data sets."""
    rows = [row for row in study.rows("figure-5", "averages") if row["design"] == "iid"]
    counts = _counts(rows)
    names = study.units("figure-1")
    figure, axes = panels(3 if names else 2, wide)
    axes[0].plot(counts, column(rows, "gap_printed"), "-o", color=GREY, label="σ²d(F + 1) as printed")
    axes[0].set_title("As printed: F multiplies by k")
    axes[1].plot(counts, column(rows, "gap_corrected"), "-", color=BLACK, label="corrected gap")
    errors = [2 * value for value in column(rows, "gap_standard_error")]
    look: dict[str, Any] = {"fmt": "o", "color": ORANGE, "label": r"mean of $B_\beta - B_\theta$ over designs ± 2 s.e."}
    axes[1].errorbar(counts, column(rows, "gap"), errors, **look)
    axes[1].set_title(r"As it is: $B_\beta$ divides by k")
    for axis in axes[:2]:
        partition_axis(axis, counts)
        axis.axhline(0, color=GREY, linewidth=0.8)
        axis.set_ylabel(r"E[$B_\beta - B_\theta$], σ²  (above 0: θ̄ better)")
    if names:
        axis = axes[2]
        for name, colour, marker in zip(names, (BLUE, GREEN, PURPLE), ("s", "D", "^"), strict=False):
            curves = study.rows("figure-1", "curves", name)
            gap = np.divide(
                np.subtract(column(curves, "whole"), column(curves, "partition")), column(curves, "minimal_loss")
            )
            axis.plot(_counts(curves), gap, "-", marker=marker, color=colour, label=data_sets.TITLES[name])
        partition_axis(axis, [k for name in names for k in _counts(study.rows("figure-1", "curves", name))])
        axis.axhline(0, color=GREY, linewidth=0.8)
        axis.set_yscale("symlog", linthresh=1)
        axis.margins(y=0.08)
        axis.set_ylabel("exact gap β̄ − θ̄ given the data, in ℓ")
        axis.set_title("On the data sets, m = d + 2")
    shared_legend(figure, axes, wide, columns=6)
    return figure


def draw_bound(study: Study, wide: bool) -> Figure:
    """B'_θ beside B_θ and quantiles over sketches, and the ratio of the two in the limit."""
    sizes = study.rows("figure-7", "sizes")
    ratios = study.rows("figure-7", "ratios")
    figure, axes = panels(2, wide, columns=2, height=3.4)
    axis, place = axes[0], column(sizes, "sketch_size")
    first = sizes[0]
    axis.plot(place, column(sizes, "bound"), "-^", color=PURPLE, label=rf"$B'_\theta$, δ = {first['delta']}")
    axis.plot(place, column(sizes, "expected"), "-", color=BLACK, label=r"$B_\theta$")
    middle = column(sizes, "median")
    bars = [np.subtract(middle, column(sizes, "lower_quantile")), np.subtract(column(sizes, "upper_quantile"), middle)]
    label = f"median, 5% and 95% of {first['draws']} sketches"
    axis.errorbar(place, middle, bars, fmt="o", color=ORANGE, label=label, capsize=3)
    partition_axis(axis, [int(size) for size in place], "sketch rows m")
    plain_log_axis(axis)
    axis.set_ylabel("out-of-sample excess loss, σ²")
    axis.set_title(f"n = {first['n']:,}, d = {first['d']}, k = {first['k']}")
    axis = axes[1]
    steps = sorted({cast(int, row["rows_per_sketch_row"]) for row in ratios})
    for step, colour, dashes in zip(steps, (SKY, BLUE, GREEN, AMBER), _DASHES, strict=False):
        rows = [row for row in ratios if row["rows_per_sketch_row"] == step]
        look: dict[str, Any] = {"color": colour, "label": f"p/m = {step:,}", "marker": "o", "markersize": 3}
        axis.plot(column(rows, "sketch_rows_per_column"), column(rows, "ratio"), dashes, **look)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_yticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    axis.set_xlabel("sketch rows per column, m/d")
    axis.set_ylabel(r"$B'_\theta\,/\,B_\theta$")
    axis.set_title("How good a proxy (1: the same)")
    shared_legend(figure, axes, wide, columns=7)
    return figure
