"""Line and point charts, drawn at the width of a telephone so that their words stay readable there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from partsketch.report.charts.scales import Scale, linear_scale, logarithmic_scale, short

WIDTH, HEIGHT = 420, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 14, 10, 44
_LEGEND_LINE = 18


@dataclass(frozen=True)
class Line:
    """A curve: name, points, the number of its colour and dash pattern (1 to 6), and where it becomes a guess."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int
    guessed_from: float | None = None


@dataclass(frozen=True)
class Mark:
    """A point to notice, with a name."""

    name: str
    x: float
    y: float | None
    colour: int


def line_chart(
    lines: Sequence[Line],
    marks: Sequence[Mark],
    title: str,
    x_name: str,
    y_name: str,
    y_text: Callable[[float], str] = short,
    logarithmic_x: bool = True,
) -> str:
    """Return curves over positive numbers, the height on a logarithmic scale, as SVG."""
    drawn = [line for line in lines if line.points]
    heights = [y for line in drawn for _, y in line.points] + [mark.y for mark in marks if mark.y]
    places = [x for line in drawn for x, _ in line.points] + [mark.x for mark in marks]
    x = (logarithmic_scale if logarithmic_x else linear_scale)(places, _LEFT, WIDTH - _RIGHT)
    y = logarithmic_scale(heights, HEIGHT - _BOTTOM, _TOP, 1.5)
    parts = [_axes(x, y, x_name, y_name, y_text)]
    for mark in marks:
        parts.append(
            f'<line class="now" x1="{x(mark.x):.1f}" x2="{x(mark.x):.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
        )
    for line in drawn:
        parts += _curve(line, x, y)
    for mark in marks:
        if mark.y:
            parts.append(f'<circle class="mark c{mark.colour}" cx="{x(mark.x):.1f}" cy="{y(mark.y):.1f}" r="6"/>')
    legend = [(line.name, f"line c{line.colour}") for line in drawn] + [(mark.name, "now") for mark in marks]
    keys, height = _legend(legend)
    return _picture(title, parts + keys, HEIGHT + height)


def _curve(line: Line, x: Scale, y: Scale) -> list[str]:
    def path(points: Sequence[tuple[float, float]], extra: str) -> str:
        text = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py in points)
        return f'<polyline class="line c{line.colour}{extra}" points="{text}"/>'

    border = line.guessed_from
    if border is None:
        return [path(line.points, "")]
    known = [point for point in line.points if point[0] <= border]
    guessed = known[-1:] + [point for point in line.points if point[0] > border]
    return [path(points, extra) for points, extra in ((known, ""), (guessed, " guess")) if len(points) > 1]


def point_chart(
    points: Sequence[tuple[float, float]],
    title: str,
    x_name: str,
    y_name: str,
    reference: Sequence[tuple[float, float]] = (),
) -> str:
    """Return points on linear scales, with a reference line, as SVG."""
    x = linear_scale([px for px, _ in [*points, *reference]], _LEFT, WIDTH - _RIGHT)
    y = linear_scale([py for _, py in [*points, *reference]], HEIGHT - _BOTTOM, _TOP)
    parts = [_axes(x, y, x_name, y_name, short)]
    dots = "".join(f"M{x(px):.1f},{y(py):.1f}h0" for px, py in points)
    parts.append(f'<path class="dots c1" d="{dots}"/>')
    if reference:
        text = " ".join(f"{x(px):.1f},{y(py):.1f}" for px, py in reference)
        parts.append(f'<polyline class="line c2" points="{text}"/>')
    return _picture(title, parts, HEIGHT)


def _axes(x: Scale, y: Scale, x_name: str, y_name: str, y_text: Callable[[float], str]) -> str:
    bottom = HEIGHT - _BOTTOM
    parts = []
    for tick in y.ticks(6):
        place = y(tick)
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{escape(y_text(tick))}</text>')
    for tick in x.ticks(6):
        place = x(tick)
        parts.append(f'<line class="rule" x1="{place:.1f}" x2="{place:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{place:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(short(tick))}</text>')
    parts.append(f'<path class="axis" d="M{_LEFT},{_TOP}V{bottom}H{WIDTH - _RIGHT}"/>')
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 36}" text-anchor="middle">{escape(x_name)}</text>')
    height = (_TOP + bottom) / 2
    parts.append(f'<text transform="translate(12 {height}) rotate(-90)" text-anchor="middle">{escape(y_name)}</text>')
    return "".join(parts)


def _legend(entries: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """Return keys below the plot, as many in a line as fit."""
    parts: list[str] = []
    left, line = float(_LEFT), 0
    for name, classes in entries:
        width = 38 + 6.6 * len(name)
        if left + width > WIDTH and left > _LEFT:
            left, line = float(_LEFT), line + 1
        height = HEIGHT + 6 + line * _LEGEND_LINE
        parts.append(f'<line class="{classes}" x1="{left}" x2="{left + 24}" y1="{height}" y2="{height}"/>')
        parts.append(f'<text x="{left + 30}" y="{height + 4}">{escape(name)}</text>')
        left += width
    return parts, (line + 1) * _LEGEND_LINE


def _picture(title: str, parts: Sequence[str], height: int) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
