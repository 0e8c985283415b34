"""A square of numbers as a heat map that the keyboard can walk through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from partsketch.report.charts.scales import short

_SIDE = 360
_MARGIN = 34


def heat_map(ratios: Sequence[Sequence[float]], names: Sequence[str], title: str) -> str:
    """Return a heat map of positive ratios, 1 being neutral, as SVG; every cell carries its words.

    Warm cells are above 1, cool ones below; the stronger the further, by logarithm.
    """
    count = len(ratios)
    side = _SIDE / count
    reach = max((abs(math.log(value)) for row in ratios for value in row if value > 0), default=0.0)
    # Differences that chance alone would make should look pale: the colour is never stretched beyond a tenth.
    reach = max(reach, math.log(1.1))
    cells = []
    for i, row in enumerate(ratios):
        for j, value in enumerate(row):
            strength = abs(math.log(value)) / reach if value > 0 else 0.0
            words = f"{names[i]} seen from {names[j]}: {short(value)}"
            cells.append(
                f'<rect class="{"hot" if value > 1 else "cold"}" x="{_MARGIN + j * side:.2f}" y="{i * side:.2f}" '
                f'width="{side:.2f}" height="{side:.2f}" fill-opacity="{strength:.3f}" data-words="{escape(words)}"/>'
            )
    step = max(1, math.ceil(count / 12))
    labels = []
    for i in range(0, count, step):
        middle = (i + 0.5) * side
        labels.append(f'<text x="{_MARGIN - 6}" y="{middle + 4:.1f}" text-anchor="end">{i + 1}</text>')
        labels.append(f'<text x="{_MARGIN + middle:.1f}" y="{_SIDE + 16}" text-anchor="middle">{i + 1}</text>')
    frame = f'<rect class="frame" x="{_MARGIN}" y="0" width="{_SIDE}" height="{_SIDE}"/>'
    return (
        f'<svg class="chart heat" viewBox="0 0 {_SIDE + _MARGIN + 4} {_SIDE + 24}" role="img" data-count="{count}" '
        f'aria-label="{escape(title)}">{frame}{"".join(cells)}{"".join(labels)}'
        f'<rect class="cursor" width="{side:.2f}" height="{side:.2f}" x="-99" y="-99"/></svg>'
    )
