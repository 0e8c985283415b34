"""Sums of products of the columns of many groups of rows, each around a value in its own middle."""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.column_kernels import add_products
from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import fused
from partsketch.common.linalg.lanes import LANES, fetch_all, transpose_eight

#: Of a column that others explain up to a smaller part than this, a Gram matrix in doubles keeps too few digits.
SAFE_PIVOT = 1e-4
#: A column that varies by a smaller part of its squares than this does not vary.
_NOTHING = 1e-20
#: So many rows before they are needed, rows are asked for.
_AHEAD = 8
#: Numbers at the beginning of a line: those of group, rows, weight and columns.
HEAD = 4


@compiled
def _see(rows, order, first, last, low, high, near):  # type: ignore[no-untyped-def]
    """Find the least and largest value of every column of a group, and keep a copy of its last rows."""
    width = rows.shape[1]
    flat = rows.reshape(-1)
    for j in range(width):
        low[j] = high[j] = rows[order[first], j]
    for begin in range(first, last, near.shape[0]):
        for place in range(min(near.shape[0], last - begin)):
            # Rows of a group lie anywhere: those that come next are asked for, also those of the next group.
            fetch_all(flat, order[min(begin + place + _AHEAD, order.size - 1)] * width, width)
            row, kept = rows[order[begin + place]], near[place]
            for j in range(width):
                value = row[j]
                kept[j] = value
                low[j] = value if value < low[j] else low[j]
                high[j] = value if value > high[j] else high[j]


@compiled
def _find_centre(low, high, centre):  # type: ignore[no-untyped-def]
    """Write what is taken off the columns of a group: nothing off the first, which are ones; tell whether that counts.

    A column whose values all lie within a factor of two is measured from their middle: such a difference has no
    rounding. All others are taken as they are.
    """
    moves = False
    centre[0] = 0.0
    for j in range(1, low.size):
        near, far = (low[j], high[j]) if low[j] > 0.0 else (-high[j], -low[j])
        centre[j] = 0.5 * low[j] + 0.5 * high[j] if near > 0.0 and far <= 2.0 * near else 0.0
        moves = moves or centre[j] != 0.0
    return moves


@compiled
def _turn(near, count, flat, step):  # type: ignore[no-untyped-def]
    """Write the columns of some rows one after another."""
    width = near.shape[1]
    values = near.reshape(-1)
    whole = count & -LANES if width >= LANES else 0
    for place in range(0, whole, LANES):
        for left in range(0, width, LANES):
            # The last eight columns may have been written in part: again, with the same numbers.
            column = min(left, width - LANES)
            transpose_eight(flat, column * step + place, step, values, place * width + column, width)
    for place in range(whole, count):
        for j in range(width):
            flat[j * step + place] = near[place, j]


@compiled
def sum_groups(rows, roots, order, starts, strip, centre, sums, ends):  # type: ignore[no-untyped-def]
    """Fill centres, sums of products, and the least and largest value of every column.

    `rows` has a column of ones first, `order` the rows group by group. `strip` has room for the columns of some rows,
    one after another; the padding, its last columns, is zero.
    """
    width = rows.shape[1]
    low, high = np.empty(width), np.empty(width)
    padded, step = strip.shape
    most = step - LANES
    flat = strip.reshape(-1)
    near = np.empty((most, width))
    out = np.zeros((padded, padded))
    addresses = np.empty(padded, np.int64)
    for column in range(padded):
        addresses[column] = strip.ctypes.data + 8 * column * step
    for group in range(starts.size - 1):
        first, last = starts[group], starts[group + 1]
        _see(rows, order, first, last, low, high, near)
        moves = _find_centre(low, high, centre[group])
        for j in range(width):
            ends[0, j] = low[j] if low[j] < ends[0, j] else ends[0, j]
            ends[1, j] = high[j] if high[j] > ends[1, j] else ends[1, j]
        out[:] = 0.0
        for begin in range(first, last, most):
            count = min(most, last - begin)
            if last - first > most:
                for place in range(count):
                    near[place] = rows[order[begin + place]]
            if moves:
                for place in range(count):
                    near[place] -= centre[group]
            _turn(near, count, flat, step)
            if roots.size:
                for j in range(width):
                    for place in range(count):
                        strip[j, place] *= roots[order[begin + place]]
            add_products(addresses, np.int64(0), count, out)
        for i in range(width):
            for j in range(i, width):
                sums[group, i, j] = sums[group, j, i] = out[i, j]


@compiled
def smallest_pivot(sums, counted, work):  # type: ignore[no-untyped-def]
    """Return the smallest part of a column that those before it leave; columns that do not vary are left aside."""
    width = sums.shape[0]
    work[:, :] = sums
    least = 1.0
    for k in range(width):
        before = counted[k] if k else work[0, 0]
        pivot = work[k, k]
        if k and pivot <= _NOTHING * sums[k, k]:
            continue
        if k == 0:
            if pivot <= 0.0:
                return 1.0
        elif before > 0.0:
            share = pivot / before
            if not share > 1e-14:
                return 0.0
            least = min(least, share)
        for i in range(k + 1, width):
            factor = work[k, i] / pivot
            for j in range(i, width):
                work[i, j] -= factor * work[k, j]
        if k == 0:
            for i in range(1, width):
                counted[i] = work[i, i]
    return least


@compiled
def doubtful_groups(sums, rows_of, doubtful):  # type: ignore[no-untyped-def]
    """Mark the groups with more rows than columns whose columns doubles do not tell apart."""
    width = sums.shape[1]
    work, counted = np.empty((width, width)), np.empty(width)
    for group in range(sums.shape[0]):
        doubtful[group] = rows_of[group] > width and smallest_pivot(sums[group], counted, work) < SAFE_PIVOT


@compiled
def add_groups(first, second, width, out):  # type: ignore[no-untyped-def]
    """Merge two tables, sorted by group, of number, rows, weight, columns, centre and sums.

    Tables with twice the digits have the low parts of the sums behind them.
    """
    i = j = count = 0
    shifts = np.zeros((2, width))
    area = width * width
    base = HEAD + width
    precise = out.shape[1] > base + area
    work, rest = np.empty((2, area)), np.empty((2, area))
    while i < first.shape[0] or j < second.shape[0]:
        if j == second.shape[0] or (i < first.shape[0] and first[i, 0] < second[j, 0]):
            out[count] = first[i]
            i += 1
        elif i == first.shape[0] or second[j, 0] < first[i, 0]:
            out[count] = second[j]
            j += 1
        else:
            line, one, other = out[count], first[i], second[j]
            line[0] = one[0]
            line[1] = one[1] + other[1]
            line[2] = one[2] + other[2]
            line[3] = one[3]
            moves = False
            for c in range(HEAD, base):
                kept = one[c] if one[c] != 0.0 else other[c]
                line[c] = kept
                shifts[0, c - HEAD], shifts[1, c - HEAD] = one[c] - kept, other[c] - kept
                moves = moves or shifts[0, c - HEAD] != 0.0 or shifts[1, c - HEAD] != 0.0
            if moves or precise:
                _move(one[base:], shifts[0], precise, work[0], rest[0])
                _move(other[base:], shifts[1], precise, work[1], rest[1])
                for place in range(area):
                    high, low = _sum(work[0, place], rest[0, place], work[1, place], rest[1, place])
                    line[base + place] = high
                    if precise:
                        line[base + area + place] = low
            else:
                for place in range(base, base + area):
                    line[place] = one[place] + other[place]
            i += 1
            j += 1
        count += 1


@compiled
def _sum(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """Return the sum of two numbers of two doubles each."""
    total = high + other_high
    part = total - high
    rest = ((high - (total - part)) + (other_high - part)) + (low + other_low)
    whole = total + rest
    return whole, rest - (whole - total)


@compiled
def _move(sums, shift, precise, high, low):  # type: ignore[no-untyped-def]
    """Write sums of products, of two doubles each, after `shift` times the ones was added to the columns."""
    width = shift.size
    area = width * width
    for place in range(area):
        high[place] = sums[place]
        low[place] = sums[area + place] if precise else 0.0
    # Columns first, then rows: what was added to the first row by then is moved as well.
    for a in range(width):
        for b in range(1, width):
            if shift[b] != 0.0:
                _add_multiple(high, low, a * width + b, a * width, shift[b])
    for a in range(1, width):
        if shift[a] != 0.0:
            for b in range(width):
                _add_multiple(high, low, a * width + b, b, shift[a])


@compiled
def _add_multiple(high, low, place, of, times):  # type: ignore[no-untyped-def]
    product = high[of] * times
    rest = fused(high[of], times, -product) + low[of] * times
    high[place], low[place] = _sum(high[place], low[place], product, rest)


@compiled
def factor_groups(sums, most, rows, trusted):  # type: ignore[no-untyped-def]
    """Write the upper triangular factors of sums of products, and which of them doubles are enough for.

    They are when no column is explained by the others so well that the inverse of its scaled sums of products has more
    than `most` on its diagonal.
    """
    width = sums.shape[1]
    scale, inverse = np.empty(width), np.empty(width)
    for group in range(sums.shape[0]):
        upper = rows[group]
        good = True
        for i in range(width):
            good = good and sums[group, i, i] > 0.0
            scale[i] = np.sqrt(sums[group, i, i])
        for i in range(width if good else 0):
            for j in range(i, width):
                upper[i, j] = sums[group, i, j] / (scale[i] * scale[j])
            for k in range(i):
                factor = upper[k, i]
                for j in range(i, width):
                    upper[i, j] -= factor * upper[k, j]
            pivot = upper[i, i]
            if not pivot * most > 1.0:
                good = False
                break
            root = np.sqrt(pivot)
            for j in range(i, width):
                upper[i, j] /= root
        for i in range(width if good else 0):
            # Row i of the inverse: its squares add up to the diagonal entry of the inverse of R'R.
            total = 0.0
            for j in range(i, width):
                value = 1.0 if i == j else 0.0
                for k in range(i, j):
                    value -= inverse[k] * upper[k, j]
                inverse[j] = value / upper[j, j]
                total += inverse[j] * inverse[j]
            if not total <= most:
                good = False
                break
        for i in range(width if good else 0):
            for j in range(i, width):
                upper[i, j] *= scale[j]
        trusted[group] = good
