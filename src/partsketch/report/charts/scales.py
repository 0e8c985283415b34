"""From numbers to places on paper: linear and logarithmic scales, their ticks, and short names for numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

#: Shares of the minimal loss below this are rounding, and not drawn: one partition loses nothing by averaging.
ROUNDING = 1e-12

#: Largest value on an axis.
_FURTHEST = 4e307
#: Shortest axis, and the least value of a logarithmic one: below, steps have no digits.
_SHORTEST = 1e-290


@dataclass(frozen=True)
class Scale:
    """Maps lowest..highest to start..end, linearly or by logarithm."""

    lowest: float
    highest: float
    start: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        low, high = self._moved(self.lowest), self._moved(self.highest)
        share = (self._moved(value) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _moved(self, value: float) -> float:
        return math.log10(max(value, _SHORTEST)) if self.logarithmic else value

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers within the scale, about `most` of them."""
        if self.logarithmic:
            return self._logarithmic_ticks(most)
        step = _round_step((self.highest - self.lowest) / max(most - 1, 1))
        first = math.ceil(self.lowest / step - 1e-9)
        last = math.floor(self.highest / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def _logarithmic_ticks(self, most: int) -> list[float]:
        low, high = math.floor(math.log10(self.lowest)), math.ceil(math.log10(self.highest))
        for digits in ((1, 2, 5), (1, 3), (1,)):
            values = [digit * 10.0**power for power in range(low, high + 1) for digit in digits]
            inside = [value for value in values if self.lowest <= value * (1 + 1e-9) and value <= self.highest]
            if 1 < len(inside) <= most + 1:
                return inside
            if len(inside) < 2:
                return replace(self, logarithmic=False).ticks(most)
        return inside[:: math.ceil(len(inside) / most)]


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def linear_scale(values: Sequence[float], start: float, end: float, margin: float = 0.04) -> Scale:
    """Return a scale that holds all values with a margin."""
    # Axes end where their lengths are still numbers, and are long enough to be cut into steps.
    low, high = (min(max(value, -_FURTHEST), _FURTHEST) for value in (min(values), max(values)))
    reach = max((high - low) * margin or abs(high) * 0.5 or 1.0, _SHORTEST)
    return Scale(low - reach, high + reach, start, end)


def logarithmic_scale(values: Sequence[float], start: float, end: float, margin: float = 1.15) -> Scale:
    """Return a logarithmic scale that holds all values, which are positive, with a margin."""
    low, high = (min(max(value, _SHORTEST), _FURTHEST) for value in (min(values), max(values)))
    return Scale(low / margin, high * margin, start, end, logarithmic=True)


def short(value: float) -> str:
    """Return a number in few characters: 1.5k, 20M, 0.003, 2e-7."""
    size = abs(value)
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= limit:
            scaled = value / (1e3 if letter == "k" else limit)
            return f"{scaled:.3g}{letter}" if abs(scaled) < 1000 else f"{value:.1e}"
    if size >= 1e-3 or size == 0:
        return f"{value:.4g}".replace("-", "−")
    return f"{value:.2g}".replace("e-0", "e-").replace("-", "−")


def percent(share: float) -> str:
    """Return a share as a percentage in few characters."""
    return f"{short(100 * share)}%"
