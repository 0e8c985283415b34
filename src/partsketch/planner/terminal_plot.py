"""A small plot in characters: curves against k on logarithmic axes, where a curve says more than a table."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence

_MARKS = "●○×+◆◇△□"


def terminal_plot(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x_label: str,
    percent: bool = True,
    width: int = 60,
    height: int = 12,
) -> str:
    """Return curves as text, both axes logarithmic.

    Parameters
    ----------
    curves
        Name of each curve and its points (x, y); points that are not positive and finite are left out.
    title, x_label
        What is shown.
    percent
        Whether y is a share, to be labelled in percent.
    width, height
        Characters of the area inside the axes.

    Returns
    -------
    str
        Lines without colours; empty when there is nothing to show.
    """
    clean = {
        name: [(x, y) for x, y in points if x > 0 and y > 0 and math.isfinite(x) and math.isfinite(y)]
        for name, points in curves.items()
    }
    points = [point for curve in clean.values() for point in curve]
    if not points:
        return ""
    x_low, x_high = _range([x for x, _ in points])
    y_low, y_high = _range([y for _, y in points])
    grid = [[" "] * width for _ in range(height)]
    marks = dict(zip(clean, (_MARKS[number % len(_MARKS)] for number in range(len(clean))), strict=True))
    for name, curve in clean.items():
        for x, y in curve:
            column = round(_place(x, x_low, x_high) * (width - 1))
            row = height - 1 - round(_place(y, y_low, y_high) * (height - 1))
            # Curves that meet share a place: the first one drawn keeps it.
            if grid[row][column] == " ":
                grid[row][column] = marks[name]
    labels = {0: _label(y_high, percent), height // 2: "", height - 1: _label(y_low, percent)}
    labels[height // 2] = _label(math.sqrt(y_low) * math.sqrt(y_high), percent)
    margin = max(len(label) for label in labels.values())
    lines = [title]
    lines += [f"{labels.get(row, ''):>{margin}} │{''.join(line).rstrip()}" for row, line in enumerate(grid)]
    left, right = f"{x_low:g}", f"{x_high:g} {x_label}"
    lines.append(f"{'':>{margin}} └{'─' * width}")
    lines.append(f"{'':>{margin}}  {left}{right:>{max(1, width - len(left))}}")
    lines.append(f"{'':>{margin}}  " + "   ".join(f"{marks[name]} {name}" for name in clean if clean[name]))
    return "\n".join(lines)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    # Halves and doubles that are still numbers.
    return (low, high) if high > low * (1 + 1e-9) else (low / 2 or low, min(high * 2, sys.float_info.max))


def _place(value: float, low: float, high: float) -> float:
    # Differences of logarithms: ratios of the largest and the least double are no numbers.
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low) or 1.0)


def _label(value: float, percent: bool) -> str:
    return f"{100 * value:.2g}%" if percent else f"{value:.3g}"
