"""From summaries to one coefficient vector: solve each and average, or stack and solve once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solution import Solution
from partsketch.common.linalg.solve import sketch_rounding, solve_least_squares, solve_ridge
from partsketch.model.coordinates import Coordinates
from partsketch.model.methods import Method
from partsketch.model.moments import exact_moments, moments_of_sketches
from partsketch.sketches.base import get_sketch
from partsketch.summaries.summary import Summary
from partsketch.theory.ridge import ridge_penalty_from_sketch
from partsketch.theory.weights import average_weights, sketch_weights

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Regression:
    """Which columns of the summaries are regressed on which, and how.

    Attributes
    ----------
    features, targets
        Column names.
    free_columns
        How many leading features (the intercept) are neither penalised nor counted in norms.
    penalty
        Ridge penalty on all rows together, λ in ‖Xa − y‖² + λ‖a‖²; zero is least squares.
    averaging
        "equal" weights, or "inverse_variance" weights that minimise the predicted excess loss.
    coordinates
        What the columns of the summaries are measured from and in; None when they are as they came.
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]
    free_columns: int = 0
    penalty: float = 0.0
    averaging: str = "equal"
    coordinates: Coordinates | None = None

    @property
    def units(self) -> FloatArray:
        """What the features have been divided by."""
        return np.ones(len(self.features)) if self.coordinates is None else self.coordinates.unit[: len(self.features)]


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
        Weights of the average, shape (solutions, targets); they sum to one over solutions.
    """

    coefficients: FloatArray
    solutions: tuple[Solution, ...]
    weights: FloatArray


def restored(combination: Combination, regression: Regression) -> Combination:
    """Return the combination with coefficients of the columns as they are, not as the summaries have them."""
    coordinates = regression.coordinates
    if coordinates is None:
        return combination
    target_squares = coordinates.unit[coordinates.features :] ** 2
    inverse = coordinates.transformation(0) / coordinates.unit[coordinates.features]
    solutions = tuple(
        replace(
            solution,
            coefficients=coordinates.coefficients(solution.coefficients),
            residual_sums=solution.residual_sums * target_squares,
            inverse_root=inverse @ solution.inverse_root,
        )
        for solution in combination.solutions
    )
    return Combination(coordinates.coefficients(combination.coefficients), solutions, combination.weights)


def solve_summary(summary: Summary, regression: Regression, penalty: float = 0.0) -> Solution:
    """Solve the regression that a summary stands for, with this penalty on its rows."""
    matrix, low = summary.select(regression.features + regression.targets), None
    if summary.low is not None:
        low = summary.low[:, summary.places(regression.features + regression.targets)]
    random = get_sketch(summary.kind).is_random
    shape = (len(regression.targets), regression.free_columns)
    if penalty <= 0:
        locations = None if regression.coordinates is None else regression.coordinates.locations
        rounding = sketch_rounding(summary.row_count) if random else 0.0
        rows = None if random else summary.row_count
        return solve_least_squares(matrix, regression.features, *shape, rounding, low, locations, rows)
    if random:
        # A sketched ridge fit shrinks too much; the smaller penalty makes it shrink like the fit to the rows.
        features = matrix[:, : len(regression.features)] * regression.units
        penalty = ridge_penalty_from_sketch(features, penalty, regression.free_columns)
    return solve_ridge(matrix, regression.features, *shape, penalty, regression.units, low)


def combine_summaries(method: Method, summaries: Sequence[Summary], regression: Regression) -> Combination:
    """Combine summaries, whoever made them, in the way of a method."""
    if method.combines_by == "stack":
        return combine_stack(summaries, regression)
    return combine_average(summaries, regression, of_same_rows=not method.by_partition)


def combine_average(summaries: Sequence[Summary], regression: Regression, of_same_rows: bool) -> Combination:
    """Solve every summary and average the solutions.

    A partition that holds a part of the rows gets that part of a ridge penalty; summaries that are all of the same
    rows each get the whole of it.
    """
    total = sum(summary.weight_sum for summary in summaries)
    shares = [1.0 if of_same_rows else summary.weight_sum / total for summary in summaries]
    solutions = tuple(
        solve_summary(summary, regression, regression.penalty * share)
        for summary, share in zip(summaries, shares, strict=True)
    )
    weights = _weights(summaries, regression)
    coefficients = np.zeros((len(regression.features), len(regression.targets)))
    for weight, solution in zip(weights, solutions, strict=True):
        coefficients += weight * solution.coefficients
    return Combination(coefficients, solutions, weights)


def _weights(summaries: Sequence[Summary], regression: Regression) -> FloatArray:
    count = len(summaries)
    if regression.averaging == "equal" or count == 1:
        return np.full((count, len(regression.targets)), 1.0 / count)
    columns = []
    for target in regression.targets:
        if get_sketch(summaries[0].kind).is_random:
            moments = moments_of_sketches(summaries, regression.features, target, regression.free_columns)
            columns.append(sketch_weights(moments).values)
        else:
            columns.append(
                average_weights(exact_moments(summaries, regression.features, target, regression.free_columns))
            )
    return np.column_stack(columns)


def combine_stack(summaries: Sequence[Summary], regression: Regression) -> Combination:
    """Stack all summaries and solve once."""
    stacked = reduce(Summary.stack, summaries)
    solution = solve_summary(stacked, regression, regression.penalty)
    return combine_solution(solution)


def combine_solution(solution: Solution) -> Combination:
    """Take a solution as it is."""
    return Combination(solution.coefficients, (solution,), np.ones((1, solution.coefficients.shape[1])))
