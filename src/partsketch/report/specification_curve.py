"""The specification curve: one coefficient in many regressions, sorted, with its intervals and what each one holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from partsketch.common.errors import InputError
from partsketch.model.model import Model
from partsketch.report.charts.scales import linear_scale, short
from partsketch.report.small_page import picture, scrolling, write_page
from partsketch.summaries.tasks import INTERCEPT

_LEFT, _RIGHT, _TOP, _CURVE, _LINE = 150, 16, 16, 260, 18
_WIDTH = 760


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
        ends = (None, None) if lower is None or upper is None else (float(lower[place]), float(upper[place]))
        points.append(CurvePoint(name, float(model.column_coefficients[place, 0]), *ends, model.feature_names))
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
    ends = [value for point in points for value in (point.value, point.lower, point.upper) if value is not None]
    finite = [value for value in (*ends, 0.0) if np.isfinite(value)]
    y = linear_scale(finite, _CURVE, _TOP)
    height = _CURVE + 24 + _LINE * len(features)
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(points), 1)
    parts = [f'<line class="zero" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(0.0):.1f}" y2="{y(0.0):.1f}"/>']
    for value in (min(finite), 0.0, max(finite)):
        parts.append(f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{short(value)}</text>')
    for row, name in enumerate(features):
        middle = _CURVE + 24 + _LINE * row
        parts.append(f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(name[:24])}</text>')
    for number, point in enumerate(points):
        x = _LEFT + step * (number + 0.5)
        if point.lower is not None and point.upper is not None:
            low, high = max(point.lower, min(finite)), min(point.upper, max(finite))
            parts.append(f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{y(low):.1f}" y2="{y(high):.1f}"/>')
        title = f"<title>{escape(point.name)}: {point.value:.5g}</title>"
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y(point.value):.1f}" r="3">{title}</circle>')
        for row, name in enumerate(features):
            kind = "in" if name in point.features else "out"
            middle = _CURVE + 24 + _LINE * row
            parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{middle}" r="{min(4.0, step / 2.5):.1f}"/>')
    return picture(f"{column} in {len(points)} regressions", _WIDTH, height, parts)


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
    parts = [f"<p>{words}</p>", curve_svg(points, column), "<h2>All regressions</h2>", scrolling(table)]
    write_page(f"Specification curve of {column}", heading, parts, path)
