"""Timing small pieces of work on a machine that may do other things."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from partsketch.paper.results import Value


@dataclass(frozen=True)
class ClockSettings:
    """Seconds spent on each point, least number of repetitions, and the seed of the sketches that are timed."""

    seconds: float
    repeats: int
    seed: int


def timed(work: Callable[[int], tuple[float, ...]], settings: ClockSettings) -> dict[str, Value]:
    """Run `work(repetition)` until the time is used, and summarise.

    `work` returns the clock's readings at its start, between sketching and solving, and at its end. The first
    repetition, which loads code and fills caches, is not counted.
    """
    work(0)
    totals: list[float] = []
    sketching: list[float] = []
    begin = time.perf_counter()
    while len(totals) < settings.repeats or (time.perf_counter() - begin < settings.seconds and len(totals) < 200):
        start, middle, stop = work(len(totals) + 1)
        totals.append(stop - start)
        sketching.append(middle - start)
    lower, median, upper = np.quantile(totals, [0.25, 0.5, 0.75])
    return {
        "repetitions": len(totals),
        "seconds": float(median),
        "lower_quartile": float(lower),
        "upper_quartile": float(upper),
        "fastest": float(np.min(totals)),
        "sketching_seconds": float(np.median(sketching)),
    }


def fitted_slope(x: list[float], y: list[float]) -> tuple[float, float]:
    """Return slope and R² of the least squares line through (log x, log y); R² is 1 when y does not vary."""
    horizontal, vertical = np.log(x), np.log(y)
    design = np.column_stack([horizontal, np.ones(len(x))])
    coefficients = np.linalg.lstsq(design, vertical)[0]
    residual = vertical - design @ coefficients
    spread = vertical - vertical.mean()
    total = float(spread @ spread)
    return float(coefficients[0]), 1.0 - float(residual @ residual) / total if total > 0 else 1.0
