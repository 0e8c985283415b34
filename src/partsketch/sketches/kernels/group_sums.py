"""Sums of products of the columns of many groups of rows, each around a value in its own middle."""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.column_kernels import add_products
from partsketch.common.linalg.compiled import compiled

#: Of a column that others explain up to a smaller part than this, a Gram matrix in doubles keeps too few digits.
SAFE_PIVOT = 1e-4
#: A column that varies by a smaller part of its squares than this does not vary.
_NOTHING = 1e-20
#: Numbers at the beginning of a line: those of group, rows, weight and columns.
HEAD = 4


@compiled
def _find_centre(rows, order, first, last, low, high, centre):  # type: ignore[no-untyped-def]
    """Write what is taken off the columns of a group: nothing off the first, which are ones.

    A column whose values all lie within a factor of two is measured from their middle: such a difference has no
    rounding. All others are taken as they are.
    """
    width = rows.shape[1]
    for j in range(width):
        low[j] = high[j] = rows[order[first], j]
    for place in range(first + 1, last):
        row = rows[order[place]]
        for j in range(width):
            value = row[j]
            low[j] = value if value < low[j] else low[j]
            high[j] = value if value > high[j] else high[j]
    centre[0] = 0.0
    for j in range(1, width):
        near, far = (low[j], high[j]) if low[j] > 0.0 else (-high[j], -low[j])
        centre[j] = 0.5 * low[j] + 0.5 * high[j] if near > 0.0 and far <= 2.0 * near else 0.0


@compiled
def sum_groups(rows, roots, order, starts, strip, centre, sums):  # type: ignore[no-untyped-def]
    """Fill centres and sums of products; `rows` has a column of ones first, `order` the rows group by group.

    `strip` has room for the columns of some rows, one after another; the padding, its last columns, is zero.
    """
    width = rows.shape[1]
    low, high = np.empty(width), np.empty(width)
    padded, step = strip.shape
    most = step - 8
    out = np.zeros((padded, padded))
    addresses = np.empty(padded, np.int64)
    for column in range(padded):
        addresses[column] = strip.ctypes.data + 8 * column * step
    for group in range(starts.size - 1):
        first, last = starts[group], starts[group + 1]
        _find_centre(rows, order, first, last, low, high, centre[group])
        off = centre[group]
        out[:] = 0.0
        for begin in range(first, last, most):
            count = min(most, last - begin)
            for place in range(count):
                row = rows[order[begin + place]]
                for j in range(width):
                    strip[j, place] = row[j] - off[j]
            if roots.size:
                for j in range(width):
                    for place in range(count):
                        strip[j, place] *= roots[order[begin + place]]
            add_products(addresses, count, out)
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
    """Merge two tables, sorted by group, of number, rows, weight, columns, centre and sums; return how many lines."""
    i = j = count = 0
    shift, other = np.zeros(width), np.zeros(width)
    while i < first.shape[0] or j < second.shape[0]:
        if j == second.shape[0] or (i < first.shape[0] and first[i, 0] < second[j, 0]):
            out[count] = first[i]
            i += 1
        elif i == first.shape[0] or second[j, 0] < first[i, 0]:
            out[count] = second[j]
            j += 1
        else:
            line = out[count]
            line[0] = first[i, 0]
            line[1] = first[i, 1] + second[j, 1]
            line[2] = first[i, 2] + second[j, 2]
            line[3] = first[i, 3]
            for c in range(width):
                mine, theirs = first[i, HEAD + c], second[j, HEAD + c]
                kept = mine if mine != 0.0 else theirs
                line[HEAD + c] = kept
                shift[c], other[c] = mine - kept, theirs - kept
            base = HEAD + width
            for a in range(width):
                for b in range(width):
                    place = base + a * width + b
                    line[place] = _moved(first[i], base, width, a, b, shift) + _moved(
                        second[j], base, width, a, b, other
                    )
            i += 1
            j += 1
        count += 1
    return count


@compiled
def _moved(line, base, width, a, b, shift):  # type: ignore[no-untyped-def]
    """Return one sum of products after columns were moved."""
    value = line[base + a * width + b]
    if shift[a] != 0.0 or shift[b] != 0.0:
        value += line[base + a] * shift[b] + shift[a] * line[base + b] + line[base] * shift[a] * shift[b]
    return value
