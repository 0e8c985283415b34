"""Pages of multi-site models: forest plots of a meta-analysis, and coefficients of all sites with random effects."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from partsketch.questions.forest import ForestLine, drawn
from partsketch.questions.meta_analysis import MetaAnalysis
from partsketch.questions.mixed_model import MixedModel
from partsketch.report.charts.scales import linear_scale, short
from partsketch.report.small_page import picture, scrolling, write_page

_LEFT, _RIGHT, _TOP, _LINE, _WIDTH = 160, 220, 10, 20, 760


def forest_figure(lines: Sequence[ForestLine], label: str) -> str:
    """Return a forest plot as SVG: squares for sites, as large as their weights, and diamonds for what is pooled."""
    shown, left_out = drawn(lines)
    ends = [end for line in shown for end in (line.lower, line.upper)]
    x = linear_scale(ends, _LEFT, _WIDTH - _RIGHT)
    bottom = _TOP + _LINE * (len(shown) + bool(left_out))
    parts = []
    for tick in x.ticks(6):
        kind = "zero" if tick == 0 else "rule"
        parts.append(f'<line class="{kind}" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{short(tick)}</text>')
    heaviest = max((line.weight for line in shown if line.weight is not None), default=1.0) or 1.0
    height = _TOP + _LINE / 2
    for number, line in enumerate(shown):
        if left_out and line.weight is None and shown[number - 1].weight is not None:
            parts.append(f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{left_out} more</text>')
            height += _LINE
        parts.append(_line(line, x(line.value), x(line.lower), x(line.upper), height, heaviest))
        height += _LINE
    return picture(label, _WIDTH, bottom + 24, parts)


def _line(line: ForestLine, value: float, lower: float, upper: float, height: float, heaviest: float) -> str:
    name = f'<text x="{_LEFT - 8}" y="{height + 4:.1f}" text-anchor="end">{escape(line.label[:22])}</text>'
    said = f"{line.value:.4g} ({line.lower:.4g} to {line.upper:.4g})"
    number = f'<text x="{_WIDTH - _RIGHT + 10}" y="{height + 4:.1f}">{said}</text>'
    if line.is_prediction:
        rule = f'<line class="chosen" x1="{lower:.1f}" x2="{upper:.1f}" y1="{height:.1f}" y2="{height:.1f}"/>'
        return name + rule + number
    if line.weight is None:
        diamond = f"M{lower:.1f},{height:.1f}L{value:.1f},{height - 6:.1f}L{upper:.1f},{height:.1f}"
        return name + f'<path class="point" d="{diamond}L{value:.1f},{height + 6:.1f}Z"/>' + number
    rule = f'<line class="bar" x1="{lower:.1f}" x2="{upper:.1f}" y1="{height:.1f}" y2="{height:.1f}"/>'
    side = 3 + 9 * (line.weight / heaviest) ** 0.5
    corner = f'x="{value - side / 2:.1f}" y="{height - side / 2:.1f}"'
    return name + rule + f'<rect class="point" {corner} width="{side:.1f}" height="{side:.1f}"/>' + number


def write_meta_analysis(found: MetaAnalysis, path: Path) -> None:
    """Write a page with the pooled values and a forest plot of every coefficient."""
    parts = [scrolling(found._repr_html_())]
    for name in found.column_names:
        parts += [
            f"<h2>{escape(name)}</h2>",
            forest_figure(found.forest_lines(name), f"Forest plot of {name}"),
            f"<p>{escape(found.sentence(name))}</p>",
        ]
    write_page(f"Meta-analysis of {found.target}", f"Meta-analysis of {found.target}", parts, path)


def write_mixed(model: MixedModel, path: Path) -> None:
    """Write a page with the tables of a model with random effects and the coefficients of all sites."""
    parts = [scrolling(model._repr_html_())]
    for name in model.random_names:
        parts += [
            f"<h2>{escape(name)}</h2>",
            forest_figure(model.forest_lines(name), f"Coefficient of {name} in every partition"),
        ]
    parts.append(
        "<p>Coefficients of the partitions are drawn towards the common one; their intervals take all else for known."
        "</p>"
    )
    heading = f"Random effects of partitions: {model.target}"
    write_page(heading, heading, parts, path)
