"""From summaries to one coefficient vector: solve each and average, or stack and solve once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model.methods import Method
from partsketch.model.moments import exact_moments, moments_of_sketches
from partsketch.model.regression import Combination, Regression, solve_summaries
from partsketch.model.stacking import combine_stack
from partsketch.sketches.base import get_sketch
from partsketch.summaries.summary import Summary
from partsketch.theory.moments import PartitionMoments, dependent_columns
from partsketch.theory.weights import average_weights, sketch_weights

FloatArray = NDArray[np.float64]

#: Columns that a message names.
_SHOWN = 5


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
    solutions = tuple(solve_summaries(summaries, regression, [regression.penalty * share for share in shares]))
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
            _require_all_columns(moments.sketches, regression.features)
            columns.append(sketch_weights(moments).values)
        else:
            factors = exact_moments(summaries, regression.features, target, regression.free_columns)
            _require_all_columns(factors, regression.features)
            columns.append(average_weights(factors))
    return np.column_stack(columns)


def _require_all_columns(parts: Sequence[PartitionMoments], features: Sequence[str]) -> None:
    """Refuse weights by variance where a partition has none for some coefficient."""
    for number, part in enumerate(parts):
        if dependent := dependent_columns(part):
            names = ", ".join(repr(features[column]) for column in dependent[:_SHOWN])
            more = f" and {len(dependent) - _SHOWN} more" if len(dependent) > _SHOWN else ""
            raise InputError(
                f"averaging='inverse_variance' needs partitions that determine every coefficient, and partition "
                f"{number} does not determine that of {names}{more}: use averaging='equal' or method='stack', or leave "
                "out these columns."
            )
