"""Measures digits and coverage; everything is compared with least squares in rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from tests.judge import digits_of, judge
from tests.nist import POWERS, certified

from benchmarks.accuracy.contestants import TOOLS, Answer, answer_of
from benchmarks.accuracy.designs import DESIGNS
from benchmarks.accuracy.intervals import coverage
from benchmarks.coverage import Coverage, coverage_rows, other_rows
from benchmarks.coverage_diamonds import diamond_rows
from benchmarks.coverage_fits import fit_rows
from benchmarks.coverage_shapes import shape_rows
from benchmarks.coverage_whole import Rate, error_rows, rejection_rows, sample_rows, stack_rows, whole_rows
from benchmarks.problem import FloatArray

#: No more digits are told apart: float64 has not quite sixteen.
MOST_DIGITS = 15.5


def run(quick: bool) -> dict[str, Any]:
    """Return the digits of every tool on every data set and design, and how often intervals and certificates hold."""
    found: dict[str, Any] = {"nist": _nist(), "designs": _designs(), "intervals": coverage(10 if quick else 500)}
    return {**found, **run_parts(quick, list(COVERAGES))}


def run_parts(quick: bool, names: list[str]) -> dict[str, Any]:
    """Return digits, and how often certificates and intervals hold, for parts of both."""
    digits = {"nist": _nist, "designs": _designs}
    known = {**digits, **COVERAGES}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"unknown part {unknown[0]!r}: choose from {', '.join(known)}")
    found: dict[str, Any] = {name: measure() for name, measure in digits.items() if name in names}
    for name in names:
        if name in digits:
            continue
        draws = 20 if quick else DRAWS.get(name, 1000)
        print(f"accuracy / {name}: {draws} draws a line", flush=True)
        found[name] = [asdict(row) for row in COVERAGES[name](draws)]
    return found


#: Draws a line, 1,000 where nothing else is said: with 2,000 shares of 90% are known to 0.7 points, with 5,000 to 0.4.
#: Of samples of heavy-tailed rows one in thirty is certified.
DRAWS = {"averaged": 5000, "shapes": 400, "stacked": 2000, "samples": 2000, "hostile": 200, "diamonds": 2000}


#: What is drawn many times: certificates of every kind of fit, intervals of stacked fits, the test of partitions.
COVERAGES: dict[str, Callable[[int], Iterator[Coverage | Rate]]] = {
    "averaged": coverage_rows,
    "shapes": shape_rows,
    "inverse-variance": lambda draws: other_rows(draws, only="inverse variance"),
    "diamonds": diamond_rows,
    "stacked": stack_rows,
    "whole": whole_rows,
    "samples": sample_rows,
    "hostile": fit_rows,
    "stacked-intervals": error_rows,
    "test": rejection_rows,
}


def _nist() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in POWERS:
        data = certified(name)
        found[name] = {}
        for tool in TOOLS:
            answer = answer_of(tool, data.X, data.y, data.intercept)
            found[name][tool.name] = (
                digits_of(answer.coefficients, data.exact.coefficients) if isinstance(answer, Answer) else answer
            )
        print(f"accuracy / {name}: {found[name]['ours']}", flush=True)
    return found


def _designs() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for design in DESIGNS:
        X, y = design.make()
        exact = judge(X, y, intercept=design.intercept).fitted
        found[design.name] = {}
        for tool in TOOLS:
            answer = answer_of(tool, X, y, design.intercept)
            found[design.name][tool.name] = (
                prediction_digits(answer.predictions, exact, y) if isinstance(answer, Answer) else answer
            )
        print(f"accuracy / {design.name}: {found[design.name]['ours']}", flush=True)
    return found


def prediction_digits(predictions: FloatArray, exact: FloatArray, y: FloatArray) -> float | str:
    """Return −log₁₀ of the largest error of a prediction, in units of the target's spread."""
    if not np.isfinite(predictions).all():
        return "not finite"
    error = float(np.max(np.abs(predictions - exact)) / np.std(y))
    return min(MOST_DIGITS, -math.log10(error)) if error else MOST_DIGITS
