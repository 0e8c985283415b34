"""Columns that are held as codes, written out; and labels of numbers."""

from __future__ import annotations

from partsketch.common.linalg.compiled import compiled


@compiled
def write_indicators(codes, first, out):  # type: ignore[no-untyped-def]
    """Write a one in row code − first of `out`, which is zero, for every code that is at least `first`."""
    for row in range(out.shape[1]):
        place = codes[row] - first
        if place >= 0:
            out[place, row] = 1.0


@compiled
def write_placed(places, offset, values, chosen, out):  # type: ignore[no-untyped-def]
    """Write values to the rows of `out` that lie `offset` behind the places, where these are not negative.

    No values are ones. Where columns are chosen, they say for each where it goes; to a negative place nothing goes.
    """
    for row in range(out.shape[1]):
        place = places[row]
        if place >= 0:
            place += offset
            if chosen.size:
                place = chosen[place]
            if place >= 0:
                out[place, row] = values[row] if values.size else 1.0


@compiled
def look_up(numbers, first, last, table, labels):  # type: ignore[no-untyped-def]
    """Write the label of each number by a table from the first number to the last; tell whether all have one.

    The table has -1 for numbers between the first and the last that have none. A number without a label gets the first.
    """
    known = True
    for row in range(numbers.size):
        label = table[numbers[row] - first] if first <= numbers[row] <= last else -1
        known = known and label >= 0
        labels[row] = max(label, 0)
    return known


@compiled
def mark(numbers, first, seen):  # type: ignore[no-untyped-def]
    """Note which whole numbers occur, in places counted from the first."""
    for number in numbers:
        seen[number - first] = True
