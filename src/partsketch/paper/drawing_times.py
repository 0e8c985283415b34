"""Drawings of Figures 2 and 3: time per estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from partsketch.paper import data_sets
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
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from partsketch.paper.study import Study

#: Name, label, colour, line and marker of every curve of Figure 2; the first three do not depend on k.
_LEVEL: tuple[tuple[str, str, str, str], ...] = (
    ("ols", "OLS on all rows (NumPy lstsq)", BLACK, "-"),
    ("ols_gram", "OLS on all rows (normal equations)", GREY, "-"),
    ("whole", "β̂ᵢ Gaussian sketch of all rows", BLUE, "-"),
)
_FALLING: tuple[tuple[str, str, str, str, str], ...] = (
    ("partition", "θ̂ᵢ Gaussian sketch of a partition (NumPy)", ORANGE, "-", "o"),
    ("partition_fast", "θ̂ᵢ with partsketch's Gaussian sketch", AMBER, "--", "v"),
    ("partition_ols", "exact OLS on a partition (lstsq)", SKY, ":", "x"),
    ("partition_gram", "exact OLS on a partition (normal equations)", GREEN, "--", "D"),
    ("partition_factor", "exact OLS on a partition (partsketch)", PURPLE, ":", "^"),
)


def _milliseconds(rows: list[Row], name: str = "seconds") -> list[float]:
    return [1000 * value for value in column(rows, name)]


def _curve(axis: Axes, place: list[int], rows: list[Row], **look: Any) -> None:
    middle = _milliseconds(rows)
    bars = [
        np.maximum(0, np.subtract(middle, _milliseconds(rows, "lower_quartile"))),
        np.maximum(0, np.subtract(_milliseconds(rows, "upper_quartile"), middle)),
    ]
    axis.errorbar(place, middle, bars, elinewidth=0.8, **look)


def _time_axis(axis: Axes) -> None:
    plain_log_axis(axis)
    axis.set_ylabel("processor time per estimator, ms")


def draw_times(study: Study, wide: bool) -> Figure:
    """Time per estimator against k, both axes logarithmic: a power of k is a straight line."""
    names = study.units("figure-2")
    figure, axes = panels(len(names), wide, height=3.9)
    for axis, name in zip(axes, names, strict=True):
        rows = study.rows("figure-2", "times", name)
        counts = sorted({cast(int, row["k"]) for row in rows})
        for estimator, label, colour, dashes in _LEVEL:
            (value,) = _milliseconds([row for row in rows if row["estimator"] == estimator])
            axis.plot([counts[0], counts[-1]], [value, value], dashes, color=colour, label=label)
        for estimator, label, colour, dashes, marker in _FALLING:
            chosen = [row for row in rows if row["estimator"] == estimator]
            place = [cast(int, row["k"]) for row in chosen]
            _curve(axis, place, chosen, fmt=dashes, marker=marker, markersize=4, color=colour, label=label)
        partition_axis(axis, counts)
        _time_axis(axis)
        axis.set_title(f"{data_sets.TITLES[name]}: d = {rows[0]['features']}, m = {rows[0]['sketch_size']}")
    shared_legend(figure, axes, wide, columns=3)
    return figure


def draw_hadamard(study: Study, wide: bool) -> Figure:
    """Time at three values of n against k, and of the two sketches against n."""
    rows = study.rows("figure-3", "times")
    swept = sorted({cast(int, row["n"]) for row in rows})
    counted = sorted({cast(int, row["n"]) for row in rows if row["estimator"] == "partition"}, reverse=True)
    figure, axes = panels(len(counted) + 1, wide, columns=2)
    size = cast(int, rows[0]["sketch_size"])
    levels = (
        ("whole", "β̂ᵢ Gaussian", BLUE, "s"),
        ("srht", "β̂ᵢ SRHT", GREEN, "D"),
        ("ols", "OLS on all rows", BLACK, "x"),
    )
    for axis, n in zip(axes, counted, strict=False):
        here = [row for row in rows if row["n"] == n]
        falling = [row for row in here if row["estimator"] == "partition"]
        counts = [cast(int, row["k"]) for row in falling]
        for estimator, label, colour, _ in levels:
            (value,) = _milliseconds([row for row in here if row["estimator"] == estimator])
            axis.plot([counts[0], counts[-1]], [value, value], color=colour, label=label)
        _curve(axis, counts, falling, fmt="-o", color=ORANGE, label="θ̂ᵢ Gaussian sketch of a partition")
        limit = n / size
        if limit < counts[-1]:
            axis.axvspan(max(limit, counts[0]), counts[-1], color="#f1ece2", zorder=0)
            place: dict[str, Any] = {"transform": axis.get_xaxis_transform(), "fontsize": 7.5, "color": GREY}
            axis.text(counts[-1], 0.03, "partition has fewer rows than its sketch ", ha="right", **place)
        partition_axis(axis, counts)
        _time_axis(axis)
        axis.set_title(f"Digits at n = {n:,}, m = {size}")
    axis = axes[-1]
    for estimator, label, colour, marker in levels:
        chosen = [row for row in rows if row["estimator"] == estimator]
        _curve(axis, [cast(int, row["n"]) for row in chosen], chosen, fmt="-", marker=marker, color=colour, label=label)
    partition_axis(axis, swept, "rows n")
    _time_axis(axis)
    axis.set_title(f"The same against n, m = {size}")
    shared_legend(figure, axes, wide, columns=4)
    return figure
