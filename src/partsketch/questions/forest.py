"""A forest plot as text: one line per site with its interval, and the pooled values below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partsketch.common.text import plain

#: Sites that are drawn; of more the first, and how many are not.
MOST_LINES = 60


@dataclass(frozen=True)
class ForestLine:
    """A value with an interval; `weight` is the share of a site, None for what is pooled."""

    label: str
    value: float
    lower: float
    upper: float
    weight: float | None
    is_prediction: bool = False


def drawn(lines: Sequence[ForestLine]) -> tuple[list[ForestLine], int]:
    """Return the lines that are drawn, and how many sites are not."""
    sites = [line for line in lines if line.weight is not None]
    rest = [line for line in lines if line.weight is None]
    return [*sites[:MOST_LINES], *rest], max(0, len(sites) - MOST_LINES)


def forest_text(lines: Sequence[ForestLine], width: int = 100) -> str:
    """Return the plot: intervals as rules, values as signs, numbers on the right; zero is marked if within."""
    shown, left_out = drawn(lines)
    low, high = min(line.lower for line in shown), max(line.upper for line in shown)
    span = (high - low) or 1.0
    labels = [plain(line.label)[:24] for line in shown]
    numbers = [f"{line.value:.4g} ({line.lower:.4g} to {line.upper:.4g})" for line in shown]
    names, tail = max(map(len, labels)), max(map(len, numbers))
    room = max(20, width - names - tail - 4)

    def place(value: float) -> int:
        return min(room - 1, max(0, round((value - low) / span * (room - 1))))

    text = []
    for line, label, number in zip(shown, labels, numbers, strict=True):
        cells = [" "] * room
        if low <= 0 <= high:
            cells[place(0.0)] = "┊"
        for cell in range(place(line.lower), place(line.upper) + 1):
            cells[cell] = "╌" if line.is_prediction else "─"
        if not line.is_prediction:
            cells[place(line.value)] = "◆" if line.weight is None else "■"
        text.append(f"{label.ljust(names)}  {''.join(cells)}  {number}")
        if left_out and line is shown[MOST_LINES - 1]:
            text.append(f"{'…'.ljust(names)}  {left_out} more, not drawn")
    return "\n".join(text)
