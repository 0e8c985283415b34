"""Expected excess loss given the data: no noise model, any rank, any sizes, any weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.special import fdtri
from partsketch.theory.arguments import (
    FloatArray,
    require_count,
    require_non_negative,
    require_sketch_size,
    sizes_for,
    weights_for,
)
from partsketch.theory.moments import PartitionLike, PartitionMoments, moments_of, pooled_moments, trace_products


def excess_loss(partitions: Sequence[PartitionLike], coefficients: ArrayLike) -> float:
    """Excess loss `L(a) − ℓ` of any coefficients, as `‖X (a − a*)‖²` (Claim 4.3, which holds without expectations).

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data.
    coefficients : array of shape (d,)
        The estimate to be judged.

    Returns
    -------
    float
        Squared loss on all rows beyond that of exact least squares. Never a difference of two losses.
    """
    pooled = pooled_moments(partitions)
    difference = pooled.root @ (np.asarray(coefficients, dtype=np.float64) - pooled.solution)
    return float(difference @ difference)


def whole_excess_loss(loss: float, rank: int, sketch_size: int, n_sketches: int) -> float:
    """Return the expected excess loss of β̄, the average of fits on Gaussian sketches of all rows (Theorem 3.1).

    Parameters
    ----------
    loss : float
        Minimal loss `ℓ` of exact least squares on all rows.
    rank : int
        Rank r of X; the theorem has r = d, the extension to r < d is exact.
    sketch_size : int
        Rows m of each sketch; valid for m > r + 1, and with finite variance only for m > r + 3.
    n_sketches : int
        Number k of averaged fits.

    Returns
    -------
    float
        `(1/k) · r/(m − r − 1) · ℓ`.
    """
    require_non_negative("loss", loss)
    require_count("rank", rank, 0)
    require_count("n_sketches", n_sketches)
    require_sketch_size(sketch_size, rank)
    return loss * rank / (sketch_size - rank - 1) / n_sketches


def single_sketch_excess_loss_quantile(loss: float, rank: int, sketch_size: int, probability: float) -> float:
    """Quantile of the excess loss of one fit on one Gaussian sketch of all rows (Extension of Theorem 3.1).

    Given the data the excess loss is distributed as `ℓ · χ²_r / χ²_{m−r+1}` with independent chi-squares, so its mean
    is that of Theorem 3.1 and its variance is infinite for m ≤ r + 3. Valid for m ≥ r.

    Parameters
    ----------
    loss, rank, sketch_size
        As in `whole_excess_loss`.
    probability : float
        Between 0 and 1; 0.5 gives the median.

    Returns
    -------
    float
        The excess loss that a draw stays below with the stated probability.
    """
    require_non_negative("loss", loss)
    require_count("rank", rank, 1)
    require_count("sketch_size", sketch_size, rank)
    if not 0 < probability < 1:
        raise InputError(f"probability must lie strictly between 0 and 1, not {probability}: pass for example 0.5.")
    freedom = sketch_size - rank + 1
    return float(loss * rank / freedom * fdtri(rank, freedom, probability))


def sketch_terms(moments: Sequence[PartitionMoments], sketch_size: int | Sequence[int]) -> FloatArray:
    """`tr(G G_i⁺) ℓ_i / (m_i − r_i − 1)` per partition: what its sketch adds before squared weights (Claims 4.5, 4.6).

    Valid for m_i > r_i + 1.
    """
    sizes = sizes_for(len(moments), sketch_size)
    for index, (part, size) in enumerate(zip(moments, sizes, strict=True)):
        require_sketch_size(float(size), part.rank, index)
    ranks = np.array([part.rank for part in moments])
    losses = np.array([part.loss for part in moments])
    return np.asarray(trace_products(moments).sum(axis=0) * losses / (sizes - ranks - 1))


def unsketched_average_excess_loss(partitions: Sequence[PartitionLike], weights: ArrayLike | None = None) -> float:
    """Exact excess loss `‖X (ᾱ − a*)‖²` of the average of exact fits per partition (last term of Claim 4.4).

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; any rank (minimum-norm fits) and any sizes.
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.

    Returns
    -------
    float
        Excess loss without any sketching.
    """
    moments = moments_of(partitions)
    average = weights_for(len(moments), weights) @ np.stack([part.solution for part in moments])
    return excess_loss(moments, average)


def partition_excess_loss(
    partitions: Sequence[PartitionLike], sketch_size: int | Sequence[int], weights: ArrayLike | None = None
) -> float:
    """Return the expected excess loss of θ̄, the average of fits on Gaussian sketches of partitions, given the data.

    `Σ w_i² tr(G G_i⁺) ℓ_i/(m_i − r_i − 1) + ‖X(ᾱ − a*)‖²`: Claim 4.4 with Claims 4.5 and 4.6, before the average over
    the noise that leads to Theorem 3.3, extended to singular partitions, uneven sizes, weights and unequal sketch
    sizes. It is exact for any data: the row space of a sketch is that of its partition, so all happens in r_i
    dimensions.

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data.
    sketch_size : int or sequence of int
        Rows m_i of each sketch; valid for m_i > r_i + 1.
    weights : array of shape (k,), optional
        Averaging weights that sum to one, fixed before sketching; equal by default.

    Returns
    -------
    float
        Expectation over the sketches of `L(θ̄) − ℓ`.
    """
    moments = moments_of(partitions)
    shares = weights_for(len(moments), weights)
    return float(shares**2 @ sketch_terms(moments, sketch_size)) + unsketched_average_excess_loss(moments, shares)
