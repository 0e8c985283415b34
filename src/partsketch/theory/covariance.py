"""Covariance of the coefficients, and intervals from it: fixed design, one noise variance, full rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from partsketch.errors import InputError
from partsketch.theory.arguments import FloatArray, require_sketch_size, weights_for
from partsketch.theory.moments import PartitionLike, PartitionMoments, moments_of, require_full_rank
from partsketch.theory.sketch_moments import SketchMoments


@dataclass(frozen=True, eq=False)
class CoefficientCovariance:
    """Covariance of an estimator around the true coefficients.

    Attributes
    ----------
    matrix : array of shape (d, d)
        The covariance.
    degrees_of_freedom : float
        Of the t distribution for intervals.
    noise_variance : float
        The estimate of σ² behind it; not a number for the model-free variant.
    """

    matrix: FloatArray
    degrees_of_freedom: float
    noise_variance: float

    @property
    def standard_errors(self) -> FloatArray:
        """Square roots of the diagonal."""
        return np.sqrt(np.diag(self.matrix))


def confidence_intervals(coefficients: ArrayLike, covariance: CoefficientCovariance, level: float = 0.95) -> FloatArray:
    """Two-sided intervals for each true coefficient (Section 2 model).

    Parameters
    ----------
    coefficients : array of shape (d,)
        The estimate.
    covariance : CoefficientCovariance
        Its covariance.
    level : float
        Nominal coverage, strictly between 0 and 1.

    Returns
    -------
    array of shape (d, 2)
        Lower and upper ends.
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, not {level}: pass for example 0.95.")
    centre = np.asarray(coefficients, dtype=np.float64)
    reach = float(stdtrit(covariance.degrees_of_freedom, 0.5 + level / 2)) * covariance.standard_errors
    return np.column_stack([centre - reach, centre + reach])


def exact_covariance(pooled: PartitionMoments, names: Sequence[str] | None = None) -> CoefficientCovariance:
    """`σ̂² G⁻¹` of exact least squares (Section 2 model), with `σ̂² = ℓ/(n − d)`.

    Parameters
    ----------
    pooled : PartitionMoments
        Moments of all rows, of full rank d < n.
    names : sequence of str, optional
        Column names, for the message about dependent columns.

    Returns
    -------
    CoefficientCovariance
        With n − d degrees of freedom; exact for Gaussian noise.
    """
    require_full_rank(pooled, None, names)
    freedom = _residual_freedom(pooled.row_count - pooled.rank)
    variance = pooled.loss / freedom
    return CoefficientCovariance(variance * pooled.inverse_gram, freedom, variance)


def average_covariance(
    partitions: Sequence[PartitionLike], weights: ArrayLike | None = None, names: Sequence[str] | None = None
) -> CoefficientCovariance:
    """`σ̂² Σ w_i² G_i⁻¹` of the unsketched average ᾱ (proof of Claim 4.7), with `σ̂² = Σ ℓ_i/(n − kd)`.

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; every partition of full rank.
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.
    names : sequence of str, optional
        Column names, for the message about dependent columns.

    Returns
    -------
    CoefficientCovariance
        With n − kd degrees of freedom; exact for Gaussian noise.
    """
    moments = moments_of(partitions)
    shares = weights_for(len(moments), weights)
    for index, part in enumerate(moments):
        require_full_rank(part, index, names)
    freedom = _residual_freedom(sum(part.row_count - part.rank for part in moments))
    variance = sum(part.loss for part in moments) / freedom
    matrix = np.sum([share**2 * part.inverse_gram for share, part in zip(shares, moments, strict=True)], axis=0)
    return CoefficientCovariance(variance * matrix, freedom, variance)


def partition_covariances(moments: SketchMoments) -> FloatArray:
    """`σ̂² [1 + (p_i − r_i)/(m_i − r_i − 1)] Ĝ_i⁺` of each θ_i, from the sketches alone (Claim 4.5b plus the noise).

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; valid for m_i > r_i + 1. On a singular partition it is singular too.

    Returns
    -------
    array of shape (k, d, d)
        Covariance of each fit around the true coefficients, on its row space.
    """
    factors = moments.noise_variance * (1 + (moments.row_counts - moments.ranks) * moments.noise_factors)
    return np.stack([factor * root @ root.T for factor, root in zip(factors, moments.inverse_roots, strict=True)])


def partition_covariance(moments: SketchMoments, weights: ArrayLike | None = None) -> CoefficientCovariance:
    """`Σ w_i² σ̂² [1 + (p_i − d)/(m_i − d − 1)] Ĝ_i⁻¹` of θ̄, from the sketches alone (Extension of Theorem 3.3).

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; singular partitions are refused, their average is biased.
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.

    Returns
    -------
    CoefficientCovariance
        With `Σ(m_i − d)` degrees of freedom. Given the sketched features, θ̄ is Gaussian around ᾱ.
    """
    moments.require_full_rank()
    shares = weights_for(len(moments.sketches), weights)
    matrix = np.tensordot(shares**2, partition_covariances(moments), axes=1)
    return CoefficientCovariance(matrix, moments.residual_degrees_of_freedom, moments.noise_variance)


def whole_covariance(sketches: Sequence[PartitionMoments], row_count: int) -> CoefficientCovariance:
    """`σ̂² [Ĝ⁻¹ + (n − d)/(k² m) Σ A_i⁻¹]` of β̄, from its k Gaussian sketches of all rows (Theorem 3.1's proof).

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`, all of m > d + 1 rows and full rank.
    row_count : int
        Rows n behind them.

    Returns
    -------
    CoefficientCovariance
        With k(m − d) degrees of freedom.
    """
    parts = moments_of(list(sketches))
    for part in parts:
        require_full_rank(part, None)
        require_sketch_size(part.row_count, part.rank)
    k, m, d = len(parts), parts[0].row_count, parts[0].columns
    freedom = _residual_freedom(k * (m - d))
    rows = _residual_freedom(row_count - d)
    loss = sum(part.loss for part in parts) * m / freedom
    stacked = np.vstack([part.factor for part in parts])
    pooled = PartitionMoments(stacked, k * m, parts[0].free_columns, row_count)
    sampling = pooled.inverse_gram * (k * m - d - 1) / m
    sketching = np.sum([part.inverse_gram for part in parts], axis=0) * rows / (k**2 * m)
    return CoefficientCovariance(loss / rows * (sampling + sketching), freedom, loss / rows)


def spread_covariance(coefficients: ArrayLike, weights: ArrayLike | None = None) -> CoefficientCovariance:
    """Model-free covariance of an average from the spread of the averaged fits (Extension of Claim 4.4).

    `Σ w_i² (θ_i − θ̄)(θ_i − θ̄)ᵀ/(1 − Σ w_i²)`: for equal weights the sample covariance divided by k. It needs
    independent fits with one expectation, and no formula for their noise.

    Parameters
    ----------
    coefficients : array of shape (k, d)
        The fits, k ≥ 2.
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.

    Returns
    -------
    CoefficientCovariance
        With k − 1 degrees of freedom; of rank at most k − 1, so use its diagonal when k ≤ d.
    """
    fits = np.asarray(coefficients, dtype=np.float64)
    if fits.ndim != 2 or len(fits) < 2:
        raise InputError("the spread needs at least two fits as rows of coefficients: use two or more partitions.")
    shares = weights_for(len(fits), weights)
    deviations = (fits - shares @ fits) * shares[:, None]
    return CoefficientCovariance(
        deviations.T @ deviations / (1 - float(shares @ shares)), float(len(fits) - 1), float("nan")
    )


def _residual_freedom(value: float) -> float:
    if value <= 0:
        raise InputError("no rows are left to estimate the noise variance from: use more rows or fewer partitions.")
    return float(value)
