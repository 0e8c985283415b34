"""Columns that are held as codes, written out; and labels of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

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


@intrinsic
def _ones_of(typingctx, word):  # type: ignore[no-untyped-def]
    """Return how many bits of a word are set."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


@compiled
def look_up(numbers, first, last, bits, before, labels):  # type: ignore[no-untyped-def]
    """Write the label of each number: how many values lie below it; tell whether all numbers are values.

    A number that is none gets some label.

    Parameters
    ----------
    bits
        One for every whole number from `first` to `last`, set where it is a value. A million of them stay in the
        second-level cache, which a table of labels would not.
    before
        How many are set before each word of these.
    """
    known, one = True, np.uint64(1)
    for row in range(numbers.size):
        inside = (numbers[row] >= first) & (numbers[row] <= last)
        place = np.uint64(numbers[row] - first) if inside else np.uint64(0)
        word, bit = bits[np.int64(place >> np.uint64(6))], place & np.uint64(63)
        known &= inside & ((word >> bit) & one != np.uint64(0))
        below = _ones_of(word & ((one << bit) - one))
        labels[row] = before[np.int64(place >> np.uint64(6))] + np.int64(below)
    return known


@compiled
def mark(numbers, first, seen):  # type: ignore[no-untyped-def]
    """Note which whole numbers occur, in places counted from the first."""
    for number in numbers:
        seen[number - first] = True
