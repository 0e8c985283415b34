"""Excess loss expected over sketches and noise: fixed design, y = X α + noise of variance σ², full rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.theory.arguments import (
    require_count,
    require_non_negative,
    require_sketch_size,
    sizes_for,
    weights_for,
)
from partsketch.theory.divergence import GramLike, divergence, gram_moments
from partsketch.theory.moments import trace_products


def require_divergence(value: float, d: int) -> None:
    """Refuse a divergence below d, which no set of Gram matrices has (Lemma 2.1)."""
    if not value >= d * (1 - 1e-9):
        raise InputError(
            f"divergence is {value:g}, but D is never below d = {d} (Lemma 2.1): pass D itself, not D/d or D − d."
        )


def expected_whole_excess_loss(n: int, d: int, sketch_size: int, k: int, noise_variance: float) -> float:
    """`B_β = (σ²/k) (n − d)/(m − d − 1) d`: expected excess loss of β̄ over sketches and noise (Remark 3.2).

    Parameters
    ----------
    n, d : int
        Rows and columns of X, of full rank d ≤ n.
    sketch_size : int
        Rows m of each sketch; valid for m > d + 1.
    k : int
        Number of averaged fits.
    noise_variance : float
        σ².

    Returns
    -------
    float
        B_β.
    """
    require_count("d", d)
    require_count("n", n, d)
    require_count("k", k)
    require_non_negative("noise_variance", noise_variance)
    require_sketch_size(sketch_size, d)
    return noise_variance * (n - d) * d / (sketch_size - d - 1) / k


def expected_partition_excess_loss(
    n: int, d: int, sketch_size: int, k: int, noise_variance: float, divergence: float
) -> float:
    """`B_θ = (σ²/k) (n − kd)/(m − d − 1) D + σ² (D − d)`: expected excess loss of θ̄ (Theorem 3.3).

    Parameters
    ----------
    n, d : int
        Rows and columns of X; every partition has n/k ≥ d rows and full rank.
    sketch_size : int
        Rows m of each sketch; valid for m > d + 1. The theorem also asks for n/k ≥ m; its proof does not use it.
    k : int
        Number of partitions.
    noise_variance : float
        σ².
    divergence : float
        D, at least d.

    Returns
    -------
    float
        B_θ. For uneven partitions use `expected_partition_excess_loss_given_design`, for singular ones
        `partition_excess_loss`.
    """
    require_count("d", d)
    require_count("k", k)
    require_count("n", n)
    if n < k * d:
        raise InputError(
            f"n = {n} rows in k = {k} partitions leave fewer than d = {d} rows each, so every Gram matrix is singular: "
            "use fewer partitions, or partition_excess_loss, which accepts any rank."
        )
    require_non_negative("noise_variance", noise_variance)
    require_divergence(divergence, d)
    require_sketch_size(sketch_size, d)
    sketching = (n - k * d) / k / (sketch_size - d - 1) * divergence
    return noise_variance * (sketching + divergence - d)


def expected_partition_excess_loss_given_design(
    grams: Sequence[GramLike],
    row_counts: Sequence[int],
    sketch_size: int | Sequence[int],
    noise_variance: float,
    weights: ArrayLike | None = None,
) -> float:
    """`B_θ` for uneven partitions, weights and unequal sketch sizes (Extension of Theorem 3.3).

    `σ² Σ w_i² tr(G G_i⁻¹) (p_i − d)/(m_i − d − 1) + σ² (Σ w_i² tr(G G_i⁻¹) − d)`. A singular partition is refused: its
    minimum-norm fit is biased towards zero and no formula free of the true coefficients exists.

    Parameters
    ----------
    grams : sequence of arrays of shape (d, d), or of PartitionMoments
        Gram matrices of the partitions, all invertible.
    row_counts : sequence of int
        Rows p_i of each partition.
    sketch_size : int or sequence of int
        Rows m_i of each sketch; valid for m_i > d + 1.
    noise_variance : float
        σ².
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.

    Returns
    -------
    float
        Expected excess loss of θ̄ over sketches and noise.
    """
    moments = gram_moments(grams)
    d = moments[0].columns
    sizes = sizes_for(len(moments), sketch_size)
    shares = weights_for(len(moments), weights)
    counts = np.asarray(row_counts, dtype=np.float64)
    if counts.shape != sizes.shape or np.any(counts < d):
        raise InputError(
            f"row_counts must hold one count of at least d = {d} for each of the {len(moments)} partitions."
        )
    require_non_negative("noise_variance", noise_variance)
    for index, size in enumerate(sizes):
        require_sketch_size(float(size), d, index)
    terms = shares**2 * trace_products(moments).sum(axis=0)
    return float(noise_variance * (terms @ ((counts - d) / (sizes - d - 1)) + terms.sum() - d))


def expected_unsketched_average_excess_loss(
    grams: Sequence[GramLike], noise_variance: float, weights: ArrayLike | None = None
) -> float:
    """`σ² (D − d)`: expected excess loss of ᾱ, the average of exact fits (Claim 4.7), with weights an extension of it.

    Parameters
    ----------
    grams : sequence of arrays of shape (d, d), or of PartitionMoments
        Gram matrices of the partitions, all invertible.
    noise_variance : float
        σ².
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.

    Returns
    -------
    float
        The price of averaging alone, without sketching.
    """
    require_non_negative("noise_variance", noise_variance)
    moments = gram_moments(grams)
    return noise_variance * (divergence(moments, weights) - moments[0].columns)
