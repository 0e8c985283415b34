"""Sums by cluster, row by row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import LANES, fetch_all
from partsketch.fitting.robust.score_lanes import add_scaled_row, add_score

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: A cluster with a smaller share of all directions is taken out by a few terms of a series, without a factor.
_SMALL_SHARE = 0.01
_ROUNDING = 2.0**-54
#: So many rows before they are needed, sums of clusters are asked for.
_AHEAD = 12


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
        One line per cluster: the sums of the first target, and so on; its number last.
    """
    width, length = rows.shape[1], sums.shape[1]
    flat, out = rows.reshape(-1), sums.reshape(-1)
    for row in range(len(labels)):
        slot = slots[labels[row]]
        if slot < 0:
            slot = used
            used += 1
            slots[labels[row]] = slot
            sums[slot, :] = 0.0
            sums[slot, length - 1] = labels[row]
        for target in range(factors.shape[0]):
            place = slot * length + target * width
            add_scaled_row(flat, row * width, width, factors[target, row], out, place)
    return used


@compiled
def add_row_scores(
    labels: IntArray,
    rows: FloatArray,
    weights: FloatArray,
    centre: FloatArray,
    coefficients: FloatArray,
    slots: IntArray,
    used: int,
    sums: FloatArray,
) -> int:
    """Add the scores of rows to the sums of their clusters; return how many clusters have some.

    Rows, `centre` and `coefficients` are padded to whole vectors, and the last number of each is zero. A score is the
    row less the centre, times its product with the coefficients of a target, and with its weight.

    Parameters
    ----------
    weights
        Empty where each is one.
    coefficients
        One line per target.
    slots, sums
        As in `add_scores`.
    """
    step = rows.shape[1]
    flat, middle, lines, out = rows.reshape(-1), centre, coefficients.reshape(-1), sums.reshape(-1)
    length = sums.shape[1]
    for row in range(len(labels)):
        coming = slots[labels[min(row + _AHEAD, len(labels) - 1)]]
        if coming >= 0:
            fetch_all(out, coming * length, length)
        slot = slots[labels[row]]
        if slot < 0:
            slot = used
            used += 1
            slots[labels[row]] = slot
            sums[slot, :] = 0.0
            sums[slot, length - 1] = labels[row]
        weight = weights[row] if weights.size else 1.0
        for target in range(coefficients.shape[0]):
            first = slot * length + target * step
            add_score(flat, row * step, middle, lines, target * step, step // LANES, weight, out, first)
    return used


@compiled
def add_products(
    labels: IntArray, rows: FloatArray, weights: FloatArray, slots: IntArray, first: int, sums: FloatArray
) -> None:
    """Add the products of the columns of every row with one another to the sums of its cluster, from place `first`."""
    width, length = rows.shape[1], sums.shape[1]
    flat, out = rows.reshape(-1), sums.reshape(-1)
    for row in range(len(labels)):
        coming = slots[labels[min(row + _AHEAD, len(labels) - 1)]]
        fetch_all(out, coming * length, length)
        place = slots[labels[row]] * length + first
        for i in range(width):
            add_scaled_row(flat, row * width, i + 1, weights[row] * rows[row, i], out, place)
            place += i + 1


@compiled
def _add_up(packed: FloatArray, scores: FloatArray, trace: float, work: FloatArray, out: FloatArray) -> None:
    """Write −s − P s − P² s − …, until what follows is beyond the digits of doubles: P is at most its trace."""
    width = scores.size
    for i in range(width):
        out[i] = -scores[i]
    left = trace
    while left > _ROUNDING:
        # P times what there is, less s: one more power of P each time.
        for i in range(width):
            work[i] = -scores[i]
        place = 0
        for i in range(width):
            for j in range(i):
                work[i] += packed[place + j] * out[j]
                work[j] += packed[place + j] * out[i]
            work[i] += packed[place + i] * out[i]
            place += i + 1
        for i in range(width):
            out[i] = work[i]
        left *= trace


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
        if trace < _SMALL_SHARE:
            _add_up(packed[cluster], scores[cluster], trace, root[0], out[cluster])
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
