"""Sums over partitions of products of small matrices, a part of the partitions at a time: they may be thousands."""

from __future__ import annotations

import numpy as np

from partsketch.theory.arguments import FloatArray

#: Partitions whose matrices are made together.
_TOGETHER = 512


def parts_of(count: int) -> list[slice]:
    """Return parts of many partitions: a matrix of each is made for a part at a time."""
    return [slice(start, start + _TOGETHER) for start in range(0, count, _TOGETHER)]


def weighted_of(
    grams: FloatArray, variances: FloatArray, first: FloatArray, slope: FloatArray, some: slice
) -> tuple[FloatArray, FloatArray]:
    """Return `v_i M_i B_i` and `M_i` of some partitions."""
    turns = (np.eye(len(slope)) - slope) @ first[some] + slope
    return variances[some, None, None] * (turns @ grams[some]), turns


def turned_of(
    grams: FloatArray, variances: FloatArray, first: FloatArray, slope: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return `K = Σ v_i M_i B_i` and the traces of `v_i M_i B_i M_iᵀ`."""
    together, own = np.zeros_like(slope), []
    for some in parts_of(len(grams)):
        weighted, turns = weighted_of(grams, variances, first, slope, some)
        together = together + weighted.sum(axis=0)
        own.append(np.sum(weighted * turns, axis=(1, 2)))
    return together, np.concatenate(own)
