"""What is known of the answer of exact least squares on the same rows: intervals for it, not for the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model.agreement import require_determined, require_shared_coefficients
from partsketch.model.certificate_estimates import row_samples, stacked_sample, weighted_fit
from partsketch.model.held import MOST_COLUMNS_WITH_COVARIANCE, held_covariance
from partsketch.model.moments import FitMoments
from partsketch.model.regression import Combination, Regression
from partsketch.sketches.base import law_of_kind
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.summary import Summary
from partsketch.theory.around_exact import (
    partition_covariance_around_exact,
    sampled_covariance_around_exact,
    stacked_covariance_around_exact,
    whole_covariance_around_exact,
)
from partsketch.theory.covariance import CoefficientCovariance
from partsketch.theory.heterogeneity import Heterogeneity
from partsketch.theory.moments import pooled_moments
from partsketch.theory.stack_weights import StackChoice
from partsketch.theory.weights import sketch_weights

FloatArray = NDArray[np.float64]

#: What no test on sketches can show: differences that are smaller than their noise move the fit away all the same.
_SHARED = (
    "partitions are taken to share their coefficients, which the test on their sketches does not contradict; where "
    "they differ by less than it sees, the intervals hold less often than they say"
)


@dataclass(frozen=True, eq=False)
class AroundExact:
    """Intervals for the coefficients of exact least squares on all rows, for one target.

    Attributes
    ----------
    centre
        Middle of the intervals: the coefficients of the fit, or those of exact least squares where they are known.
    standard_errors, degrees_of_freedom
        Of the fit around them; None when unavailable. Where exact least squares is known errors are zero, and there
        are no degrees of freedom.
    covariance
        Of the coefficients, for tests; None when unavailable or when there are more than 1000 columns.
    basis
        Why they hold, a phrase.
    reason
        Why there are none; empty when there are.
    """

    centre: FloatArray
    standard_errors: FloatArray | None
    degrees_of_freedom: float | None
    covariance: FloatArray | None
    basis: str
    reason: str

    @property
    def is_known(self) -> bool:
        """Whether exact least squares is known, so that intervals have no width."""
        return self.standard_errors is not None and not self.standard_errors.any()

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}


def infer_around_exact(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    number: int,
    moments: FitMoments,
    heterogeneity: Heterogeneity | None,
) -> AroundExact:
    """Return what is known of exact least squares for target `number`; the test is that of the certificate."""
    centre = _restored(combination.coefficients[:, number], regression, number)
    nothing = np.zeros(len(centre))
    if regression.penalty > 0:
        reason = "a ridge fit is biased on purpose, and says nothing of exact least squares"
        return AroundExact(centre, None, None, None, "", reason)
    if method == "exact":
        return AroundExact(centre, nothing, None, None, "the fit is exact least squares", "")
    try:
        if method == "average":
            pooled = _restored(pooled_moments(moments.exact).solution, regression, number)
            basis = "exact least squares is known from the exact summaries; it is not this average"
            return AroundExact(pooled, nothing, None, None, basis, "")
        if method == "partition":
            require_determined(combination.solutions, averaged=True)
            require_shared_coefficients(heterogeneity, len(summaries))
        covariance, basis = _covariance(method, summaries, combination, regression, number, moments)
        matrix = raw_covariance(covariance, regression, number)
    except InputError as error:
        return AroundExact(centre, None, None, None, "", str(error).rstrip("."))
    if not np.isfinite(matrix).all():
        return AroundExact(centre, None, None, None, "", "columns are too unlike in size for doubles")
    errors = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    kept = held_covariance(matrix, errors) if len(matrix) <= MOST_COLUMNS_WITH_COVARIANCE else None
    # Sketches that hold all rows leave nothing to chance.
    freedom = covariance.degrees_of_freedom if errors.any() else None
    return AroundExact(centre, errors, freedom, kept, basis, "")


def raw_covariance(covariance: CoefficientCovariance, regression: Regression, number: int) -> FloatArray:
    """Return a covariance for the columns as they are, not as the summaries have them."""
    if regression.coordinates is None:
        return covariance.matrix
    # Columns may be of any size; whoever asks looks whether these are numbers.
    with np.errstate(over="ignore", invalid="ignore"):
        return regression.coordinates.covariance(covariance.matrix, number, covariance.root)


def _restored(coefficients: FloatArray, regression: Regression, number: int) -> FloatArray:
    """Return coefficients of one target for the columns as they are."""
    if regression.coordinates is None:
        return coefficients
    values = np.zeros((len(coefficients), len(regression.targets)))
    values[:, number] = coefficients
    return np.asarray(regression.coordinates.coefficients(values)[:, number])


def _covariance(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    number: int,
    moments: FitMoments,
) -> tuple[CoefficientCovariance, str]:
    law, count, weights = law_of_sketches(summaries), summaries[0].row_count, combination.weights[:, number]
    if method == "partition":
        estimated = regression.averaging == "inverse_variance" and len(weights) > 1
        chosen = sketch_weights(moments.estimated) if estimated else weights
        covariance = partition_covariance_around_exact(moments.estimated, chosen)
        return covariance, f"approximate: {_SHARED}"
    if method == "stack":
        return _stacked_covariance(summaries, combination.stacking[number], moments)
    if law.keeps_rows:
        samples = row_samples(summaries, moments)
        return sampled_covariance_around_exact(samples), "approximate: as the sampled rows show it"
    covariance = whole_covariance_around_exact(moments.sketches, count, law)
    exact = law.is_exact and np.isinf(law.rotation(count))
    return covariance, "exact for any data" if exact else f"approximate: {law.reason}"


def _stacked_covariance(
    summaries: Sequence[Summary], choice: StackChoice, moments: FitMoments
) -> tuple[CoefficientCovariance, str]:
    if choice.taken == "mixture":
        raise InputError(
            "partitions do not share their coefficients, and this fit is partly an average of theirs: use "
            "weighting='rows' for the stack alone"
        )
    fit = weighted_fit(summaries, moments, choice)
    if law_of_kind(summaries[0].kind).keeps_rows:
        sample = stacked_sample(row_samples(summaries, moments), fit.pooled.rank)
        return sampled_covariance_around_exact([sample]), "approximate: as the sampled rows show it"
    if np.ptp(choice.weights) > 0:
        basis = f"approximate: noise is estimated apart, and {_SHARED}"
    else:
        basis = "approximate: noise and coefficients of each partition are estimated apart"
    return stacked_covariance_around_exact(fit), basis
