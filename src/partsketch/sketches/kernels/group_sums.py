"""Sums of products of the columns of groups of rows, each around a value in its own middle.

Rows are padded to whole vectors. Their first number is the root of their weight, one where every row counts once.
"""

from __future__ import annotations

import math

import numpy as np

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import add_gram, fused
from partsketch.common.linalg.lanes import LANES, add_scaled, fetch_all
from partsketch.sketches.kernels.group_lanes import add_block, see_block

#: Kinds of entries: the rows themselves; centre and sums of products; the same with what doubles leave out of the sums.
ROWS, SUMS, PRECISE = 0, 1, 2
#: Numbers of the head of an entry: group, rows, weight, kind, and where its numbers begin.
HEAD = 5
#: Of a column that others explain up to a smaller part than this, a Gram matrix in doubles keeps too few digits.
SAFE_PIVOT = 1e-4
#: Rows whose columns are multiplied at once: they stay in the first-level cache.
_AT_ONCE = 128
#: Rows of a group that are measured from its centre at once.
NEAR_ROWS = 512
#: Numbers behind those that are multiplied that are asked for: most of the next group is there when its turn comes.
_AHEAD = 24 * 1024


@compiled
def begin_range(seen):  # type: ignore[no-untyped-def]
    """Prepare to note least and largest values, and what is not finite."""
    seen[0], seen[1], seen[2] = np.inf, -np.inf, 0.0


@compiled
def see_rows(flat, at, count, step, seen):  # type: ignore[no-untyped-def]
    """Note the range of rows that lie one after another."""
    noted = seen.reshape(-1)
    for begin in range(0, count, _AT_ONCE):
        for block in range(step // LANES):
            see_block(flat, at + begin * step, min(_AT_ONCE, count - begin), step, block, noted)


@compiled
def find_centre(width, seen, centre):  # type: ignore[no-untyped-def]
    """Write what is taken off the columns of a group: nothing off the first; tell whether anything is.

    A column is measured from a value close to its middle if all its values lie within a factor of two of that value:
    such a difference has no rounding. The value has few digits, so that the rows of a group in other segments are
    measured from the same one unless they lie elsewhere.
    """
    moves = False
    centre[0] = 0.0
    for j in range(1, width):
        low, high = seen[0, j], seen[1, j]
        near, far = (low, high) if low > 0.0 else (-high, -low)
        centre[j] = 0.0
        if near > 0.0 and far <= 4.0 * near:
            middle = 0.5 * near + 0.5 * far
            if far > near:
                # A power of two, four to eight times as large as what the values differ by.
                grid = math.ldexp(1.0, math.frexp(4.0 * (far - near))[1])
                middle = np.rint(middle / grid) * grid
            if near >= 0.5 * middle and far <= 2.0 * middle:
                centre[j] = middle if low > 0.0 else -middle
                moves = True
    return moves


@compiled
def measure(near, count, width, centre):  # type: ignore[no-untyped-def]
    """Take the centre off rows."""
    for place in range(count):
        for j in range(1, width):
            near[place, j] -= centre[j]


@compiled
def _weigh(near, count, width):  # type: ignore[no-untyped-def]
    """Multiply rows by the roots of their weights."""
    for place in range(count):
        for j in range(1, width):
            near[place, j] *= near[place, 0]


@compiled
def add_products(measured, count, width, weighted, out):  # type: ignore[no-untyped-def]
    """Add the products of the columns of some rows, the upper triangle in whole blocks."""
    add_products_ahead(measured, count, width, weighted, np.int64(0), out)


@compiled
def add_products_ahead(measured, count, width, weighted, ahead, out):  # type: ignore[no-untyped-def]
    """Do the same, and ask for the numbers so far behind those rows: what is multiplied next, not copies of it."""
    near = measured
    if weighted:
        near = measured[:count].copy()
        _weigh(near, count, width)
    step = near.shape[1]
    flat, sums = near.reshape(-1), out.reshape(-1)
    for begin in range(0, count, _AT_ONCE):
        here = min(_AT_ONCE, count - begin)
        for left in range(0, step, LANES):
            for right in range(left, step, LANES):
                add_block(flat, begin * step, step, here, left, right, ahead, sums, left * step + right)


@compiled
def is_doubtful(sums, width, work):  # type: ignore[no-untyped-def]
    """Tell whether a column varies little beside its place, or is nearly explained by those before it.

    Columns that are zero, around their centre, are left aside.
    """
    step = sums.shape[1]
    work[:, :] = sums
    flat = work.reshape(-1)
    for k in range(width):
        pivot = work[k, k]
        if k == 0:
            if not pivot > 0.0:
                return False
        elif sums[k, k] == 0.0:
            continue
        elif not pivot >= SAFE_PIVOT * (sums[k, k] - sums[0, k] * (sums[0, k] / sums[0, 0])):
            return True
        for i in range(k + 1, width):
            times = -work[k, i] / pivot
            if times != 0.0:
                for block in range(i // LANES * LANES, step, LANES):
                    add_scaled(flat, i * step + block, flat, k * step + block, times)
        if k == 0:
            for i in range(1, width):
                if sums[i, i] > 0.0 and not work[i, i] >= SAFE_PIVOT * sums[i, i]:
                    return True
    return False


@compiled
def pack(sums, width, out, at):  # type: ignore[no-untyped-def]
    """Write the upper triangle, row by row, and return where it ends."""
    for i in range(width):
        for j in range(i, width):
            out[at] = sums[i, j]
            at += 1
    return at


@compiled
def write_sums(rows, count, width, weighted, centre, near, sums, work, out, at):  # type: ignore[no-untyped-def]
    """Write centre and sums of rows; return where they end, and their kind.

    `near` is room for rows around the centre; there is none where they have been measured already. Sums are made
    without rounding where doubles do not tell the columns apart.
    """
    for j in range(width):
        out[at + j] = centre[j]
    at += width
    sums[:, :] = 0.0
    ahead = np.int64(0 if weighted or near.shape[0] else _AHEAD)
    for begin in range(0, count, NEAR_ROWS):
        here = min(NEAR_ROWS, count - begin)
        add_products_ahead(_measured(rows, begin, here, width, centre, near), here, width, weighted, ahead, sums)
    if not is_doubtful(sums, width, work):
        return pack(sums, width, out, at), SUMS
    high, low = np.zeros((width, width)), np.zeros((width, width))
    for begin in range(0, count, NEAR_ROWS):
        here = min(NEAR_ROWS, count - begin)
        add_precisely(_measured(rows, begin, here, width, centre, near), here, width, weighted, high, low)
    return pack(low, width, out, pack(high, width, out, at)), PRECISE


@compiled
def _measured(rows, begin, count, width, centre, near):  # type: ignore[no-untyped-def]
    """Return some rows, less the centre if there is room for that."""
    if not near.shape[0]:
        return rows[begin : begin + count]
    flat = rows.reshape(-1)
    for place in range(count):
        fetch_all(flat, (begin + place) * rows.shape[1] + _AHEAD, rows.shape[1])
        for j in range(width):
            near[place, j] = rows[begin + place, j] - centre[j]
    return near


@compiled
def add_precisely(near, count, width, weighted, high, low):  # type: ignore[no-untyped-def]
    """Add the sums of products of measured rows with twice the digits."""
    rows = near[:count, :width].copy()
    rest = np.zeros_like(rows)
    if weighted:
        for place in range(count):
            root = rows[place, 0]
            for j in range(1, width):
                value = rows[place, j] * root
                rest[place, j] = fused(rows[place, j], root, -value)
                rows[place, j] = value
    add_gram(rows, rest, high, low)


@compiled
def write_segment(rows, width, starts, weighted, most, head, body, ends):  # type: ignore[no-untyped-def]
    """Write kind, place and numbers of every group's entry; return how many numbers there are.

    Rows lie in the order of their groups. Groups of at most `most` rows keep them. `ends` gets the least and largest
    value of every column, and zeros.
    """
    step = rows.shape[1]
    flat = rows.reshape(-1)
    near = np.zeros((NEAR_ROWS, step))
    seen, centre = np.empty((3, step)), np.empty(width)
    sums, work = np.zeros((step, step)), np.empty((step, step))
    begin_range(ends)
    # A plain 0 is a type of its own to the compiler: all that it is given to would be compiled once more.
    used = np.int64(0)
    for group in range(starts.size - 1):
        first, count = starts[group], starts[group + 1] - starts[group]
        head[group, 4] = used
        begin_range(seen)
        see_rows(flat, first * step, count, step, seen)
        for j in range(step):
            ends[0, j], ends[1, j] = min(ends[0, j], seen[0, j]), max(ends[1, j], seen[1, j])
            ends[2, j] += seen[2, j]
        if count <= most:
            for place in range(count * step):
                body[used + place] = flat[first * step + place]
            used += count * step
            head[group, 3] = ROWS
        else:
            room = near if find_centre(width, seen, centre) else near[:0]
            of_group = rows[first : first + count]
            used, head[group, 3] = write_sums(of_group, count, width, weighted, centre, room, sums, work, body, used)
    return used
