"""Drawings of Figure 1 and of the divergence heat maps: what the data sets show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from partsketch.paper import data_sets
from partsketch.paper.drawing import LABELS, STYLES, column, loss_axis, panels, partition_axis, shared_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from partsketch.paper.study import Study

#: Draws of different estimators at the same k stand side by side.
_SHIFTS = {"whole": 0.95, "partition": 1.05, "stack": 0.93, "weighted": 1.0, "orthogonal": 1.07}

#: Curves, the tables' names of them, and how they are dashed: what is approximate, or an average of draws, is.
_CURVES = {
    "whole": ("whole", "-"),
    "partition": ("partition", "-"),
    "average": ("average", "--"),
    "stack": ("stack_approximate", ":"),
    "bound": ("bound", "-."),
    "exact": ("exact", "-"),
}


def draw_losses(study: Study, wide: bool, step: str) -> Figure:
    """Excess loss against k: exact curves, and draws as median with quartiles and mean."""
    names = study.units(step)
    figure, axes = panels(len(names), wide, height=3.6)
    for axis, name in zip(axes, names, strict=True):
        _loss_panel(axis, study, step, name)
    shared_legend(figure, axes, wide, columns=4)
    return figure


def _loss_panel(axis: Axes, study: Study, step: str, name: str) -> None:
    curves = study.rows(step, "curves", name)
    counts = [cast(int, row["k"]) for row in curves]
    shown: list[float] = []
    for estimator, (key, dashes) in _CURVES.items():
        values = column(curves, key)
        shown += [value for value in values if np.isfinite(value)]
        axis.plot(counts, values, dashes, color=STYLES[estimator]["color"], label=LABELS[estimator], zorder=2)
    summaries = study.rows(step, "summaries", name)
    for estimator in _SHIFTS:
        rows = [row for row in summaries if row["estimator"] == estimator]
        if not rows:
            continue
        middle, mean = column(rows, "median"), column(rows, "mean")
        lower, upper = column(rows, "lower_quartile"), column(rows, "upper_quartile")
        shown += [*lower, *upper, *mean]
        place = [cast(int, row["k"]) * _SHIFTS[estimator] for row in rows]
        bars = [np.subtract(middle, lower), np.subtract(upper, middle)]
        look = {"color": STYLES[estimator]["color"], "zorder": 3}
        # Estimators with a curve are named by it.
        label = None if estimator in _CURVES else LABELS[estimator]
        mark = STYLES[estimator]["marker"]
        axis.errorbar(place, middle, bars, fmt=mark, elinewidth=1.1, markersize=4, label=label, **look)
        axis.plot(place, mean, "x", markersize=5, **look)
    partition_axis(axis, counts)
    loss_axis(axis, shown)
    axis.set_ylabel(f"excess loss, {data_sets.LOSS_UNITS[name]}")
    first = curves[0]
    rows_used = f"{study.rows(step, 'curves', name)[0]['rows_used']:,}"
    axis.set_title(f"{data_sets.TITLES[name]}: n = {rows_used}, d = {first['features']}, m = {first['sketch_size']}")


def draw_heat_maps(study: Study, wide: bool) -> Figure:
    """D_ij/r_j of every pair of partitions, default order above shuffled order."""
    from matplotlib.colors import LogNorm

    names = [name for name in data_sets.NAMES if f"{name}-default" in study.units("figure-8")]
    orders = ("default", "shuffled")
    grid = [(name, order) for order in orders for name in names]
    if not wide:
        grid = [(name, order) for name in names for order in orders]
    figure, axes = panels(len(grid), wide, columns=len(names), height=3.3 if wide else 2.3, narrow_columns=2)
    maps = {}
    for name, order in grid:
        rows = study.rows("figure-8", "pairs", f"{name}-{order}")
        size = max(cast(int, row["i"]) for row in rows)
        maps[name, order] = np.array(column(rows, "relative")).reshape(size, size)
    values = np.concatenate([table[table > 0] for table in maps.values()])
    norm = LogNorm(max(0.01, float(values.min())), float(values.max()))
    for axis, (name, order) in zip(axes, grid, strict=True):
        table = maps[name, order]
        image = axis.imshow(np.maximum(table, 1e-12), norm=norm, cmap="cividis")
        axis.grid(False)
        ticks = range(0, len(table), 3)
        axis.set_xticks(ticks, [str(tick + 1) for tick in ticks])
        axis.set_yticks(ticks, [str(tick + 1) for tick in ticks])
        axis.set_title(f"{data_sets.TITLES[name]}, {order} order")
        axis.set_xlabel("partition j (inverted)")
        axis.set_ylabel("partition i")
    side: dict[str, Any] = {"location": "right", "shrink": 0.8} if wide else {"location": "bottom", "aspect": 30}
    figure.colorbar(image, ax=axes, label="tr(Gᵢ Gⱼ⁺) / rank of Gⱼ  (1: alike)", **side)
    return figure
