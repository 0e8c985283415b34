"""Merging the entries of groups.

An entry is the rows of a group while they are few; more of them are a centre and the upper triangle of the sums of
products around it, row by row, with what doubles leave out of the sums behind it where that counts.
"""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import fused
from partsketch.common.linalg.lanes import LANES
from partsketch.sketches.kernels.group_sums import (
    PRECISE,
    ROWS,
    SUMS,
    add_precisely,
    add_products,
    begin_range,
    find_centre,
    measure,
    see_rows,
    write_sums,
)

#: Rows are added to sums in doubles while none of their columns has more than so many times the squares of the sums.
_MOST_GROWTH = 4.0


@compiled
def entry_size(kind, rows, width):  # type: ignore[no-untyped-def]
    """Return how many numbers an entry has."""
    triangle = width * (width + 1) // 2
    step = (width + LANES - 1) // LANES * LANES
    return rows * step if kind == ROWS else width + triangle * (1 if kind == SUMS else 2)


@compiled
def read_rows(body, at, count, near, to, seen):  # type: ignore[no-untyped-def]
    """Copy the rows of an entry, note their range, and tell whether they have weights."""
    step = near.shape[1]
    flat = near.reshape(-1)
    for place in range(count * step):
        flat[to * step + place] = body[at + place]
    see_rows(flat, to * step, count, step, seen)
    return not (seen[0, 0] == 1.0 and seen[1, 0] == 1.0)


@compiled
def merge_entries(width, heads, bodies, most, out_head, out):  # type: ignore[no-untyped-def]
    """Merge two lists of entries, each sorted by group; return how many entries and numbers there are then."""
    step = (width + LANES - 1) // LANES * LANES
    near = np.zeros((2 * most, step))
    work = (near, np.empty((3, step)), np.empty((2, width)), np.empty((2, step, step)), np.empty((4, width * width)))
    first, second = heads
    i = j = count = 0
    # A plain 0 is a type of its own to the compiler: all that it is given to would be compiled once more.
    used = np.int64(0)
    while i < first.shape[0] or j < second.shape[0]:
        head = out_head[count]
        head[4] = used
        which = 2
        if j == second.shape[0] or (i < first.shape[0] and first[i, 0] < second[j, 0]):
            which = 0
        elif i == first.shape[0] or second[j, 0] < first[i, 0]:
            which = 1
        if which < 2:
            alone, body = (first[i], bodies[0]) if which == 0 else (second[j], bodies[1])
            size, at = entry_size(int(alone[3]), int(alone[1]), width), int(alone[4])
            head[:4] = alone[:4]
            out[used : used + size] = body[at : at + size]
            used += size
        else:
            one, other = first[i], second[j]
            head[0] = one[0]
            head[1], head[2] = one[1] + other[1], one[2] + other[2]
            used, head[3] = _merge_pair(width, one, other, bodies, most, work, out, used)
        i += int(which != 1)
        j += int(which != 0)
        count += 1
    return count, used


@compiled
def _merge_pair(width, one, other, bodies, most, work, out, at):  # type: ignore[no-untyped-def]
    """Write the entry of the rows of two; return where it ends, and its kind."""
    near, seen, centres, squares, wide = work
    kinds = (int(one[3]), int(other[3]))
    counts = (int(one[1]), int(other[1]))
    places = (int(one[4]), int(other[4]))
    if kinds[0] == ROWS and kinds[1] == ROWS:
        if counts[0] + counts[1] <= most:
            for body, place, count in ((bodies[0], places[0], counts[0]), (bodies[1], places[1], counts[1])):
                size = count * near.shape[1]
                out[at : at + size] = body[place : place + size]
                at += size
            return at, ROWS
        begin_range(seen)
        read_rows(bodies[0], places[0], counts[0], near, 0, seen)
        weighted = read_rows(bodies[1], places[1], counts[1], near, counts[0], seen)
        if find_centre(width, seen, centres[0]):
            measure(near, counts[0] + counts[1], width, centres[0])
        count = counts[0] + counts[1]
        return write_sums(near, count, width, weighted, centres[0], near[:0], squares[0], squares[1], out, at)
    if kinds[0] == ROWS:
        rows = (bodies[0], places[0], counts[0])
        return _add_rows_to_sums(width, rows, bodies[1], places[1], kinds[1], work, out, at)
    if kinds[1] == ROWS:
        rows = (bodies[1], places[1], counts[1])
        return _add_rows_to_sums(width, rows, bodies[0], places[0], kinds[0], work, out, at)
    if kinds[0] == SUMS and kinds[1] == SUMS and _are_equal(bodies, places, width):
        for place in range(width):
            out[at + place] = bodies[0][places[0] + place]
        for place in range(width, entry_size(SUMS, 0, width)):
            out[at + place] = bodies[0][places[0] + place] + bodies[1][places[1] + place]
        return at + entry_size(SUMS, 0, width), SUMS
    for number in range(2):
        unpack(width, bodies[number], places[number], kinds[number], centres[number], wide, 2 * number)
    return _add_sums(width, kinds[0] == PRECISE or kinds[1] == PRECISE, centres, wide, out, at)


@compiled
def _are_equal(bodies, places, count):  # type: ignore[no-untyped-def]
    """Tell whether so many numbers are the same at two places."""
    same = True
    for place in range(count):
        same = same and bodies[0][places[0] + place] == bodies[1][places[1] + place]
    return same


@compiled
def _add_rows_to_sums(width, rows, body, place, kind, work, out, at):  # type: ignore[no-untyped-def]
    """Write the entry of some rows and sums of others: in doubles where that costs no digits."""
    near, seen, centres, squares, wide = work
    given, begin, count = rows
    begin_range(seen)
    weighted = read_rows(given, begin, count, near, 0, seen)
    unpack(width, body, place, kind, centres[0], wide, 0)
    exact = kind == SUMS
    for j in range(1, width):
        middle = abs(centres[0, j])
        low, high = (seen[0, j], seen[1, j]) if centres[0, j] > 0.0 else (-seen[1, j], -seen[0, j])
        exact = exact and (middle == 0.0 or (low >= 0.5 * middle and high <= 2.0 * middle))
    if exact:
        measure(near, count, width, centres[0])
        sums = squares[0]
        sums[:, :] = 0.0
        add_products(near, count, width, weighted, sums)
        for j in range(width):
            exact = exact and sums[j, j] <= _MOST_GROWTH * wide[0, j * width + j]
        if exact:
            for j in range(width):
                out[at + j] = centres[0, j]
            at += width
            for i in range(width):
                for j in range(i, width):
                    out[at] = wide[0, i * width + j] + sums[i, j]
                    at += 1
            return at, SUMS
        read_rows(given, begin, count, near, 0, seen)
    find_centre(width, seen, centres[1])
    for j in range(width):
        # The sums stay where they are, if they are around zero.
        centres[1, j] = centres[1, j] if centres[0, j] != 0.0 else 0.0
    measure(near, count, width, centres[1])
    high, low = np.zeros((width, width)), np.zeros((width, width))
    add_precisely(near, count, width, weighted, high, low)
    wide[2], wide[3] = high.reshape(-1), low.reshape(-1)
    return _add_sums(width, True, centres, wide, out, at)


@compiled
def unpack(width, body, place, kind, centre, wide, number):  # type: ignore[no-untyped-def]
    """Write the centre of an entry, and its sums and what doubles leave out of them as whole matrices."""
    for j in range(width):
        centre[j] = body[place + j]
    at = place + width
    for row in range(2):
        target = wide[number + row]
        for i in range(width):
            for j in range(i, width):
                value = 0.0 if row > 0 and kind == SUMS else body[at]
                target[i * width + j] = target[j * width + i] = value
                at += 1


@compiled
def _add_sums(width, precise, centres, wide, out, at):  # type: ignore[no-untyped-def]
    """Write the entry of two sums; return where it ends, and its kind.

    Sums that are moved to another centre may be large beside what varies around it: they keep twice the digits.
    """
    shifts = np.zeros((2, width))
    moves = False
    for j in range(width):
        kept = centres[0, j] if centres[0, j] != 0.0 else centres[1, j]
        out[at + j] = kept
        for number in range(2):
            shifts[number, j] = centres[number, j] - kept
            moves = moves or shifts[number, j] != 0.0
    at += width
    if moves:
        for number in range(2):
            _move(wide[2 * number], wide[2 * number + 1], shifts[number])
    behind = at + width * (width + 1) // 2
    for i in range(width):
        for j in range(i, width):
            place = i * width + j
            if moves or precise:
                total, rest = _sum(wide[0, place], wide[1, place], wide[2, place], wide[3, place])
                out[at], out[behind] = total, rest
                behind += 1
            else:
                out[at] = wide[0, place] + wide[2, place]
            at += 1
    return (behind, PRECISE) if moves or precise else (at, SUMS)


@compiled
def _sum(high, low, other_high, other_low):  # type: ignore[no-untyped-def]
    """Return the sum of two numbers of two doubles each."""
    total = high + other_high
    part = total - high
    rest = ((high - (total - part)) + (other_high - part)) + (low + other_low)
    whole = total + rest
    return whole, rest - (whole - total)


@compiled
def _move(high, low, shift):  # type: ignore[no-untyped-def]
    """Change sums of products, of two doubles each, as if `shift` times the ones had been added to the columns."""
    width = shift.size
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
