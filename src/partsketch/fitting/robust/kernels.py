"""Sums by cluster, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@compiled
def add_scores(
    labels: IntArray, rows: FloatArray, factors: FloatArray, slots: IntArray, used: int, sums: FloatArray
) -> int:
    """Add every row, times its factor for each target, to the sums of its cluster; return how many have some.

    Parameters
    ----------
    rows
        One line per row of the data.
    factors
        One line per target.
    slots
        Where the sums of each cluster are; -1 for none yet.
    sums
        One line per cluster: its number, then the sums of the first target, and so on.
    """
    width = rows.shape[1]
    for row in range(len(labels)):
        slot = slots[labels[row]]
        if slot < 0:
            slot = used
            used += 1
            slots[labels[row]] = slot
            sums[slot, 0] = labels[row]
            for j in range(1, sums.shape[1]):
                sums[slot, j] = 0.0
        for target in range(factors.shape[0]):
            factor = factors[target, row]
            first = 1 + target * width
            for j in range(width):
                sums[slot, first + j] += factor * rows[row, j]
    return used


@compiled
def add_products(
    labels: IntArray, rows: FloatArray, weights: FloatArray, slots: IntArray, first: int, sums: FloatArray
) -> None:
    """Add the products of the columns of every row with one another to the sums of its cluster, from place `first`."""
    width = rows.shape[1]
    for row in range(len(labels)):
        slot = slots[labels[row]]
        place = first
        for i in range(width):
            value = weights[row] * rows[row, i]
            for j in range(i + 1):
                sums[slot, place + j] += value * rows[row, j]
            place += i + 1


@compiled
def leave_out_each(packed: FloatArray, scores: FloatArray, most: float, out: FloatArray) -> None:
    """Solve (1 − P) x = −s for the P and s of every cluster; NaN where the trace of P is larger than `most`.

    Below that 1 − P is far from singular. `packed` has the lower triangles of P, line by line.
    """
    width = scores.shape[1]
    root = np.empty((width, width))
    for cluster in range(scores.shape[0]):
        trace, place = 0.0, 0
        for i in range(width):
            for j in range(i + 1):
                root[i, j] = -packed[cluster, place + j]
            trace -= root[i, i]
            root[i, i] += 1.0
            place += i + 1
        if not trace <= most:
            out[cluster, :] = np.nan
            continue
        for i in range(width):
            value = -scores[cluster, i]
            for j in range(i + 1):
                part = root[i, j]
                for k in range(j):
                    part -= root[i, k] * root[j, k]
                root[i, j] = np.sqrt(part) if i == j else part / root[j, j]
                if j < i:
                    value -= root[i, j] * out[cluster, j]
            out[cluster, i] = value / root[i, i]
        for i in range(width - 1, -1, -1):
            value = out[cluster, i]
            for j in range(i + 1, width):
                value -= root[j, i] * out[cluster, j]
            out[cluster, i] = value / root[i, i]
