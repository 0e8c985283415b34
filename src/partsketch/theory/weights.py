"""Averaging weights that minimise the predicted excess loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.special import polygamma
from partsketch.theory.arguments import FloatArray, weights_for
from partsketch.theory.excess_loss import sketch_terms
from partsketch.theory.moments import PartitionLike, moments_of, pooled_moments, require_full_rank, trace_products
from partsketch.theory.sketch_moments import SketchMoments

#: Points of the average over u in `sketch_weights`.
_STEPS = 16


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


@dataclass(frozen=True, eq=False)
class SketchWeights:
    """Averaging weights of sketched fits, and what they become together with the losses.

    Attributes
    ----------
    values : array of shape (k,)
        The weights w_i, which sum to one.
    loss_products, squared_loss_products : arrays of shape (k,)
        Unbiased estimates of `ℓ_i E w_i` and `ℓ_i E w_i²`, also where weights and losses come from the same sketches.
    shrinkage : float
        How much of the differences between estimated variances the weights follow, from 0 (equal weights) to 1; not a
        number for weights that were given.
    """

    values: FloatArray
    loss_products: FloatArray
    squared_loss_products: FloatArray
    shrinkage: float = math.nan

    @property
    def estimated(self) -> bool:
        """Whether the weights were made from the sketches."""
        return not math.isnan(self.shrinkage)


def given_weights(moments: SketchMoments, weights: ArrayLike | None = None) -> SketchWeights:
    """Weights that do not depend on the sketches; equal by default."""
    shares = weights_for(len(moments.sketches), weights)
    return SketchWeights(shares, moments.losses * shares, moments.losses * shares**2)


def sketch_weights(moments: SketchMoments) -> SketchWeights:
    """Estimate the same weights from the sketches alone, drawn towards equal ones (Extension of Theorem 3.3).

    The variances `v_i = T_i ℓ_i [1/(m_i − r_i − 1) + 1/(p_i − r_i)]` are estimated from few rows each, and weights that
    follow their noise lose more than equal weights do. So the logarithms of the estimates are drawn towards their mean
    by the factor `λ = τ²/(τ² + e)`: e is the variance that estimating gives them, and τ² is by how much they vary more
    than e and two standard errors of it. For alike partitions λ is nearly always zero.

    Given the sketched features, `ℓ̂_i` is chi-square with m_i − r_i degrees of freedom, and for any weight that is a
    function of it, `ℓ̂_i` times the weight at `u ℓ̂_i`, averaged over u with the distribution function
    `u^((m_i − r_i)/2)`, is unbiased for `ℓ_i E w_i`. That is how the certificate allows for such weights.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; singular partitions are refused.

    Returns
    -------
    SketchWeights
        For the average and for `certify_partition`.
    """
    moments.require_full_rank()
    count = len(moments.sketches)
    freedom = moments.sizes - moments.ranks
    noise = _log_variances(moments)
    values, shrinkage = _drawn_weights(_variances(moments, moments.losses), noise)
    steps = (np.arange(_STEPS) + 0.5) / _STEPS
    first, second = np.empty(count), np.empty(count)
    for i in range(count):
        losses = np.tile(moments.losses, (_STEPS, 1))
        losses[:, i] *= steps ** (2 / freedom[i])
        own = _drawn_weights(_variances(moments, losses), noise)[0][:, i]
        first[i], second[i] = own.mean(), np.mean(own**2)
    return SketchWeights(values, moments.losses * first, moments.losses * second, float(shrinkage))


def _variances(moments: SketchMoments, losses: FloatArray) -> FloatArray:
    # Each partition has a noise of its own: what sketching adds, and what its rows have.
    rows = np.maximum(moments.row_counts - moments.ranks, 1.0)
    return np.asarray(moments.traces * losses * (moments.noise_factors + 1 / rows))


def _log_variances(moments: SketchMoments) -> float:
    """Variance that estimating gives to the logarithms of the variances: chi-squares and inverse Wishart traces."""
    freedom = moments.sizes - moments.ranks
    # The trace has a finite variance for more than 3 degrees of freedom only; its logarithm has one always.
    c = np.maximum(freedom - 1, 2.5)
    traces = np.log1p((2 + 2 * c / moments.ranks) / ((c + 1) * (c - 2)))
    return float(np.mean((polygamma(1, freedom / 2) + traces) * moments.sampling))


def _drawn_weights(variances: FloatArray, noise: float) -> tuple[FloatArray, FloatArray]:
    """Weights along the last axis, and how much of the differences they follow."""
    if np.any(variances <= 0):
        raise InputError(
            "a partition has no noise at all, so weights by its inverse are not defined: use equal weights."
        )
    logs = np.log(variances)
    count = logs.shape[-1]
    seen = np.var(logs, axis=-1, ddof=1, keepdims=True) if count > 1 else np.zeros_like(logs)
    beyond = np.maximum(seen - noise * (1 + 2 * math.sqrt(2 / max(count - 1, 1))), 0.0)
    shrinkage = beyond / (beyond + noise) if noise > 0 else np.ones_like(beyond)
    drawn = -shrinkage * logs
    inverse = np.exp(drawn - drawn.max(axis=-1, keepdims=True))
    return np.asarray(inverse / inverse.sum(axis=-1, keepdims=True)), np.asarray(shrinkage[..., 0])
