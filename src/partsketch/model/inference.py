"""Standard errors, tests and intervals for the coefficients of every method, from the summaries alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model.agreement import require_determined, require_one_truth
from partsketch.model.around_exact import (
    AroundExact,
    infer_around_exact,
    raw_covariance,
)
from partsketch.model.cancellation import known_loss
from partsketch.model.certificate_estimates import weighted_fit
from partsketch.model.explained import estimated_r_squared, known_r_squared, of_averaged_fit
from partsketch.model.held import MOST_COLUMNS_WITH_COVARIANCE, held, held_covariance, root_kept
from partsketch.model.kept_intervals import KeptIntervals
from partsketch.model.methods import METHODS
from partsketch.model.moments import FitMoments
from partsketch.model.regression import Combination, Regression
from partsketch.model.wild_inference import WildInference
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.summary import Summary
from partsketch.theory.covariance import (
    CoefficientCovariance,
    average_covariance,
    partition_covariance,
    spread_covariance,
    whole_covariance,
)
from partsketch.theory.stacked_certificate import stacked_covariance
from partsketch.theory.weights import sketch_weights

if TYPE_CHECKING:
    from partsketch.model.certificate import Certificate

FloatArray = NDArray[np.float64]

#: The fits that a number may be of: averaged and stacked fits also tell of others, which they stand for.
THIS_FIT, EXACT_FIT = "this fit", "exact least squares"


@dataclass(frozen=True, eq=False)
class Inference:
    """What is needed for tests and intervals of one target's coefficients (the intercept first, if there is one).

    Attributes
    ----------
    standard_errors
        From a model of independent noise, of one variance on all rows or in each averaged partition; None without one.
    degrees_of_freedom
        Of the t distribution.
    noise_variance
        Loss of the fit named by `noise_variance_of`, divided by rows less columns: the squared residual error.
    spread_standard_errors
        From the spread of averaged fits around their average, without a noise model; None without two such fits.
    spread_degrees_of_freedom
        Number of fits less one.
    r_squared
        Share of the (centred, with an intercept) sum of squares that the fit named by `r_squared_of` explains.
    is_estimated
        Whether standard errors and r_squared are estimated from sketches.
    reason
        Why standard errors are unavailable; empty when they are available.
    noise_variance_of, r_squared_of
        Which fit the noise variance and r_squared are of: "this fit", or "exact least squares" on all rows.
    covariance
        Of the coefficients around the true ones, for tests; None without standard errors or beyond 1000 columns.
    around_exact
        The same around the answer of exact least squares on all rows.
    level_covariance
        Of the value at the centre of the features with itself and the other coefficients: for intervals of predictions,
        which the intercept of a column far from zero would spoil. None without an intercept or a covariance.
    vcov
        What the standard errors assume: "iid" noise as above; "HC0" to "HC3": a variance of its own in every row; or
        "CRV1", "CRV3", "wild": partitions, or the values of a column, are clusters.
    covariance_root
        H with HᵀH the covariance of the value at the centre (where there is an intercept) and the slopes: kept for
        tests and predictions where the covariance has lost digits of sums of coefficients; None elsewhere.
    wild, inverted
        P-values and intervals of the wild bootstrap, or of inverted tests where standard errors do not suffice.
    """

    standard_errors: FloatArray | None
    degrees_of_freedom: float | None
    noise_variance: float | None
    spread_standard_errors: FloatArray | None
    spread_degrees_of_freedom: float | None
    r_squared: float | None
    is_estimated: bool
    reason: str
    noise_variance_of: str
    r_squared_of: str
    covariance: FloatArray | None
    around_exact: AroundExact
    level_covariance: FloatArray | None = None
    vcov: str = "iid"
    covariance_root: FloatArray | None = None
    wild: WildInference | None = None
    inverted: KeptIntervals | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain data; infinite degrees of freedom are the text "inf", which JSON can hold."""
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}
        plain["around_exact"] = self.around_exact.to_dict()
        plain |= {name: kept and kept.to_dict() for name, kept in (("wild", self.wild), ("inverted", self.inverted))}
        return {name: "inf" if value == np.inf else value for name, value in plain.items()}

    def errors_of(self, kind: str) -> tuple[FloatArray, float]:
        """Return standard errors and degrees of freedom of the kind "model" or "spread", or say why there are none."""
        if kind == "spread":
            if self.spread_standard_errors is None or self.spread_degrees_of_freedom is None:
                raise InputError(
                    "The spread needs at least two fits to different rows: use method 'partition' or 'average' with "
                    "two or more partitions."
                )
            return self.spread_standard_errors, self.spread_degrees_of_freedom
        if kind != "model":
            raise InputError(f"kind is {kind!r}: choose 'model' or 'spread'.")
        if self.standard_errors is None or self.degrees_of_freedom is None:
            raise InputError(f"There are no standard errors: {self.reason}.")
        return self.standard_errors, self.degrees_of_freedom


def infer(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    number: int,
    moments: FitMoments,
    certificate: Certificate,
) -> Inference:
    """Return what is known of the coefficients of target `number`; its certificate is in units of the summaries."""
    known = (method, summaries, combination, regression, number)
    weights, averaged = combination.weights[:, number], method in ("average", "partition")
    estimated = METHODS[method].sketched or combination.solutions[0].inverse == "estimated"
    spread: CoefficientCovariance | None = None
    if averaged and len(combination.solutions) > 1:
        fits = np.stack([solution.coefficients[:, number] for solution in combination.solutions])
        spread = spread_covariance(fits, weights)
    covariance: CoefficientCovariance | None = None
    errors: FloatArray | None = None
    reason = ""
    if regression.penalty > 0:
        reason = "a ridge fit is biased on purpose, and intervals around it would miss the true coefficients"
    else:
        try:
            if method == "exact":
                covariance, errors = _of_exact(combination, summaries, regression, number, certificate.kind == "exact")
            else:
                require_determined(combination.solutions, averaged)
                if averaged and len(summaries) > 1:
                    require_one_truth(method, moments, certificate.heterogeneity)
                covariance = _covariance(*known, moments)
                errors = _restored_errors(covariance, regression, number)
        except InputError as error:
            reason = str(error).rstrip(".")
    noise = None if covariance is None else covariance.noise_variance
    r_squared = known_r_squared(combination, number)
    if noise is None and combination.stacking and certificate.minimal_loss is not None:
        rows, columns = sum(summary.row_count for summary in summaries), len(regression.features)
        noise = certificate.minimal_loss / (rows - columns) if rows > columns else None
    if averaged:
        noise, r_squared = of_averaged_fit(summaries, regression, number, certificate, METHODS[method].sketched)
    elif combination.solutions[0].total_sums is None and noise is not None:
        r_squared = estimated_r_squared(method, summaries, combination, regression, number, noise)
    return Inference(
        standard_errors=errors,
        degrees_of_freedom=None if covariance is None else covariance.degrees_of_freedom,
        noise_variance=restored_variance(noise, regression, number),
        spread_standard_errors=_restored_errors(spread, regression, number),
        spread_degrees_of_freedom=None if spread is None else spread.degrees_of_freedom,
        r_squared=r_squared,
        is_estimated=estimated,
        reason=reason,
        noise_variance_of=EXACT_FIT if method in ("stack", "whole") else THIS_FIT,
        r_squared_of=EXACT_FIT if method in ("stack", "whole") else THIS_FIT,
        covariance=None if errors is None else _kept_covariance(covariance, errors, regression, number),
        around_exact=infer_around_exact(*known, moments, certificate.heterogeneity),
        level_covariance=None if errors is None else level_covariance(covariance, regression, number),
        covariance_root=None if errors is None else _kept_root(covariance, combination, regression, number),
    )


def _kept_root(
    covariance: CoefficientCovariance | None, combination: Combination, regression: Regression, number: int
) -> FloatArray | None:
    coordinates = regression.coordinates
    if covariance is None or covariance.root is None or coordinates is None:
        return None
    lines = (coordinates.scaling(number) @ covariance.root).T
    return root_kept(lines, coordinates, combination.solutions[0].condition)


def level_covariance(
    covariance: CoefficientCovariance | None, regression: Regression, number: int
) -> FloatArray | None:
    """Return how the value at the centre varies with itself and the other coefficients."""
    if covariance is None or not regression.free_columns or len(covariance.matrix) > MOST_COLUMNS_WITH_COVARIANCE:
        return None
    row = covariance.matrix[0] / regression.units
    if regression.coordinates is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            row = row * np.square(regression.coordinates.unit[regression.coordinates.features + number])
    return row if np.isfinite(row).all() and held(float(row[0]), float(covariance.matrix[0, 0])) else None


def _kept_covariance(
    covariance: CoefficientCovariance | None, errors: FloatArray, regression: Regression, number: int
) -> FloatArray | None:
    if covariance is None or len(covariance.matrix) > MOST_COLUMNS_WITH_COVARIANCE:
        return None
    return held_covariance(raw_covariance(covariance, regression, number), errors)


def restored_variance(noise: float | None, regression: Regression, number: int) -> float | None:
    """Return the noise variance in the square of the target's unit; None where a double does not hold it."""
    coordinates = regression.coordinates
    if noise is None or coordinates is None:
        return noise
    with np.errstate(over="ignore", invalid="ignore"):
        restored = float(noise * np.square(coordinates.unit[coordinates.features + number]))
    return restored if held(restored, noise) else None


def _restored_errors(
    covariance: CoefficientCovariance | None, regression: Regression, number: int
) -> FloatArray | None:
    """Return the standard errors of coefficients of the columns as they are, not as the summaries have them."""
    if covariance is None or regression.coordinates is None:
        return None if covariance is None else covariance.standard_errors
    errors = regression.coordinates.standard_errors(covariance.matrix, number, covariance.root)
    return errors if np.isfinite(errors).all() else None


def exact_rows(combination: Combination, summaries: Sequence[Summary]) -> int:
    """Return the number of rows behind an exact fit, which may have come without summaries."""
    known = combination.solutions[0].row_count
    return summaries[0].row_count if known is None else known


def _of_exact(
    combination: Combination, summaries: Sequence[Summary], regression: Regression, number: int, is_certified: bool
) -> tuple[CoefficientCovariance, FloatArray | None]:
    """`σ̂² G⁻`, with the inverse that belongs to the solution, and its errors; of too many columns these alone."""
    solution, row_count = combination.solutions[0], exact_rows(combination, summaries)
    freedom = row_count - solution.rank
    if freedom <= 0:
        raise InputError(f"{row_count} rows leave no degrees of freedom after rank {solution.rank}.")
    variance = known_loss(combination, summaries, regression, number, is_certified) / freedom
    if solution.inverse == "unknown":
        raise InputError("Refinement without a factor computes none; fit with route='factor' to have them.")
    root, coordinates = solution.inverse_root, regression.coordinates
    if len(root) > MOST_COLUMNS_WITH_COVARIANCE and coordinates is not None:
        errors = np.sqrt(variance) * coordinates.errors_from_root(root, number)
        unknown = CoefficientCovariance(np.broadcast_to(np.nan, (len(root),) * 2), float(freedom), variance)
        return unknown, errors if np.isfinite(errors).all() else None
    covariance = CoefficientCovariance(variance * (root @ root.T), float(freedom), variance, np.sqrt(variance) * root)
    return covariance, _restored_errors(covariance, regression, number)


def _covariance(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    number: int,
    moments: FitMoments,
) -> CoefficientCovariance:
    features, weights = regression.features, combination.weights[:, number]
    if method == "average":
        return average_covariance(moments.exact, weights, features)
    if method == "partition":
        estimated = regression.averaging == "inverse_variance" and len(weights) > 1
        return partition_covariance(moments.estimated, sketch_weights(moments.estimated) if estimated else weights)
    counts, law = [summary.row_count for summary in summaries], law_of_sketches(summaries)
    if method == "whole":
        return whole_covariance(moments.sketches, counts[0], law)
    choice = combination.stacking[number]
    if choice.taken == "mixture":
        raise InputError(
            "partitions do not share their coefficients, and this fit is partly an average of theirs: there are no "
            "true coefficients for intervals to be around; use weighting='rows' for the stack alone"
        )
    return stacked_covariance(weighted_fit(summaries, moments, choice), features)
