"""Tables that files with a promise are made of, with the bounds that are publicly known of them.

Clip factor, share of targets and the signal that intervals need (`sites/noisy/`) were chosen with `NORMAL`. The others
were made afterwards to see what holds elsewhere: nothing was chosen with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.problem import FloatArray

Features = Callable[[np.random.Generator, int, int], FloatArray]


@dataclass(frozen=True)
class Design:
    """Features of unit variance, and a target of unit variance that they explain in part.

    Attributes
    ----------
    name
        In a few words.
    features
        Draws so many rows and columns.
    lower, upper
        Bounds of every feature, which nearly all values keep.
    reach
        Bounds of the target, from minus this to this.
    explained
        Share of the target's variance that features explain.
    known
        Whether centre 0 and spread 1 are publicly known, or the bounds alone.
    centre
        What is publicly taken for the centre of features.
    falling
        Each coefficient half of that before it, and the signs in turn; else all alike.
    """

    name: str
    features: Features
    lower: float = -4.0
    upper: float = 4.0
    reach: float = 3.5
    explained: float = 0.5
    known: bool = True
    centre: float = 0.0
    falling: bool = False

    def draw(self, rng: np.random.Generator, rows: int, columns: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return features, target and true coefficients, the intercept first; `columns` counts the ones."""
        x = self.features(rng, rows, columns - 1)
        slopes = (-0.5) ** np.arange(columns - 1) if self.falling else np.ones(columns - 1)
        scale = math.sqrt(self.explained / variance(self.features, tuple(slopes)))
        y = x @ (scale * slopes) + math.sqrt(1 - self.explained) * rng.normal(size=rows)
        return x, y, np.append(0.0, scale * slopes)

    def bounds(self, columns: int) -> dict[str, Any]:
        """Return the public bounds of all columns."""
        ends = {"lower": self.lower, "upper": self.upper}
        feature = {**ends, "centre": self.centre, "spread": 1.0} if self.known else ends
        target = {"lower": -self.reach, "upper": self.reach} | ({"centre": 0.0, "spread": 1.0} if self.known else {})
        return {**{f"x{number}": feature for number in range(columns - 1)}, "y": target}


@lru_cache
def variance(features: Features, slopes: tuple[float, ...]) -> float:
    """Return the variance of a sum of features, by a large sample of its own: the same for every table."""
    return float(np.var(features(np.random.default_rng(0), 200_000, len(slopes)) @ np.array(slopes)))


def normal(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Independent and normal."""
    return rng.normal(size=(rows, count))


def neighbours(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Normal, correlated by 0.8 with the column before."""
    x = rng.normal(size=(rows, count))
    for column in range(1, count):
        x[:, column] = 0.8 * x[:, column - 1] + 0.6 * x[:, column]
    return x


def alike(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Normal, every two columns correlated by 0.6."""
    return np.asarray(math.sqrt(0.6) * rng.normal(size=(rows, 1)) + math.sqrt(0.4) * rng.normal(size=(rows, count)))


def heavy(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Student's with 3 degrees of freedom."""
    return np.asarray(rng.standard_t(3, size=(rows, count)) / math.sqrt(3))


def skewed(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Exponential, less their mean."""
    return np.asarray(rng.exponential(size=(rows, count)) - 1)


def rare(rng: np.random.Generator, rows: int, count: int) -> FloatArray:
    """Every other column says whether something rare is there: one row in twenty."""
    x = rng.normal(size=(rows, count))
    x[:, ::2] = ((rng.random(size=x[:, ::2].shape) < 0.05) - 0.05) / math.sqrt(0.05 * 0.95)
    return x


NORMAL = Design("normal", normal)

OTHERS = (
    Design("neighbours correlated by 0.8", neighbours),
    Design("all correlated by 0.6", alike, falling=True),
    Design("heavy tails (t, 3 degrees), bounds of 40 spreads", heavy, -40.0, 40.0, 40.0),
    Design("exponential", skewed, -1.0, 14.0, 8.0),
    Design("rare indicators, 5%", rare, -4.2, 4.4, 4.5),
    Design("features explain 2%", normal, explained=0.02),
    Design("features explain 98%", normal, explained=0.98, falling=True),
    Design("bounds twice too wide, spreads unknown", normal, -8.0, 8.0, 7.0, known=False),
    Design("centres off by a spread", normal, -5.0, 5.0, centre=1.0),
)
