"""The factors of groups, from their entries."""

from __future__ import annotations

import math

import numpy as np

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import NOISE, cholesky
from partsketch.common.linalg.lanes import LANES
from partsketch.sketches.kernels.group_lanes import subtract_products, sum_of_squares
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
    sums, upper, inverse, lines = (
        np.zeros((step, step)),
        np.zeros((step, step)),
        np.zeros((step, step)),
        np.zeros((2, step)),
    )
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
        trusted[number] = kind != PRECISE and _factor(sums, width, safe, upper, inverse, lines)
        if trusted[number]:
            pack(upper, width, factors[number], 0)


@compiled
def _factor(sums, width, safe, upper, inverse, lines):  # type: ignore[no-untyped-def]
    """Write the upper triangular factor of sums of products, and tell whether doubles are enough for it."""
    step = sums.shape[1]
    # Sizes of the columns, and one by the diagonal; zeros behind them.
    scale, over = lines
    for i in range(width):
        if not sums[i, i] > 0.0:
            return False
        scale[i] = np.sqrt(sums[i, i])
        over[i] = 1.0 / scale[i]
    # Whole blocks of eight numbers: what lies left of the diagonal in them is never used.
    for i in range(width):
        for j in range(i // LANES * LANES, step):
            upper[i, j] = sums[i, j] * over[i] * over[j]
    flat = upper.reshape(-1)
    for k in range(width):
        for left in range(k // LANES * LANES, step, LANES):
            subtract_products(flat, k * step + left, flat, k, step, flat, left, step, k)
        pivot = upper[k, k]
        if not pivot * safe > 1.0:
            return False
        root = np.sqrt(pivot)
        over[k] = 1.0 / root
        for j in range(k // LANES * LANES, step):
            upper[k, j] *= over[k]
        upper[k, k] = root
    if not _is_safe(upper, width, over, safe, inverse):
        return False
    for i in range(width):
        for j in range(i // LANES * LANES, step):
            upper[i, j] *= scale[j]
    return True


@compiled
def _is_safe(upper, width, over, safe, inverse):  # type: ignore[no-untyped-def]
    """Tell whether the inverse of R'R has at most `safe` on its diagonal; `over` is one by the diagonal of R."""
    step = upper.shape[1]
    flat, other = upper.reshape(-1), inverse.reshape(-1)
    for i in range(width - 1, -1, -1):
        # Row i of the inverse of R: its squares add up to the diagonal entry of the inverse of R'R.
        first = i // LANES * LANES
        for j in range(step):
            inverse[i, j] = 0.0
        inverse[i, i] = 1.0
        for left in range(first, step, LANES):
            given = (i * step + i + 1, (i + 1) * step + left)
            subtract_products(other, i * step + left, flat, given[0], 1, other, given[1], step, width - 1 - i)
        for j in range(first, step):
            inverse[i, j] *= over[i]
        if not sum_of_squares(other, i * step + first, (step - first) // LANES) <= safe:
            return False
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
