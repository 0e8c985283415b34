"""What is regressed on what, the fit to one summary, and what a combination of fits is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.changed import changed
from partsketch.common.linalg.solution import Alias, Solution
from partsketch.common.linalg.solve import sketch_rounding, solve_least_squares, solve_ridge
from partsketch.common.linalg.solve_many import at_once, solve_factors
from partsketch.model.coordinates import Coordinates
from partsketch.sketches.base import get_sketch
from partsketch.summaries.summary import Summary
from partsketch.theory.ridge import ridge_penalty_from_sketch
from partsketch.theory.stack_weights import StackChoice

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
    weighting
        Weights of stacked sketches: "rows", "information", or "auto".
    """

    features: tuple[str, ...]
    targets: tuple[str, ...]
    free_columns: int = 0
    penalty: float = 0.0
    averaging: str = "equal"
    coordinates: Coordinates | None = None
    weighting: str = "rows"

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
    stacking
        For stacked sketches: how they were weighted and why, for each target.
    """

    coefficients: FloatArray
    solutions: tuple[Solution, ...]
    weights: FloatArray
    stacking: tuple[StackChoice, ...] = ()


def restored(combination: Combination, regression: Regression, inverses: bool = True) -> Combination:
    """Return the combination with coefficients of the columns as they are, not as the summaries have them.

    Inverses of many columns are large: whoever does not look at them may have them as they were.
    """
    coordinates = regression.coordinates
    if coordinates is None:
        return combination
    # Squares of huge targets are beyond doubles, and so may coefficients be; whoever states them looks.
    with np.errstate(over="ignore", invalid="ignore"):
        target_squares = coordinates.unit[coordinates.features :] ** 2
        solutions = tuple(
            changed(
                solution,
                coefficients=coordinates.coefficients(solution.coefficients),
                residual_sums=solution.residual_sums * target_squares,
                inverse_root=coordinates.inverse_root(solution.inverse_root) if inverses else solution.inverse_root,
            )
            for solution in combination.solutions
        )
        alone = combination.coefficients is combination.solutions[0].coefficients
        coefficients = solutions[0].coefficients if alone else coordinates.coefficients(combination.coefficients)
    return changed(combination, coefficients=coefficients, solutions=solutions)


def solve_summaries(
    summaries: Sequence[Summary], regression: Regression, penalties: Sequence[float]
) -> Iterator[Solution]:
    """Yield the solutions of the regressions that summaries stand for, some of them solved at once."""
    some = at_once(len(summaries[0].columns))
    for begin in range(0, len(summaries), some):
        part = [summaries[i] for i in range(begin, min(begin + some, len(summaries)))]
        for summary, penalty, solution in zip(part, penalties[begin:], _solved_at_once(part, regression), strict=False):
            good = solution is not None and penalty <= 0
            yield solution if solution is not None and good else _solve_alone(summary, regression, penalty)


def _solved_at_once(summaries: Sequence[Summary], regression: Regression) -> list[Solution | None]:
    """Return solutions of sketches without a penalty by their triangles; None where there is more to look at."""
    nothing: list[Solution | None] = [None] * len(summaries)
    simple = all(get_sketch(summary.kind).is_random and summary.low is None for summary in summaries)
    if not simple or regression.penalty > 0:
        return nothing
    columns = regression.features + regression.targets
    triangles = [summary.triangle[:, summary.places(columns)] for summary in summaries]
    if any(triangle.shape != (len(columns), len(columns)) for triangle in triangles):
        return nothing
    roundings = np.array([sketch_rounding(summary.row_count) for summary in summaries])
    return solve_factors(np.stack(triangles), len(regression.targets), regression.free_columns, roundings)


def solve_summary(summary: Summary, regression: Regression, penalty: float = 0.0) -> Solution:
    """Solve the regression that a summary stands for, with this penalty on its rows."""
    return next(solve_summaries([summary], regression, [penalty]))


def pooled_aliases(summaries: Sequence[Summary], regression: Regression) -> tuple[Alias, ...]:
    """Return the columns that depend on others in the rows of all summaries together."""
    columns = regression.features + regression.targets
    random = get_sketch(summaries[0].kind).is_random
    rows = sum(summary.row_count for summary in summaries)
    low = None
    if any(summary.low is not None for summary in summaries):
        parts = [np.zeros_like(summary.matrix) if summary.low is None else summary.low for summary in summaries]
        low = np.concatenate([part[:, summary.places(columns)] for part, summary in zip(parts, summaries, strict=True)])
    return solve_least_squares(
        np.concatenate([summary.select(columns) for summary in summaries]),
        regression.features,
        len(regression.targets),
        regression.free_columns,
        sketch_rounding(rows) if random else 0.0,
        low,
        None if regression.coordinates is None else regression.coordinates.locations,
        None if random else rows,
    ).aliased


def _solve_alone(summary: Summary, regression: Regression, penalty: float) -> Solution:
    columns = regression.features + regression.targets
    places = summary.places(columns)
    random = get_sketch(summary.kind).is_random
    shape = (len(regression.targets), regression.free_columns)
    rounding = sketch_rounding(summary.row_count) if random else 0.0
    matrix, low = summary.select(columns), None if summary.low is None else summary.low[:, places]
    if penalty <= 0:
        locations = None if regression.coordinates is None else regression.coordinates.locations
        rows = None if random else summary.row_count
        return solve_least_squares(matrix, regression.features, *shape, rounding, low, locations, rows)
    if random:
        # A sketched ridge fit shrinks too much; the smaller penalty makes it shrink like the fit to the rows.
        features = matrix[:, : len(regression.features)] * regression.units
        penalty = ridge_penalty_from_sketch(features, penalty, regression.free_columns)
    return solve_ridge(matrix, regression.features, *shape, penalty, regression.units, low)


def combine_solution(solution: Solution) -> Combination:
    """Take a solution as it is."""
    return Combination(solution.coefficients, (solution,), np.ones((1, solution.coefficients.shape[1])))
