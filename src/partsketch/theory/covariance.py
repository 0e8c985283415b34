"""Covariance of the coefficients, and intervals from it: fixed design, full rank, one true coefficient vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import SketchLaw
from partsketch.common.special import stdtrit
from partsketch.theory.approximations import rotation_rows
from partsketch.theory.arguments import FloatArray, require_sketch_size, weights_for
from partsketch.theory.moments import PartitionLike, PartitionMoments, moments_of, require_full_rank
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.weights import SketchWeights, given_weights


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
    root : array of shape (d, r), optional
        B with B Bᵀ the matrix, where it is at hand: sums of coefficients that nearly cancel keep their digits in it.
    """

    matrix: FloatArray
    degrees_of_freedom: float
    noise_variance: float
    root: FloatArray | None = None

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
    """`Σ w_i² σ̂_i² G_i⁻¹` of the unsketched average ᾱ (proof of Claim 4.7), with `σ̂_i² = ℓ_i/(p_i − d)` of each.

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; every partition of full rank, with more rows than columns, and one true coefficient vector for all.
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.
    names : sequence of str, optional
        Column names, for the message about dependent columns.

    Returns
    -------
    CoefficientCovariance
        The noise may differ between partitions; degrees of freedom are Satterthwaite's.
    """
    moments = moments_of(partitions)
    shares = weights_for(len(moments), weights)
    for index, part in enumerate(moments):
        require_full_rank(part, index, names)
        if part.row_count <= part.rank:
            raise InputError(
                f"partition {index} has {part.row_count} rows for {part.rank} columns and shows no noise: merge it "
                "with another."
            )
    freedoms = np.array([float(part.row_count - part.rank) for part in moments])
    losses = np.array([part.loss for part in moments])
    terms = np.stack([part.inverse_gram for part in moments]) * (shares**2 * losses / freedoms)[:, None, None]
    return CoefficientCovariance(
        terms.sum(axis=0), satterthwaite(terms, freedoms), float(losses.sum() / freedoms.sum())
    )


def partition_covariances(moments: SketchMoments) -> FloatArray:
    """`ℓ̂_i [1/(m_i − r_i − 1) + 1/(p_i − r_i)] Ĝ_i⁺` of each θ_i, from the sketches alone (Claim 4.5b plus the noise).

    The first term is what sketching adds, the second the noise of the rows themselves, `σ_i² = ℓ_i/(p_i − r_i)`, which
    may differ between partitions.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; valid for m_i > r_i + 1. On a singular partition it is singular too.

    Returns
    -------
    array of shape (k, d, d)
        Covariance of each fit around the true coefficients, on its row space.
    """
    return _scaled_inverses(moments, moments.losses)


def _scaled_inverses(moments: SketchMoments, losses: FloatArray) -> FloatArray:
    factors = losses * (moments.noise_factors + 1 / np.maximum(moments.row_counts - moments.ranks, 1.0))
    return np.stack([factor * root @ root.T for factor, root in zip(factors, moments.inverse_roots, strict=True)])


def partition_covariance(
    moments: SketchMoments, weights: ArrayLike | SketchWeights | None = None
) -> CoefficientCovariance:
    """`Σ w_i² ℓ̂_i [1/(m_i − d − 1) + 1/(p_i − d)] Ĝ_i⁻¹` of θ̄, from the sketches alone (Extension of Theorem 3.3).

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; singular partitions are refused, their average is biased. One true coefficient vector is
        assumed for all, not one noise.
    weights : array of shape (k,) or SketchWeights, optional
        Averaging weights that sum to one, or what `sketch_weights` returned; equal by default.

    Returns
    -------
    CoefficientCovariance
        With Satterthwaite's degrees of freedom. Given the sketched features, θ̄ is Gaussian around ᾱ.
    """
    moments.require_full_rank()
    chosen = weights if isinstance(weights, SketchWeights) else given_weights(moments, weights)
    terms = _scaled_inverses(moments, chosen.squared_loss_products)
    # The square of an estimate with f degrees of freedom is too large by (f + 2)/f.
    freedom = satterthwaite(terms, moments.sizes - moments.ranks + 2)
    return CoefficientCovariance(terms.sum(axis=0), freedom, moments.noise_variance)


def satterthwaite(terms: FloatArray, freedoms: FloatArray) -> float:
    """Degrees of freedom of a sum of matrices of which each has its own, shares measured by the sum itself."""
    total = terms.sum(axis=0)
    if not np.trace(total) > 0:
        return float(freedoms.sum())
    inverse = np.linalg.pinv(total, hermitian=True)
    shares = np.einsum("kij,ji->k", terms, inverse)
    return float(shares.sum() ** 2 / np.sum(shares**2 / freedoms))


def whole_covariance(
    sketches: Sequence[PartitionMoments], row_count: int, sketch: str | SketchLaw = "gaussian"
) -> CoefficientCovariance:
    """`σ̂² [Ĝ⁻¹ + (n − d)/(k² m) Σ A_i⁻¹]` of β̄, from its k sketches of all rows (Theorem 3.1's proof).

    Sketches that sample a rotation of P rows add `(P − m)/(P − d)` of the second term; with m = P what is left is the
    covariance of exact least squares.

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`, all of m > d + 1 rows and full rank.
    row_count : int
        Rows n behind them.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`.

    Returns
    -------
    CoefficientCovariance
        With k(m − d) degrees of freedom for Gaussian sketches; never more than n − d.
    """
    parts = moments_of(list(sketches))
    for part in parts:
        require_full_rank(part, None)
        require_sketch_size(part.row_count, part.rank)
    k, m, d = len(parts), parts[0].row_count, parts[0].columns
    rows, freedom = _residual_freedom(row_count - d), _residual_freedom(k * (m - d))
    rotation = rotation_rows(sketch, row_count)
    left_out = max(0.0, 1 - m / rotation)
    finite = math.isfinite(rotation)
    loss = sum(part.loss for part in parts) * m / freedom * (1 - left_out * d / rotation if finite else 1.0)
    loss = loss if left_out else sum(part.loss for part in parts) / k
    stacked = np.vstack([part.factor for part in parts])
    pooled = PartitionMoments(stacked, k * m, parts[0].free_columns, row_count)
    # The inverse of a sketched Gram matrix is too large by what was left out of the rotation.
    sampling = pooled.inverse_gram * k * (1 - left_out * (d + 1) / (k * m))
    added = rows / (k**2 * m) * (left_out * rotation / (rotation - d) if finite else 1.0)
    sketching = np.sum([part.inverse_gram for part in parts], axis=0) * added
    freedom = min(freedom / left_out, rows) if finite and left_out else rows if finite else freedom
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
    left = 1 - float(shares @ shares)
    return CoefficientCovariance(
        deviations.T @ deviations / left, float(len(fits) - 1), float("nan"), deviations.T / math.sqrt(left)
    )


def _residual_freedom(value: float) -> float:
    if value <= 0:
        raise InputError("no rows are left to estimate the noise variance from: use more rows or fewer partitions.")
    return float(value)
