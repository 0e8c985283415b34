"""Sketches other than Gaussian, and stacking: predictions that are close, not exact, and say so.

What is known of a kind of sketch is its `SketchLaw`: the rows P of the rotation that it samples from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import LAWS, SketchLaw
from partsketch.theory.arguments import require_count, require_non_negative, require_sketch_size, sizes_for, weights_for
from partsketch.theory.excess_loss import unsketched_average_excess_loss
from partsketch.theory.moments import PartitionLike, moments_of, trace_products


def law_of(sketch: str | SketchLaw) -> SketchLaw:
    """Return a law, or the one of this name."""
    if isinstance(sketch, SketchLaw):
        return sketch
    if sketch not in LAWS:
        raise InputError(f"no formula is known for the sketch {sketch!r}: use one of {', '.join(LAWS)}.")
    return LAWS[sketch]


def rotation_rows(sketch: str | SketchLaw, row_count: int) -> float:
    """Rows P of the rotation a sketch samples from; infinite for the kinds that follow the Gaussian formula.

    Parameters
    ----------
    sketch : str or SketchLaw
        "gaussian", "srht", "sparse_sign", "count_sketch", "row_sample" or "leverage_sample"; or the law of another.
    row_count : int
        Rows p of the partition.

    Returns
    -------
    float
        The next power of two for "srht", p itself for samples of rows, else infinity.
    """
    require_count("row_count", row_count)
    return law_of(sketch).rotation(row_count)


def noise_factor(sketch_size: float, rank: int, rotation: float = math.inf) -> float:
    """Return what sketching adds per dimension and unit of minimal loss: `(P − m)/((m − r − 1)(P − r))`.

    Exact for m rows of a uniformly random rotation of P rows (Extension of Claim 4.5); `1/(m − r − 1)` for a Gaussian
    sketch. Valid for r + 1 < m; zero once m ≥ P, when nothing is lost.

    Parameters
    ----------
    sketch_size : float
        Rows m of the sketch.
    rank : int
        Rank r of the sketched rows.
    rotation : float
        P, from `rotation_rows`.

    Returns
    -------
    float
        The factor.
    """
    require_sketch_size(sketch_size, rank)
    if math.isinf(rotation):
        return 1.0 / (sketch_size - rank - 1)
    if sketch_size >= rotation:
        return 0.0
    return (rotation - sketch_size) / ((sketch_size - rank - 1) * (rotation - rank))


def approximate_whole_excess_loss(
    loss: float, rank: int, sketch_size: int, n_sketches: int, row_count: int, sketch: str | SketchLaw
) -> float:
    """Approximate expected excess loss of β̄ for any kind of sketch (Extension of Theorem 3.1).

    Parameters
    ----------
    loss, rank, sketch_size, n_sketches
        As in `whole_excess_loss`.
    row_count : int
        Rows n of the data.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`.

    Returns
    -------
    float
        Exact for "gaussian", approximate otherwise; no claim for "row_sample" when a few rows carry the leverage.
    """
    require_non_negative("loss", loss)
    require_count("n_sketches", n_sketches)
    return loss * rank * noise_factor(sketch_size, rank, rotation_rows(sketch, row_count)) / n_sketches


def approximate_partition_excess_loss(
    partitions: Sequence[PartitionLike],
    sketch_size: int | Sequence[int],
    sketch: str | SketchLaw,
    weights: ArrayLike | None = None,
) -> float:
    """Approximate expected excess loss of θ̄ for any kind of sketch (Extension of Theorem 3.3).

    Parameters
    ----------
    partitions, sketch_size, weights
        As in `partition_excess_loss`.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`.

    Returns
    -------
    float
        Exact for "gaussian", approximate otherwise; no claim for "row_sample" when a few rows carry the leverage.
    """
    moments = moments_of(partitions)
    shares = weights_for(len(moments), weights)
    sizes = sizes_for(len(moments), sketch_size)
    factors = [
        noise_factor(float(size), part.rank, rotation_rows(sketch, part.row_count))
        for part, size in zip(moments, sizes, strict=True)
    ]
    terms = trace_products(moments).sum(axis=0) * np.array([part.loss for part in moments]) * factors
    return float(shares**2 @ terms) + unsketched_average_excess_loss(moments, shares)


def stacked_excess_loss(loss: float, rank: int, sketch_sizes: Sequence[int]) -> float:
    """Approximate excess loss `ℓ r/(Σm_i − r − 1)` of one fit on all sketches stacked (Extension of Theorem 3.1).

    Close when partitions are alike and the rows m_i of each sketch are in proportion to the rows p_i of its partition.
    Otherwise it can be low by half: use `stacked_excess_loss_given_data`.

    Parameters
    ----------
    loss : float
        Minimal loss ℓ on all rows.
    rank : int
        Rank r of all rows.
    sketch_sizes : sequence of int
        Rows m_i of each sketch; valid for Σm_i > r + 1.

    Returns
    -------
    float
        Approximate expected excess loss.
    """
    require_non_negative("loss", loss)
    require_count("rank", rank, 0)
    total = float(np.sum(sketch_sizes))
    require_sketch_size(total, rank)
    return loss * rank / (total - rank - 1)
