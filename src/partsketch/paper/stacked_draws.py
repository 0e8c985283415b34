"""Draws of the stacked fits that came after the paper: weights by the sketches, and orthogonal sketches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partsketch import theory
from partsketch.paper.explicit_sketches import FloatArray, in_order
from partsketch.sketches.orthogonal import orthogonal_rows
from partsketch.theory import PartitionMoments
from partsketch.theory.partition_certificate import row_shares


@dataclass(frozen=True, eq=False)
class StackedDraws:
    """Excess losses of the draws, one number per draw.

    Attributes
    ----------
    weighted
        One fit to the stacked Gaussian sketches with `weighting="auto"`.
    orthogonal
        The same with orthogonal sketches of as many rows.
    bound
        The least that any unbiased linear fit to these orthogonal sketches can lose in the mean over the noise, if
        partitions share their coefficients and noise.
    """

    weighted: FloatArray
    orthogonal: FloatArray
    bound: FloatArray


def stacked_draws(
    sketches: Sequence[FloatArray], parts: Sequence[PartitionMoments], pooled: PartitionMoments, seed: int
) -> StackedDraws:
    """Fit every draw with the weights that its sketches ask for.

    Parameters
    ----------
    sketches : sequence of arrays of shape (draws, m, d + 1)
        Gaussian sketches, one array per partition.
    parts, pooled : PartitionMoments
        Of the partitions, which have equally many rows, and of all rows.
    seed : int
        Of the orthogonal sketches; that of partition i in draw b is stream `b·k + i`.

    Returns
    -------
    StackedDraws
        Orthogonal sketches are drawn from the factors of the partitions, which is exact in law.
    """
    draws, size = sketches[0].shape[:2]
    counts = [part.row_count for part in parts]
    noise = pooled.loss / (pooled.row_count - pooled.rank)
    if min(part.rank for part in parts) == pooled.columns:
        # Nothing depends on the coordinates then, and in these a fit needs no twofold digits.
        turn = np.column_stack([np.vstack([pooled.inverse_root, np.zeros(pooled.rank)]), np.r_[-pooled.solution, 1.0]])
        parts = [replace(part, factor=part.factor @ turn) for part in parts]
        sketches, pooled = [matrix @ turn for matrix in sketches], theory.pooled_moments(parts)

    def work(draw: int) -> tuple[float, float, float]:
        weighted = _excess([matrix[draw] for matrix in sketches], counts, "gaussian", pooled)
        if size >= counts[0]:
            # Such a sketch holds all that its rows tell.
            return weighted, 0.0, 0.0
        streams = range(draw * len(parts), (draw + 1) * len(parts))
        turned = [
            orthogonal_rows(part.factor, size, part.row_count, seed, stream)
            for part, stream in zip(parts, streams, strict=True)
        ]
        bound = noise * _bound(turned, parts, pooled)
        return weighted, _excess(turned, counts, "orthogonal", pooled), bound

    found = np.array(list(in_order(work, draws)))
    return StackedDraws(*found.T)


def _excess(sketches: Sequence[FloatArray], counts: Sequence[int], kind: str, pooled: PartitionMoments) -> float:
    """Return the excess loss of the stacked fit with the weights of `weighting="auto"`, before its step towards a*."""
    moments = theory.sketch_moments(sketches, counts, sketch=kind)
    choice = theory.choose_stack(moments)
    rows = np.vstack([np.sqrt(weight) * matrix for weight, matrix in zip(choice.weights, sketches, strict=True)])
    features = rows[:, :-1] @ pooled.inverse_root
    # In coordinates in which G is the identity and exact least squares is zero, the excess loss is a squared length.
    away = np.linalg.lstsq(features, rows[:, -1] - rows[:, :-1] @ pooled.solution, rcond=None)[0]
    if choice.share > 0:
        average = pooled.root @ (row_shares(moments) @ moments.coefficients - pooled.solution)
        away = (1 - choice.share) * pooled.root @ pooled.inverse_root @ away + choice.share * average
    return float(away @ away)


def _bound(sketches: Sequence[FloatArray], parts: Sequence[PartitionMoments], pooled: PartitionMoments) -> float:
    """Return `least_orthogonal_excess_loss` of these sketches for noise of variance one."""
    turn = pooled.inverse_root
    rows = [
        np.sqrt(len(matrix) / part.row_count) * matrix[:, :-1] @ turn
        for matrix, part in zip(sketches, parts, strict=True)
    ]
    grams = [(part.root @ turn).T @ (part.root @ turn) for part in parts]
    return theory.least_orthogonal_excess_loss(rows, grams)
