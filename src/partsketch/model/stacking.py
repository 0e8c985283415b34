"""One fit to all summaries stacked: equal weights, weights by information, or a mixture with the average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.solution import Solution
from partsketch.model.moments import FitMoments, moments_of_sketches
from partsketch.model.regression import Combination, Regression, combine_solution, solve_summary
from partsketch.sketches.base import get_sketch
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.stack import stack_all
from partsketch.summaries.summary import Summary
from partsketch.theory.measured_noise import MeasuredNoise
from partsketch.theory.partition_certificate import row_shares
from partsketch.theory.stack_weights import StackChoice, choose_stack, measured_weights, weights_by_counts
from partsketch.theory.stacking import stacked_fit

FloatArray = NDArray[np.float64]

#: From this ratio of rows behind sketch rows on, equal weights lose half as much again as those by information.
_UNEVEN = 4.0


def combine_stack(summaries: Sequence[Summary], regression: Regression) -> Combination:
    """Stack all summaries and solve once; targets that ask for other weights are solved by themselves."""
    choices = stack_choices(summaries, regression)
    if all(choice.taken == "rows" for choice in choices):
        stacked = stack_all(summaries)
        return replace(combine_solution(solve_summary(stacked, regression, regression.penalty)), stacking=choices)
    solutions = []
    for target, choice in zip(regression.targets, choices, strict=True):
        alone = replace(regression, targets=(target,))
        solution = solve_summary(stack_all(_weighted(summaries, choice)), alone)
        if choice.taken != "rows":
            solution = replace(solution, coefficients=_moved(solution, summaries, alone, choice)[:, None])
        solutions.append(solution)
    return replace(combine_solution(_joined(solutions)), stacking=choices)


def _moved(solution: Solution, summaries: Sequence[Summary], regression: Regression, choice: StackChoice) -> FloatArray:
    """Return the coefficients of one target, mixed with the average or moved towards exact least squares."""
    stacked = solution.coefficients[:, 0]
    try:
        asked = (regression.features, regression.targets[0], regression.free_columns)
        if choice.taken == "mixture":
            moments = moments_of_sketches(summaries, *asked)
            average = row_shares(moments) @ moments.coefficients
            return np.asarray((1 - choice.share) * stacked + choice.share * average)
        sketches, counts = FitMoments(summaries, *asked).sketches, [summary.row_count for summary in summaries]
        step = stacked_fit(sketches, counts, law_of_sketches(summaries), choice.weights).step
    except InputError:
        # The fit has no certificate either; weights by counts need no step.
        return stacked
    return np.asarray(stacked + step) if solution.rank == len(stacked) else stacked


def _weighted(summaries: Sequence[Summary], choice: StackChoice) -> list[Summary]:
    return [
        summary if weight == 1 else _scaled(summary, float(np.sqrt(weight)))
        for summary, weight in zip(summaries, choice.weights, strict=True)
    ]


def _scaled(summary: Summary, factor: float) -> Summary:
    low = None if summary.low is None else factor * summary.low
    return replace(summary, matrix=factor * summary.matrix, low=low)


def _joined(solutions: Sequence[Solution]) -> Solution:
    """Return the solutions of several targets as one; what concerns the columns is that of the first."""
    return replace(
        solutions[0],
        coefficients=np.column_stack([solution.coefficients for solution in solutions]),
        residual_sums=np.concatenate([solution.residual_sums for solution in solutions]),
    )


def stack_choices(summaries: Sequence[Summary], regression: Regression) -> tuple[StackChoice, ...]:
    """Choose the weights of the sketches for every target; exact summaries and ridge fits have equal ones."""
    equal = np.ones(len(summaries))
    if not get_sketch(summaries[0].kind).is_random:
        return (StackChoice("rows", equal, 0.0, "exact summaries have no weights"),) * len(regression.targets)
    if regression.penalty > 0:
        reason = "a ridge fit is stacked by rows, as its penalty is"
        return (StackChoice("rows", equal, 0.0, reason),) * len(regression.targets)
    return tuple(_choice(summaries, regression, target) for target in regression.targets)


def _as_asked(summaries: Sequence[Summary]) -> str:
    """Say that equal weights were asked for, and where others are likely to lose less."""
    rates = np.array([summary.height / summary.row_count for summary in summaries])
    if rates.max() < _UNEVEN * rates.min():
        return "as asked"
    return (
        f"as asked; a sketch row stands for {1 / rates.max():.3g} to {1 / rates.min():.3g} rows, so that "
        "weighting='auto' loses less if partitions share their coefficients"
    )


def _choice(summaries: Sequence[Summary], regression: Regression, target: str) -> StackChoice:
    equal = np.ones(len(summaries))
    if regression.weighting == "rows":
        return StackChoice("rows", equal, 0.0, _as_asked(summaries))
    least, columns = min(len(summary.matrix) for summary in summaries), len(regression.features)
    measured = measured_of(summaries, target)
    try:
        moments = moments_of_sketches(summaries, regression.features, target, regression.free_columns)
        return choose_stack(moments, regression.weighting, measured)
    except InputError as error:
        why = str(error).rstrip(".")
    if least <= columns:
        short = "a single row" if least == 1 else f"{least} rows"
        why = f"sketches of {short} do not show by themselves whether partitions share {columns} coefficients"
    if regression.weighting == "auto":
        return StackChoice("rows", equal, 0.0, f"nothing can be said of weights: {why}")
    sizes, counts = [summary.height for summary in summaries], [summary.row_count for summary in summaries]
    law = law_of_sketches(summaries)
    if measured is not None:
        weights, following = measured_weights(sizes, counts, law, measured)
        reason = f"as asked, by counts of rows and noise measured on them: {why}"
        return StackChoice("information", weights, 0.0, reason, None, following, measured)
    reason = f"as asked, by counts of rows alone: {why}"
    return StackChoice("information", weights_by_counts(sizes, counts, law), 0.0, reason)


def measured_of(summaries: Sequence[Summary], target: str) -> MeasuredNoise | None:
    """Return the noise of a target as all partitions measured it on this regression; None where one did not."""
    found = [one for summary in summaries for one in summary.about.noise if one.target == target]
    if len(found) < len(summaries):
        return None
    return MeasuredNoise([one.residual_sum for one in found], [one.freedom for one in found])
