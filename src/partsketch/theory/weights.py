"""Averaging weights that minimise the predicted excess loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partsketch.errors import InputError
from partsketch.theory.arguments import FloatArray
from partsketch.theory.excess_loss import sketch_terms
from partsketch.theory.moments import PartitionLike, moments_of, pooled_moments, require_full_rank, trace_products
from partsketch.theory.sketch_moments import SketchMoments


def inverse_variance_weights(variances: ArrayLike) -> FloatArray:
    """Weights in proportion to `1/v_i`, which minimise `Σ w_i² v_i` among weights that sum to one.

    Parameters
    ----------
    variances : array of shape (k,)
        Positive variance term of each partition.

    Returns
    -------
    array of shape (k,)
        Weights (Extension of Claim 4.4, whose weights are equal).
    """
    terms = np.asarray(variances, dtype=np.float64)
    if terms.ndim != 1 or terms.size == 0 or not np.all(np.isfinite(terms)) or np.any(terms <= 0):
        raise InputError(
            "variances must be positive and finite, one per partition: leave out partitions without noise."
        )
    inverse = terms.min() / terms
    return np.asarray(inverse / inverse.sum())


def average_weights(partitions: Sequence[PartitionLike]) -> FloatArray:
    """Weights that minimise the expected excess loss of the unsketched average: `v_i = tr(G G_i⁻¹)` (Claim 4.7).

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; every partition of full rank, since weighting would otherwise change the bias too.

    Returns
    -------
    array of shape (k,)
        Weights that sum to one.
    """
    moments = moments_of(partitions)
    for index, part in enumerate(moments):
        require_full_rank(part, index)
    pooled = pooled_moments(moments)
    return inverse_variance_weights([np.sum((pooled.root @ part.inverse_root) ** 2) for part in moments])


def partition_weights(
    partitions: Sequence[PartitionLike], sketch_size: int | Sequence[int], noise_variance: float
) -> FloatArray:
    """Weights that minimise `B_θ` for these partitions: `v_i = tr(G G_i⁻¹) [ℓ_i/(m_i − d − 1) + σ²]` (Theorem 3.3).

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; every partition of full rank, since weighting would otherwise change the bias too.
    sketch_size : int or sequence of int
        Rows m_i of each sketch; valid for m_i > d + 1.
    noise_variance : float
        σ².

    Returns
    -------
    array of shape (k,)
        Weights that sum to one.
    """
    moments = moments_of(partitions)
    for index, part in enumerate(moments):
        require_full_rank(part, index)
    traces = trace_products(moments).sum(axis=0)
    return inverse_variance_weights(sketch_terms(moments, sketch_size) + noise_variance * traces)


def sketch_weights(moments: SketchMoments) -> FloatArray:
    """Estimate the same weights from the sketches alone (Extension of Theorem 3.3).

    Given the sketched features each θ_i is symmetric around a_i, so weights made from the same sketches leave the
    average unbiased when partitions share their coefficients; a certificate for such weights is a little low, because
    they favour partitions whose terms were estimated low.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; singular partitions are refused.

    Returns
    -------
    array of shape (k,)
        Weights that sum to one.
    """
    moments.require_full_rank()
    return inverse_variance_weights(moments.traces * (moments.losses * moments.noise_factors + moments.noise_variance))
