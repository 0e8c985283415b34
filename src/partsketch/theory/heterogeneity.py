"""Do the partitions share their coefficients? Cochran's Q, as in meta-analysis, for vectors and any rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, fdtrc

from partsketch.errors import InputError
from partsketch.theory.arguments import FloatArray
from partsketch.theory.moments import PartitionLike, PartitionMoments, moments_of
from partsketch.theory.sketch_moments import SketchMoments


@dataclass(frozen=True)
class Heterogeneity:
    """Cochran's Q with its degrees of freedom and p-value.

    Attributes
    ----------
    statistic : float
        Q, the squared distances of the fits from their common value in units of their covariances.
    degrees_of_freedom : int
        `Σ r_i − r`, which is (k − 1)d at full rank.
    p_value : float
        Probability of a Q at least as large when all partitions share their coefficients.
    """

    statistic: float
    degrees_of_freedom: int
    p_value: float


def cochran_q(
    coefficients: ArrayLike,
    precision_roots: Sequence[ArrayLike],
    residual_degrees_of_freedom: float = math.inf,
    ranks: Sequence[int] | None = None,
) -> Heterogeneity:
    """Cochran's Q of k fits with known precision matrices (extension: Section 2 assumes one coefficient vector).

    Parameters
    ----------
    coefficients : array of shape (k, d)
        The fits, minimum norm where singular.
    precision_roots : sequence of arrays with d columns
        `W_i` with `W_iᵀW_i` the inverse (pseudo-inverse on a singular partition) of the covariance of fit i.
    residual_degrees_of_freedom : float
        Behind the noise variance in those precisions; infinite gives χ², finite gives `Q/df` an F distribution.
    ranks : sequence of int, optional
        Ranks of the roots where they are known; otherwise they are found from their singular values.

    Returns
    -------
    Heterogeneity
        With zero degrees of freedom (one partition, say) Q is 0 and the p-value 1.
    """
    fits = np.asarray(coefficients, dtype=np.float64)
    roots = [np.asarray(root, dtype=np.float64) for root in precision_roots]
    if fits.ndim != 2 or len(fits) != len(roots):
        raise InputError(
            f"{len(roots)} precision roots came with coefficients of shape {fits.shape}: pass one per fit."
        )
    rows = np.vstack([np.column_stack([root, root @ fit]) for root, fit in zip(roots, fits, strict=True)])
    common = PartitionMoments.from_triangular(rows, len(rows))
    if ranks is None:
        ranks = [PartitionMoments(np.column_stack([root, np.zeros(len(root))]), len(root)).rank for root in roots]
    freedom = sum(ranks) - common.rank
    if freedom <= 0:
        return Heterogeneity(0.0, 0, 1.0)
    statistic = common.loss
    if math.isinf(residual_degrees_of_freedom):
        return Heterogeneity(statistic, freedom, float(chdtrc(freedom, statistic)))
    return Heterogeneity(statistic, freedom, float(fdtrc(freedom, residual_degrees_of_freedom, statistic / freedom)))


def partition_heterogeneity(partitions: Sequence[PartitionLike]) -> Heterogeneity:
    """Cochran's Q of the exact fits a_i, exact for Gaussian noise of one variance (Section 2 model).

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; any rank, with more rows than ranks in total.

    Returns
    -------
    Heterogeneity
        The p-value is that of the F test for equal coefficients.
    """
    moments = moments_of(partitions)
    freedom = sum(part.row_count - part.rank for part in moments)
    variance = sum(part.loss for part in moments) / freedom if freedom > 0 else 0.0
    if variance <= 0:
        raise InputError(
            "the partitions leave no residuals to judge differences by: use more rows or fewer partitions."
        )
    fits = np.stack([part.solution for part in moments])
    roots = [part.root / math.sqrt(variance) for part in moments]
    return cochran_q(fits, roots, float(freedom), [part.rank for part in moments])


def sketch_heterogeneity(moments: SketchMoments) -> Heterogeneity:
    """Cochran's Q of the sketched fits θ_i, from the sketches alone (Extension of Claim 4.5).

    The covariance of θ_i is `σ̂² [1 + (p_i − r_i)/(m_i − r_i − 1)] Ĝ_i⁺`; given the sketched features the fits are
    Gaussian and independent of σ̂², so the F distribution is close for p ≫ m.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank.

    Returns
    -------
    Heterogeneity
        A small p-value says that the averaging term of the certificate, which assumes one coefficient vector, is low.
    """
    if moments.noise_variance <= 0:
        raise InputError("the sketches leave no residuals to judge differences by: is the target a sum of features?")
    scales = _precision_scales(moments)
    roots = [scale * part.root for scale, part in zip(scales, moments.sketches, strict=True)]
    ranks = [part.rank for part in moments.sketches]
    return cochran_q(moments.coefficients, roots, moments.residual_degrees_of_freedom, ranks)


def _precision_scales(moments: SketchMoments) -> FloatArray:
    """Factors that turn the root of A_i into a root of the precision of θ_i: Ĝ_i⁺ is a multiple of A_i⁺."""
    noise = moments.noise_variance * (1 + (moments.row_counts - moments.ranks) * moments.noise_factors)
    return np.asarray(1 / np.sqrt(noise * moments.inverse_scales))
