"""The compiled work of the randomised Hadamard transform: one pass over the rows, no transformed copy of them.

H[j, i] = (−1)^popcount(i & j) is a product over the bits of i and j. Cut the rows into blocks of 2^b: the low bits are
transformed within a block, in the cache, and the high bits only decide with which sign the block's transform is added
to a sampled row. Per number that is b additions for the block and m/2^b for the m sampled rows, instead of log₂ P and a
copy of everything. Plainly, in NumPy, with all log₂ P stages over a copy, it takes about ninety times as long (65,536
rows of 40 columns to 300, `python -m benchmarks.kernels`).

Kernels take two tuples that an accumulator makes once. `work` is (total, kept, block, bits, stride): the sums, which
rows of the transform are sampled, the block of 2^bits rows, and the numbers from row to row in both. `taking` is
(state, words, scales, random, first_row): what is in the block, room for random words and for signs, the random
numbers, and the first row number.
"""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.compiled import compiled, compiled_with
from partsketch.common.linalg.lanes import (
    AHEAD,
    LANES,
    add_scaled,
    copy_groups,
    fetch_all,
    transform_2,
    transform_4,
    transform_16,
)
from partsketch.sketches.random import fill_single_words

_ONE = np.uint64(1)


_within = compiled_with(forceinline=True)


@compiled
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


@compiled
def flush_block(work, number, filled):  # type: ignore[no-untyped-def]
    """Transform block `number`, of which the first `filled` rows are there, and add it to the sampled rows."""
    total, kept, block, bits, stride = work
    rows = 1 << bits
    block[filled * stride : rows * stride] = 0.0
    transform_block(block, rows, stride)
    for j in range(kept.shape[0]):
        sign = 1.0 - 2.0 * parity((kept[j] >> bits) & number)
        start = (kept[j] & (rows - 1)) * stride
        for b in range(0, stride, LANES):
            add_scaled(total, j * stride + b, block, start + b, sign)


@compiled
def fill_signs(random, row_numbers, first, words, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the random sign, ±1, of every row, counted from `first` on; `words` has room for six more."""
    key0, key1, stream = random
    skipped = fill_single_words(key0, key1, stream, row_numbers, first, words)
    for i in range(row_numbers.shape[0]):
        out[i] = 1.0 - 2.0 * np.float64(np.int64(words[skipped + i] & _ONE))


@_within
def _advance(work, state, position):  # type: ignore[no-untyped-def]
    """Make room for the row at a position of the stream: finish its predecessors' block, write zeros for absent rows.

    `state` is (number of the block or −1, rows of it that are there).
    """
    _, _, block, bits, stride = work
    number = position >> bits
    if number != state[0]:
        if state[0] >= 0:
            flush_block(work, state[0], state[1])
        state[0], state[1] = number, 0
    place = position & ((1 << bits) - 1)
    if place > state[1]:
        block[state[1] * stride : place * stride] = 0.0
    state[1] = place + 1
    return place


@compiled
def add_dense(work, taking, row_numbers, roots, features, targets, intercept):  # type: ignore[no-untyped-def]
    """Take dense rows, counted from `first_row` on; `roots` are square roots of weights, or empty."""
    _, _, block, bits, stride = work
    state, words, scales, random, first_row = taking
    flat = features.reshape(-1)
    rows, width = features.shape
    given = targets.shape[1]
    begin = 0
    while begin < rows:
        position = row_numbers[begin] - first_row
        first = _advance(work, state, position)
        # Rows that follow one another are placed together, as far as the block goes; positions only ever rise.
        count = min(rows - begin, (1 << bits) - first)
        while row_numbers[begin + count - 1] - first_row != position + count - 1:
            count = (count + 1) >> 1
        fill_signs(random, row_numbers[begin : begin + count], first_row, words, scales)
        for i in range(count):
            row = begin + i
            at = (first + i) * stride
            scale = scales[i] * roots[row] if roots.shape[0] else scales[i]
            fetch_all(flat, row * width + AHEAD, width)
            copy_groups(block, at, LANES, flat, row * width, width, scale)
            for t in range(given):
                block[at + width + t] = scale * targets[row, t]
            if intercept:
                block[at + width + given] = scale
        state[1] = first + count
        begin += count


@compiled
def add_sparse(work, taking, row_numbers, roots, features, targets, intercept, width):  # type: ignore[no-untyped-def]
    """Take sparse rows (values, columns, starts)."""
    _, _, block, _, stride = work
    state, words, scales, random, first_row = taking
    values, columns, starts = features
    few = scales.shape[0]
    for i in range(row_numbers.shape[0]):
        if i % few == 0:
            fill_signs(random, row_numbers[i : i + few], first_row, words, scales)
        at = _advance(work, state, row_numbers[i] - first_row) * stride
        scale = scales[i % few] * roots[i] if roots.shape[0] else scales[i % few]
        block[at : at + stride] = 0.0
        for entry in range(starts[i], starts[i + 1]):
            block[at + columns[entry]] = scale * values[entry]
        for t in range(targets.shape[1]):
            block[at + width + t] = scale * targets[i, t]
        if intercept:
            block[at + width + targets.shape[1]] = scale


@compiled
def add_tile(work, taking, row_numbers, tile, width, intercept):  # type: ignore[no-untyped-def]
    """Take a tile held as its columns [1, features, targets], weights already applied."""
    _, _, block, _, stride = work
    state, words, scales, random, first_row = taking
    few = scales.shape[0]
    for i in range(row_numbers.shape[0]):
        if i % few == 0:
            fill_signs(random, row_numbers[i : i + few], first_row, words, scales)
        at = _advance(work, state, row_numbers[i] - first_row) * stride
        for c in range(width):
            block[at + (c + width - intercept) % width] = scales[i % few] * tile[c, i]
