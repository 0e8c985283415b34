"""The specification curve: one coefficient in many regressions, sorted, with its intervals and what each one holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from partsketch.common.errors import InputError
from partsketch.model.model import Model
from partsketch.report.charts.scales import Scale, linear_scale, short
from partsketch.report.small_page import picture, scrolling, write_page
from partsketch.summaries.tasks import INTERCEPT

_LEFT, _RIGHT, _TOP, _CURVE, _LINE = 150, 16, 16, 260, 18
_WIDTH = 760

#: Zero is shown unless it is farther from all values than so many times their spread.
_REACH = 2.0
#: Regressions that are named where the pointer is, and that have a table below.
_MOST_NAMED, _MOST_IN_TABLE = 500, 40


@dataclass(frozen=True)
class CurvePoint:
    """A coefficient in one regression; the ends are None where there is no interval."""

    name: str
    value: float
    lower: float | None
    upper: float | None
    features: tuple[str, ...]


def curve_points(models: Sequence[Model], names: Sequence[str], column: str, level: float = 0.95) -> list[CurvePoint]:
    """Return one coefficient of all models that have it, sorted by its size."""
    points = []
    for model, name in zip(models, names, strict=True):
        if column not in model.feature_names:
            continue
        place = model.column_names.index(column)
        _, _, _, lower, upper = model.inference_table(0, level)
        low, high = (None if end is None else float(end[place]) for end in (lower, upper))
        points.append(CurvePoint(name, float(model.column_coefficients[place, 0]), low, high, model.feature_names))
    if not points:
        raise InputError(f"No regression of the list has the feature {column!r}: choose one that they have.")
    return sorted(points, key=lambda point: point.value)


def most_common_feature(models: Sequence[Model]) -> str:
    """Return the feature that most of the models have, the first of them."""
    names = [name for model in models for name in model.feature_names if name != INTERCEPT]
    if not names:
        raise InputError("No regression of the list has a feature: there is no curve to draw.")
    return max(dict.fromkeys(names), key=names.count)


def curve_svg(points: Sequence[CurvePoint], column: str) -> str:
    """Return the curve as SVG: values with intervals above, which features are in below."""
    features = list(dict.fromkeys(name for point in points for name in point.features if name != column))
    y = _heights(points)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(points), 1)
    parts = []
    for tick in y.ticks(6):
        kind = "zero" if tick == 0 else "rule"
        ends = f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"'
        parts.append(f'<line class="{kind}" {ends}/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    places = [_LEFT + step * (number + 0.5) for number in range(len(points))]
    bars = "".join(_bar(x, point, y) for x, point in zip(places, points, strict=True))
    parts.append(f'<path class="bar" d="{bars}"/>')
    for x, point in zip(places, points, strict=True):
        title = f"<title>{escape(point.name)}: {point.value:.5g}</title>" if len(points) <= _MOST_NAMED else ""
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y(point.value):.1f}" r="{_size(step)}">{title}</circle>')
    for row, name in enumerate(features):
        parts += _line_of_feature(name, _CURVE + 24 + _LINE * row, places, points, _size(step))
    height = _CURVE + 24 + _LINE * len(features)
    return picture(f"{column} in {len(points)} regressions", _WIDTH, height, parts)


def _heights(points: Sequence[CurvePoint]) -> Scale:
    """Return the scale of the values and the ends of their intervals; with zero, unless it is far off."""
    ends = [value for point in points for value in (point.value, point.lower, point.upper) if value is not None]
    finite = [value for value in ends if np.isfinite(value)]
    low, high = min(finite), max(finite)
    near_zero = low - _REACH * (high - low) <= 0 <= high + _REACH * (high - low)
    return linear_scale([*finite, 0.0] if near_zero else finite, _CURVE, _TOP)


def _bar(x: float, point: CurvePoint, y: Scale) -> str:
    if point.lower is None or point.upper is None:
        return ""
    low, high = max(point.lower, y.lowest), min(point.upper, y.highest)
    return f"M{x:.1f},{y(low):.1f}V{y(high):.1f}"


def _size(step: float) -> str:
    return f"{min(4.0, max(0.5, step / 2.5)):.1f}"


def _line_of_feature(
    name: str, height: int, places: Sequence[float], points: Sequence[CurvePoint], size: str
) -> list[str]:
    """Return the name of a feature and a dot for every regression, dark where it is in."""
    parts = [f'<text x="{_LEFT - 8}" y="{height + 4}" text-anchor="end">{escape(name[:24])}</text>']
    for kind, there in (("out", False), ("in", True)):
        chosen = [x for x, point in zip(places, points, strict=True) if (name in point.features) == there]
        dots = "".join(f"M{x:.1f},{height}h0" for x in chosen)
        parts.append(f'<path class="dot {kind}" stroke-width="{2 * float(size):g}" d="{dots}"/>')
    return parts


def write_specification_curve(
    models: Sequence[Model], names: Sequence[str], column: str, path: Path, table: str, level: float = 0.95
) -> None:
    """Write a page with the curve of one coefficient and the table of all models; one file that needs nothing else."""
    points = curve_points(models, names, column, level)
    bounded = sum(point.lower is not None for point in points)
    words = (
        f"Sorted by size, with {100 * level:g}% intervals where there are any ({bounded} of {len(points)}). Dark dots "
        "below say which other features a regression has."
    )
    heading = f"The coefficient of {column} in {len(points)} regressions"
    parts = [f"<p>{words}</p>", curve_svg(points, column)]
    if len(models) <= _MOST_IN_TABLE:
        parts += ["<h2>All regressions</h2>", scrolling(table)]
    write_page(f"Specification curve of {column}", heading, parts, path)
