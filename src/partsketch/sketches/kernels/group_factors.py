"""The factors of groups, from their entries."""

from __future__ import annotations

import math

import numpy as np

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import NOISE, cholesky
from partsketch.common.linalg.lanes import LANES, add_scaled
from partsketch.sketches.kernels.group_merge import read_rows, unpack
from partsketch.sketches.kernels.group_sums import (
    PRECISE,
    ROWS,
    add_precisely,
    add_products,
    begin_range,
    find_centre,
    measure,
    pack,
)


@compiled
def factor_entries(width, head, body, most, safe, centres, factors, trusted):  # type: ignore[no-untyped-def]
    """Write the centres and factors of all groups, upper triangles row by row, and for which of them doubles will do.

    They will when no column is explained by the others so well that the inverse of its scaled sums of products has more
    than `safe` on its diagonal. Groups of few rows are summed now.
    """
    step = (width + LANES - 1) // LANES * LANES
    near, seen = np.zeros((max(most, 1), step)), np.empty((3, step))
    sums, upper, inverse = np.zeros((step, step)), np.zeros((step, step)), np.zeros((step, step))
    for number in range(head.shape[0]):
        kind, count, at = int(head[number, 3]), int(head[number, 1]), int(head[number, 4])
        if kind == ROWS:
            begin_range(seen)
            weighted = read_rows(body, at, count, near, 0, seen)
            find_centre(width, seen, centres[number])
            trusted[number] = False
            if count <= width:
                continue
            measure(near, count, width, centres[number])
            sums[:, :] = 0.0
            add_products(near, count, width, weighted, sums)
        else:
            centres[number] = body[at : at + width]
            at += width
            for i in range(width):
                for j in range(i, width):
                    sums[i, j] = body[at]
                    at += 1
        trusted[number] = kind != PRECISE and _factor(sums, width, safe, upper, inverse)
        if trusted[number]:
            pack(upper, width, factors[number], 0)


@compiled
def _factor(sums, width, safe, upper, inverse):  # type: ignore[no-untyped-def]
    """Write the upper triangular factor of sums of products, and tell whether doubles are enough for it."""
    step = sums.shape[1]
    scale, over = np.empty(width), np.empty(width)
    for i in range(width):
        if not sums[i, i] > 0.0:
            return False
        scale[i] = np.sqrt(sums[i, i])
        over[i] = 1.0 / scale[i]
    upper[:, :] = 0.0
    for i in range(width):
        for j in range(i, width):
            upper[i, j] = sums[i, j] * over[i] * over[j]
    flat, other = upper.reshape(-1), inverse.reshape(-1)
    for k in range(width):
        pivot = upper[k, k]
        if not pivot * safe > 1.0:
            return False
        share = -1.0 / pivot
        for i in range(k + 1, width):
            times = upper[k, i] * share
            if times != 0.0:
                for block in range(i // LANES * LANES, step, LANES):
                    add_scaled(flat, i * step + block, flat, k * step + block, times)
        root = np.sqrt(pivot)
        over[k] = 1.0 / root
        for j in range(k + 1, width):
            upper[k, j] *= over[k]
        upper[k, k] = root
    for i in range(width - 1, -1, -1):
        # Row i of the inverse: its squares add up to the diagonal entry of the inverse of R'R.
        inverse[i] = 0.0
        inverse[i, i] = 1.0
        for k in range(i + 1, width):
            if upper[i, k] != 0.0:
                for block in range(k // LANES * LANES, step, LANES):
                    add_scaled(other, i * step + block, other, k * step + block, -upper[i, k])
        total = 0.0
        for j in range(i, width):
            inverse[i, j] *= over[i]
            total += inverse[i, j] * inverse[i, j]
        if not total <= safe:
            return False
    for i in range(width):
        for j in range(i, width):
            upper[i, j] *= scale[j]
    return True


@compiled
def factor_precisely(width, head, body, most, places, centres, highs, lows):  # type: ignore[no-untyped-def]
    """Write the factors of some entries with twice the digits, upper triangles row by row."""
    step = (width + LANES - 1) // LANES * LANES
    near, seen = np.zeros((max(most, 1), step)), np.empty((3, step))
    wide, centre = np.empty((2, width * width)), np.empty(width)
    left_over, scale = np.empty(width), np.empty(width)
    for number in range(places.size):
        line = head[places[number]]
        kind, count, at = int(line[3]), int(line[1]), int(line[4])
        if kind == ROWS:
            begin_range(seen)
            weighted = read_rows(body, at, count, near, 0, seen)
            measure(near, count, width, centres[places[number]])
            high, low = np.zeros((width, width)), np.zeros((width, width))
            add_precisely(near, count, width, weighted, high, low)
        else:
            unpack(width, body, at, kind, centre, wide, 0)
            high, low = wide[0].copy().reshape(width, width), wide[1].copy().reshape(width, width)
        for i in range(width):
            # A power of two close to the size of the column.
            scale[i] = math.ldexp(1.0, -math.frexp(np.sqrt(high[i, i]))[1]) if high[i, i] > 0.0 else 1.0
        for i in range(width):
            for j in range(width):
                high[i, j] *= scale[i] * scale[j]
                low[i, j] *= scale[i] * scale[j]
        cholesky(high, low, width, 0, 0.0, NOISE, width, left_over)
        for i in range(width):
            for j in range(width):
                high[i, j] /= scale[j]
                low[i, j] /= scale[j]
        pack(high, width, highs[number], 0)
        pack(low, width, lows[number], 0)
