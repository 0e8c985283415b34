"""Adding rows, with signs, to rows of a small matrix: the compiled work of `sparse_sign` and `count_sketch`.

Every entry of the sketch receives its summands in the order of the rows, one by one. So its bits depend neither on how
the rows are cut into blocks nor on how they are held: rows from a dense array, a tile or a sparse array give the same.

A matrix is held flat, in groups of eight columns: the number at (row r, column c) is at
`(c // 8) · group + r · row + c % 8` for two strides `group` and `row`. With `group` = 8 that is the ordinary order by
rows; with `row` = 8 the groups follow one another, and one group of a sketch stays in the first-level cache while the
rows of a strip are added to it. Kernels take such a matrix as `held`: (numbers, group, row, groups of columns); and
`random`: (key0, key1, stream).

Plainly, S is a sparse matrix and SciPy multiplies: six times as long for eight places per row, twice for one (65,536
rows of 40 columns, `python -m benchmarks.kernels`), the order of the sums being SciPy's.
"""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import AHEAD, LANES, copy_groups, fetch, transpose_eight
from partsketch.sketches.kernels.scatter_lanes import add_pair_to_eight, add_row, add_to_each, add_to_eight
from partsketch.sketches.random import LOW_WORD, WORD_BITS, fill_single_words, philox

#: Rows worked on at a time: their copy stays in the second-level cache.
STRIP_ROWS = 256

#: Up to this many features rows are read where they lie, once for every two groups of eight columns; of wider ones a
#: copy is made that lies closer together.
WIDEST_DIRECT = 128

_ONE = np.uint64(1)


@compiled
def draw_single_targets(key0, key1, stream, row_numbers, size, targets, signs):  # type: ignore[no-untyped-def]
    """Fill the first row of `targets` with a sketch row for each row, and that of `signs` with ±1.

    Row numbers increase. One word is all a row needs, so four rows take theirs from one counter.
    """
    count = row_numbers.shape[0]
    words = np.empty(count + 6, np.uint64)
    skipped = fill_single_words(key0, key1, stream, row_numbers, 0, words)
    many = np.uint64(size)
    for i in range(count):
        word = words[skipped + i]
        signs[0, i] = 1.0 - 2.0 * np.float64(np.int64(word & _ONE))
        targets[0, i] = np.int64((word * many) >> WORD_BITS)


@compiled
def draw_targets(key0, key1, stream, row_numbers, size, targets, signs):  # type: ignore[no-untyped-def]
    """Fill `targets` (int64, non-zeros × rows or more) with distinct sketch rows for each row, and `signs` with ±1.

    A 32-bit word gives both: its lowest bit the sign, the word divided by 2³² the place. Places are distinct by Floyd's
    algorithm, which takes the j-th from the first m − s + j rows and the last of these if it is taken already; every
    set of s rows is equally likely, up to the m/2³² that dividing costs.
    """
    sparsity, count = targets.shape[0], row_numbers.shape[0]
    if sparsity == 1 and count:
        draw_single_targets(key0, key1, stream, row_numbers, size, targets, signs)
        return
    for first in range(0, sparsity, 4):
        word = np.uint64(first // 4)
        for i in range(count):
            row = np.uint64(row_numbers[i])
            x0, x1, x2, x3 = philox(row & LOW_WORD, row >> WORD_BITS, word, stream, key0, key1)
            targets[first, i] = np.int64(x0)
            if first + 1 < sparsity:
                targets[first + 1, i] = np.int64(x1)
            if first + 2 < sparsity:
                targets[first + 2, i] = np.int64(x2)
            if first + 3 < sparsity:
                targets[first + 3, i] = np.int64(x3)
    for j in range(sparsity):
        last = np.int64(size - sparsity + j)
        for i in range(count):
            word = np.uint64(targets[j, i])
            signs[j, i] = 1.0 - 2.0 * np.float64(np.int64(word & _ONE))
            targets[j, i] = np.int64((word * np.uint64(last + 1)) >> WORD_BITS)
        for earlier in range(j):
            for i in range(count):
                targets[j, i] = last if targets[earlier, i] == targets[j, i] else targets[j, i]


@compiled
def place_tile(out, group, row, tile, begin, count, intercept, width):  # type: ignore[no-untyped-def]
    """Write rows of a tile, held as its columns [1, features, targets], in the order [features, targets, 1]."""
    for c in range(width):
        p = (c + width - intercept) % width
        at = (p >> 3) * group + (p & 7)
        for i in range(count):
            out[at + i * row] = tile[c, begin + i]


@compiled
def _scatter(held, strip, strip_group, places, signs, count, after, start_after):  # type: ignore[no-untyped-def]
    """Add the rows of a strip to their targets, one group of columns after the other.

    Meanwhile memory is asked for what comes next, the numbers of `after` from `start_after` on.
    """
    out, group, row, groups = held
    sparsity, step = places.shape
    flat_places, flat_signs = places.reshape(-1), signs.reshape(-1)
    for b in range(groups):
        for i in range(count):
            fetch(after, start_after + (b * count + i) * LANES)
            start = b * strip_group + i * LANES
            add_to_each(out, b * group, row, flat_places, i, step, flat_signs, sparsity, strip, start)


@compiled
def _list_by_rows(places, signs, count, listed, listed_signs):  # type: ignore[no-untyped-def]
    """Write the eight targets of each row, in units of numbers, and their signs one after another."""
    step = places.shape[1]
    flat_places, flat_signs = places.reshape(-1), signs.reshape(-1)
    for i in range(0, count, LANES):
        transpose_eight(listed, LANES * i, LANES, flat_places, i, step)
        transpose_eight(listed_signs, LANES * i, LANES, flat_signs, i, step)
    for e in range(LANES * count):
        listed[e] *= LANES


@compiled
def _scatter_groups(held, base, listed, signs, count, given, after, start_after):  # type: ignore[no-untyped-def]
    """Do the work of `_scatter` with eight targets per row, two groups of columns at a time.

    They begin at `base` of the matrix. Of what is given, (values, start, row, apart), the groups of row i begin at
    start + i · row, `apart` from one another.
    """
    out, group, _, groups = held
    values, start, row, apart = given
    for b in range(0, groups - 1, 2):
        for i in range(count):
            fetch(after, start_after + (b * count + i) * LANES)
            fetch(after, start_after + ((b + 1) * count + i) * LANES)
            at = start + i * row + b * apart
            add_pair_to_eight(out, base + b * group, group, listed, signs, i * LANES, values, at, apart)
    if groups & 1:
        b = groups - 1
        for i in range(count):
            fetch(after, start_after + (b * count + i) * LANES)
            at = start + i * row + b * apart
            add_to_eight(out, base + b * group, group, listed, signs, i * LANES, values, at, apart)


@compiled
def scatter_dense(  # type: ignore[no-untyped-def]
    held, random, size, sparsity, row_numbers, features, targets, roots, intercept
):
    """Add the sketch of dense rows held one after another; `roots` are square roots of weights, or empty."""
    out, group, row, groups = held
    key0, key1, stream = random
    rows, width = features.shape
    given = targets.shape[1]
    flat = features.reshape(-1)
    few = min(STRIP_ROWS, rows)
    # With a single group of columns listing targets takes longer than it saves.
    eight = sparsity == LANES and groups > 1 and group < 2**32
    # Groups of features that are added from where they lie; the others, targets and the ones are copied first.
    direct = width >> 3 if eight and width <= WIDEST_DIRECT else 0
    copied = direct * LANES
    strip_group = (few + 1) * LANES
    strip = np.zeros((groups - direct) * strip_group)
    places = np.empty((sparsity, few + LANES), np.int64)
    signs = np.empty((sparsity, few + LANES))
    listed, listed_signs = np.empty(LANES * (few + LANES), np.uint32), np.empty(LANES * (few + LANES))
    for begin in range(0, rows, few):
        count = min(few, rows - begin)
        draw_targets(key0, key1, stream, row_numbers[begin : begin + count], size, places, signs)
        if roots.shape[0]:
            # Signs are ±1, so scaling them and scaling the rows give the same bits.
            for k in range(sparsity):
                for i in range(count):
                    signs[k, i] *= roots[begin + i]
        for i in range(count):
            start = (begin + i) * width + copied
            copy_groups(strip, i * LANES, strip_group, flat, start, width - copied, 1.0)
            for t in range(given):
                c = width + t - copied
                strip[(c >> 3) * strip_group + i * LANES + (c & 7)] = targets[begin + i, t]
            if intercept:
                c = width + given - copied
                strip[(c >> 3) * strip_group + i * LANES + (c & 7)] = 1.0
        first, after = begin * width, (begin + count) * width
        if not eight:
            _scatter(held, strip, strip_group, places, signs, count, flat, after)
            continue
        _list_by_rows(places, signs, count, listed, listed_signs)
        near, far = (out, group, row, direct), (out, group, row, groups - direct)
        _scatter_groups(near, 0, listed, listed_signs, count, (flat, first, width, LANES), flat, after)
        base, after = direct * group, after + direct * count * LANES
        _scatter_groups(far, base, listed, listed_signs, count, (strip, 0, LANES, strip_group), flat, after)


@compiled
def scatter_dense_once(  # type: ignore[no-untyped-def]
    held, random, size, row_numbers, features, targets, roots, intercept
):
    """Do as `scatter_dense` with one non-zero per row, and a sketch held by rows: nothing is copied first."""
    out, _, row, _ = held
    key0, key1, stream = random
    rows, width = features.shape
    flat = features.reshape(-1)
    few = min(STRIP_ROWS, rows)
    places, signs = np.empty((1, few), np.int64), np.empty((1, few))
    weighted = roots.shape[0] > 0
    # A loop of its own: asking for every row what there is besides features takes an eighth of the time.
    plain = not (weighted or intercept or targets.shape[1])
    for begin in range(0, rows, few):
        count = min(few, rows - begin)
        draw_targets(key0, key1, stream, row_numbers[begin : begin + count], size, places, signs)
        if plain:
            for i in range(count):
                add_row(out, places[0, i] * row, flat, (begin + i) * width, width, signs[0, i], AHEAD)
            continue
        for i in range(count):
            sign, at = signs[0, i], places[0, i] * row
            if weighted:
                sign *= roots[begin + i]
            add_row(out, at, flat, (begin + i) * width, width, sign, AHEAD)
            for t in range(targets.shape[1]):
                out[at + width + t] += sign * targets[begin + i, t]
            if intercept:
                out[at + width + targets.shape[1]] += sign


@compiled
def scatter_tile(held, random, size, sparsity, row_numbers, tile, width, intercept):  # type: ignore[no-untyped-def]
    """Add the sketch of a tile held as its columns, weights already applied."""
    groups = held[3]
    key0, key1, stream = random
    rows = row_numbers.shape[0]
    few = min(STRIP_ROWS, rows)
    strip_group = (few + 1) * LANES
    strip = np.zeros(groups * strip_group)
    places = np.empty((sparsity, few + LANES), np.int64)
    signs = np.empty((sparsity, few + LANES))
    for begin in range(0, rows, few):
        count = min(few, rows - begin)
        draw_targets(key0, key1, stream, row_numbers[begin : begin + count], size, places, signs)
        place_tile(strip, strip_group, LANES, tile, begin, count, intercept, width)
        _scatter(held, strip, strip_group, places, signs, count, strip, 0)


@compiled
def scatter_sparse(  # type: ignore[no-untyped-def]
    held, random, size, sparsity, row_numbers, rows_of, targets, roots, intercept, width
):
    """Add the sketch of sparse rows (values, columns, starts): a cost in proportion to their non-zeros."""
    out, group, row, _ = held
    key0, key1, stream = random
    values, columns, starts = rows_of
    rows = row_numbers.shape[0]
    few = min(STRIP_ROWS, rows)
    places = np.empty((sparsity, few + LANES), np.int64)
    signs = np.empty((sparsity, few + LANES))
    for begin in range(0, rows, few):
        count = min(few, rows - begin)
        draw_targets(key0, key1, stream, row_numbers[begin : begin + count], size, places, signs)
        for i in range(count):
            scale = 1.0 if roots.shape[0] == 0 else roots[begin + i]
            for k in range(sparsity):
                sign = scale * signs[k, i]
                at = places[k, i] * row
                for entry in range(starts[begin + i], starts[begin + i + 1]):
                    c = columns[entry]
                    out[at + (c >> 3) * group + (c & 7)] += sign * values[entry]
                for t in range(targets.shape[1]):
                    c = width + t
                    out[at + (c >> 3) * group + (c & 7)] += sign * targets[begin + i, t]
                if intercept:
                    c = width + targets.shape[1]
                    out[at + (c >> 3) * group + (c & 7)] += sign
