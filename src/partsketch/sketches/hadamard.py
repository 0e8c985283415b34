"""The compiled work of the randomised Hadamard transform: one pass over the rows, no transformed copy of them.

H[j, i] = (−1)^popcount(i & j) is a product over the bits of i and j. Cut the rows into blocks of 2^b: the low bits are
transformed within a block, in the cache, and the high bits only decide with which sign the block's transform is added
to a sampled row. Per number that is b additions for the block and m/2^b for the m sampled rows, instead of log₂ P and a
copy of everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from partsketch.sketches.counter_random import _LOW, _32, _philox
from partsketch.sketches.lanes import (
    AHEAD,
    LANES,
    add_scaled,
    copy_groups,
    fetch_all,
    transform_2,
    transform_4,
    transform_16,
)

_ONE = np.uint64(1)


def _compiled(function: Any) -> Any:
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def _within(function: Any) -> Any:
    return njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function)


@_compiled
def transform_block(block, rows, stride):  # type: ignore[no-untyped-def]
    """Transform a power of two of rows in place, sixteen, four or two at a time; `stride` numbers from row to row."""
    step = 1
    while step < rows:
        radix = 16 if 16 * step <= rows else 4 if 4 * step <= rows else 2
        for first in range(0, rows, radix * step):
            for i in range(first, first + step):
                for at in range(i * stride, (i + 1) * stride, LANES):
                    if radix == 16:
                        transform_16(block, at, step * stride)
                    elif radix == 4:
                        transform_4(block, at, step * stride)
                    else:
                        transform_2(block, at, step * stride)
        step *= radix


@_within
def parity(number):  # type: ignore[no-untyped-def]
    """Return whether an odd number of bits is set."""
    number ^= number >> 32
    number ^= number >> 16
    number ^= number >> 8
    number ^= number >> 4
    number ^= number >> 2
    number ^= number >> 1
    return number & 1


@_compiled
def flush_block(total, kept, block, bits, stride, number, filled):  # type: ignore[no-untyped-def]
    """Transform block `number`, of which the first `filled` rows are there, and add it to the sampled rows."""
    rows = 1 << bits
    block[filled * stride : rows * stride] = 0.0
    transform_block(block, rows, stride)
    for j in range(kept.shape[0]):
        sign = 1.0 - 2.0 * parity((kept[j] >> bits) & number)
        start = (kept[j] & (rows - 1)) * stride
        for b in range(0, stride, LANES):
            add_scaled(total, j * stride + b, block, start + b, sign)


@_compiled
def fill_signs(key0, key1, stream, positions, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the random sign, ±1, of every position."""
    for i in range(positions.shape[0]):
        row = np.uint64(positions[i])
        x0, _x1, _x2, _x3 = _philox(row & _LOW, row >> _32, np.uint64(0), stream, key0, key1)
        out[i] = 1.0 - 2.0 * np.float64(np.int64(x0 & _ONE))


@_within
def _advance(total, kept, block, bits, stride, state, position):  # type: ignore[no-untyped-def]
    """Make room for the row at a position of the stream: finish its predecessors' block, write zeros for absent rows.

    `state` is (number of the block or −1, rows of it that are there).
    """
    number = position >> bits
    if number != state[0]:
        if state[0] >= 0:
            flush_block(total, kept, block, bits, stride, state[0], state[1])
        state[0], state[1] = number, 0
    place = position & ((1 << bits) - 1)
    if place > state[1]:
        block[state[1] * stride : place * stride] = 0.0
    state[1] = place + 1
    return place


@_compiled
def add_dense(  # type: ignore[no-untyped-def]
    total, kept, block, bits, stride, state, positions, scales, features, targets, intercept
):
    """Take dense rows at positions of the stream; `scales` are signs times square roots of weights."""
    flat = features.reshape(-1)
    rows, width = features.shape
    given = targets.shape[1]
    begin = 0
    while begin < rows:
        first = _advance(total, kept, block, bits, stride, state, positions[begin])
        # Rows that follow one another are placed together, as far as the block goes; positions only ever rise.
        count = min(rows - begin, (1 << bits) - first)
        while positions[begin + count - 1] != positions[begin] + count - 1:
            count = (count + 1) >> 1
        for i in range(begin, begin + count):
            at = (first + i - begin) * stride
            fetch_all(flat, i * width + AHEAD, width)
            copy_groups(block, at, LANES, flat, i * width, width, scales[i])
            for t in range(given):
                block[at + width + t] = scales[i] * targets[i, t]
            if intercept:
                block[at + width + given] = scales[i]
        state[1] = first + count
        begin += count


@_compiled
def add_sparse(  # type: ignore[no-untyped-def]
    total, kept, block, bits, stride, state, positions, scales, features, targets, intercept, width
):
    """Take sparse rows (values, columns, starts)."""
    values, columns, starts = features
    for i in range(positions.shape[0]):
        at = _advance(total, kept, block, bits, stride, state, positions[i]) * stride
        block[at : at + stride] = 0.0
        for entry in range(starts[i], starts[i + 1]):
            block[at + columns[entry]] = scales[i] * values[entry]
        for t in range(targets.shape[1]):
            block[at + width + t] = scales[i] * targets[i, t]
        if intercept:
            block[at + width + targets.shape[1]] = scales[i]


@_compiled
def add_tile(  # type: ignore[no-untyped-def]
    total, kept, block, bits, stride, state, positions, scales, tile, width, intercept
):
    """Take a tile held as its columns [1, features, targets]."""
    for i in range(positions.shape[0]):
        at = _advance(total, kept, block, bits, stride, state, positions[i]) * stride
        for c in range(width):
            block[at + (c + width - intercept) % width] = scales[i] * tile[c, i]
