"""From summaries to one coefficient vector: solve each and average, or stack and solve once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from partsketch.solve import Solution, solve_least_squares
from partsketch.summary import Summary

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Combination:
    """Coefficients of all feature columns (intercept included) and how they came about.

    Attributes
    ----------
    coefficients
        Shape (columns, targets).
    solutions
        What was solved: one per summary when averaging, a single one when stacking.
    weights
        Weights of the average; they sum to one.
    """

    coefficients: FloatArray
    solutions: tuple[Solution, ...]
    weights: FloatArray


def solve_summary(summary: Summary, features: tuple[str, ...], targets: tuple[str, ...], free_columns: int) -> Solution:
    """Solve the least squares problem that a summary stands for."""
    # Rounding of sums over n rows grows like √n; a dependent column keeps a remainder of about that size.
    rounding = 10.0 * float(np.finfo(np.float64).eps) * float(np.sqrt(max(summary.row_count, 1)))
    return solve_least_squares(
        summary.select(features + targets),
        features,
        target_count=len(targets),
        free_columns=free_columns,
        extra_rounding=rounding,
    )


def combine_average(
    summaries: Sequence[Summary], features: tuple[str, ...], targets: tuple[str, ...], free_columns: int
) -> Combination:
    """Solve every summary and average the solutions with equal weights."""
    solutions = tuple(solve_summary(summary, features, targets, free_columns) for summary in summaries)
    weights = np.full(len(solutions), 1.0 / len(solutions))
    coefficients = sum(
        (weight * solution.coefficients for weight, solution in zip(weights, solutions, strict=True)),
        start=np.zeros((len(features), len(targets))),
    )
    return Combination(coefficients, solutions, weights)


def combine_stack(
    summaries: Sequence[Summary], features: tuple[str, ...], targets: tuple[str, ...], free_columns: int
) -> Combination:
    """Stack all summaries and solve once."""
    stacked = reduce(Summary.stack, summaries)
    solution = solve_summary(stacked, features, targets, free_columns)
    return Combination(solution.coefficients, (solution,), np.ones(1))
