"""A path of penalties as a page: the cross-validated error and the coefficients against the penalty."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from partsketch.questions.paths import Path as PenaltyPath
from partsketch.questions.table import table
from partsketch.report.charts.scales import Scale, linear_scale, logarithmic_scale, short
from partsketch.report.small_page import picture, scrolling, write_page

_LEFT, _RIGHT, _TOP, _BOTTOM, _WIDTH, _HEIGHT = 80, 110, 12, 300, 760, 340

_COLOURS = ("#0b5cad", "#b3400e", "#28782d", "#7a3e9d", "#8a6d00", "#0b7a75", "#a3195b", "#4b4b4b")
#: Coefficients that are named beside their curves.
_NAMED = 8


def write_path(path: PenaltyPath, file: Path) -> None:
    """Write a page with the error and the coefficients of a path, and its two models."""
    best, simple = path.best_alpha, path.one_standard_error_alpha
    models = [path.model(alpha) for alpha in (best, simple)]
    folds = path.fold_errors.shape[1]
    sentence = (
        f"Mean squared error on rows that were left out, over {folds} folds, with one standard error either way. Least "
        f"at a penalty of {best:.4g}; the largest penalty within one standard error of it is {simple:.4g}."
    )
    parts = [
        f"<p>{sentence}</p>",
        error_figure(path),
        "<h2>Coefficients</h2>",
        coefficient_figure(path),
        "<h2>Models</h2>",
        scrolling(table(models, ["best", "one standard error"]).to_html()),
    ]
    heading = f"{path.kind[:1].upper()}{path.kind[1:]} path of {path.target}"
    write_page(heading, heading, parts, file)


def error_figure(path: PenaltyPath) -> str:
    """Return the cross-validated error against the penalty as SVG, the largest penalty on the left."""
    errors, spreads = path.cv_errors, path.cv_standard_errors
    x = _penalties(path)
    y = linear_scale([*(errors - spreads), *(errors + spreads)], _BOTTOM, _TOP)
    parts = [_axes(x, y, "mean squared error"), _chosen(path, x)]
    for alpha, error, spread in zip(path.alphas, errors, spreads, strict=True):
        ends = f'y1="{y(error - spread):.1f}" y2="{y(error + spread):.1f}"'
        parts.append(f'<line class="bar" x1="{x(alpha):.1f}" x2="{x(alpha):.1f}" {ends}/>')
    parts.append(_curve(x, y, path.alphas, errors, 'class="curve"'))
    return picture(f"Cross-validated error of the {path.kind} path of {path.target}", _WIDTH, _HEIGHT, parts)


def coefficient_figure(path: PenaltyPath) -> str:
    """Return all coefficients against the penalty as SVG; the largest are named."""
    x = _penalties(path)
    y = linear_scale([0.0, *path.coefficients.ravel()], _BOTTOM, _TOP)
    parts = [_axes(x, y, "coefficient"), _chosen(path, x)]
    named = np.argsort(-np.abs(path.coefficients[-1]), kind="stable")[:_NAMED].tolist()
    taken: list[float] = []
    for number, name in enumerate(path.feature_names):
        place = named.index(number) if number in named else -1
        colour = _COLOURS[place % len(_COLOURS)] if place >= 0 else "#b5b5b5"
        values = path.coefficients[:, number]
        parts.append(_curve(x, y, path.alphas, values, f'class="thin" stroke="{colour}"'))
        height = y(float(values[-1]))
        # Names of curves that end together would lie on one another.
        if place >= 0 and all(abs(height - other) >= 12 for other in taken):
            taken.append(height)
            parts.append(f'<text x="{_WIDTH - _RIGHT + 6}" y="{height + 4:.1f}">{escape(name[:16])}</text>')
    return picture(f"Coefficients of the {path.kind} path of {path.target}", _WIDTH, _HEIGHT, parts)


def _penalties(path: PenaltyPath) -> Scale:
    return logarithmic_scale(path.alphas.tolist(), _WIDTH - _RIGHT, _LEFT)


def _curve(x: Scale, y: Scale, alphas: np.ndarray, values: np.ndarray, attributes: str) -> str:
    points = " ".join(f"{x(a):.1f},{y(v):.1f}" for a, v in zip(alphas.tolist(), values.tolist(), strict=True))
    return f'<polyline {attributes} points="{points}"/>'


def _chosen(path: PenaltyPath, x: Scale) -> str:
    lines = ""
    for name, alpha in (("best", path.best_alpha), ("one standard error", path.one_standard_error_alpha)):
        ends = f'x1="{x(alpha):.1f}" x2="{x(alpha):.1f}" y1="{_TOP}" y2="{_BOTTOM}"'
        lines += f'<line class="chosen" {ends}><title>{name}: {alpha:.4g}</title></line>'
    return lines


def _axes(x: Scale, y: Scale, name: str) -> str:
    right = _WIDTH - _RIGHT
    parts = []
    for tick in y.ticks(6):
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for tick in x.ticks(8):
        parts.append(f'<text x="{x(tick):.1f}" y="{_BOTTOM + 16}" text-anchor="middle">{short(tick)}</text>')
    parts.append(f'<path class="axis" d="M{_LEFT},{_TOP}V{_BOTTOM}H{right}"/>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{_BOTTOM + 34}" text-anchor="middle">penalty alpha</text>')
    middle = (_TOP + _BOTTOM) / 2
    parts.append(f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{name}</text>')
    return "".join(parts)
