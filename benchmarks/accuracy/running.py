"""Measures digits and coverage; everything is compared with least squares in rational arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tests.judge import digits_of, judge
from tests.nist import POWERS, certified

from benchmarks.accuracy.contestants import TOOLS, Answer, answer_of
from benchmarks.accuracy.designs import DESIGNS
from benchmarks.accuracy.intervals import coverage
from benchmarks.problem import FloatArray

#: No more digits are told apart: float64 has not quite sixteen.
MOST_DIGITS = 15.5


def run(quick: bool) -> dict[str, Any]:
    """Return the digits of every tool on every data set and design, and the coverage of intervals."""
    nist: dict[str, dict[str, Any]] = {}
    for name in POWERS:
        data = certified(name)
        nist[name] = {}
        for tool in TOOLS:
            answer = answer_of(tool, data.X, data.y, data.intercept)
            nist[name][tool.name] = (
                digits_of(answer.coefficients, data.exact.coefficients) if isinstance(answer, Answer) else answer
            )
        print(f"accuracy / {name}: {nist[name]['ours']:.1f} digits", flush=True)
    designs: dict[str, dict[str, Any]] = {}
    for design in DESIGNS:
        X, y = design.make()
        exact = judge(X, y, intercept=design.intercept).fitted
        designs[design.name] = {}
        for tool in TOOLS:
            answer = answer_of(tool, X, y, design.intercept)
            designs[design.name][tool.name] = (
                prediction_digits(answer.predictions, exact, y) if isinstance(answer, Answer) else answer
            )
        print(f"accuracy / {design.name}: {designs[design.name]['ours']}", flush=True)
    return {"nist": nist, "designs": designs, "intervals": coverage(20 if quick else 500)}


def prediction_digits(predictions: FloatArray, exact: FloatArray, y: FloatArray) -> float | str:
    """Return −log₁₀ of the largest error of a prediction, in units of the target's spread."""
    if not np.isfinite(predictions).all():
        return "not finite"
    error = float(np.max(np.abs(predictions - exact)) / np.std(y))
    return min(MOST_DIGITS, -math.log10(error)) if error else MOST_DIGITS
