"""Sums of products of a tile's columns without any rounding, at the speed of ordinary products.

Every column is cut into slices of few bits, so few that the products of two slices and their sums over all rows of the
tile are whole numbers that a double holds exactly, in whatever order they are added. What the slices leave out is below
2⁻⁵⁷ of the column's usual entries: three slices do where the largest entry is not far above the usual ones, more where
it is. Columns of few digits (counts, indicators, prices) have one slice only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.blas import gram
from partsketch.double_double import DoubleDouble

FloatArray = NDArray[np.float64]

#: Slices at most; six hold entries of full precision that are 2⁶⁰ times smaller than the largest of their column.
_MOST_SLICES = 6

#: Part of a usual entry that may be left out.
_LEFT_OUT = 2.0**-57

#: Rows that tell what a usual entry is.
_LOOKED_AT = 256


def add_exact_gram(total: DoubleDouble, columns: FloatArray) -> DoubleDouble:
    """Return the total plus the sums of products of columns (shape columns × rows), exact to about thirty digits."""
    width, rows = columns.shape
    bits = (53 - max(rows - 1, 1).bit_length()) // 2
    largest = np.abs(columns).max(axis=1, initial=0.0)
    # Powers of two, so that dividing by them loses nothing; entries are then at most one.
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    rest = np.ldexp(columns, -exponents[:, None])
    enough = _LEFT_OUT * _usual(rest)
    slices, owners, levels = [np.zeros((0, rows))], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for level in range(1, _MOST_SLICES + 1):
        open_ones = np.flatnonzero(np.abs(rest).max(axis=1, initial=0.0) > enough)
        if not open_ones.size:
            break
        part = np.ldexp(np.rint(np.ldexp(rest[open_ones], level * bits)), -level * bits)
        rest[open_ones] -= part
        used = part.any(axis=1)
        slices.append(part[used])
        owners.append(open_ones[used])
        levels.append(np.full(int(used.sum()), level))
    owner, level_of = np.concatenate(owners), np.concatenate(levels)
    padded = np.zeros((-(-max(owner.size, 1) // 8) * 8, rows))
    padded[: owner.size] = np.concatenate(slices)
    products = gram(padded)[: owner.size, : owner.size]
    # From small to large: products of slices i and j are about 2^(−bits (i + j)).
    for order in range(2 * int(level_of.max(initial=1)), 1, -1):
        for first in range(max(1, order - _MOST_SLICES), min(_MOST_SLICES, order - 1) + 1):
            here, there = np.flatnonzero(level_of == first), np.flatnonzero(level_of == order - first)
            if here.size and there.size:
                block = np.zeros((width, width))
                block[np.ix_(owner[here], owner[there])] = products[np.ix_(here, there)]
                total = total.plus(np.ldexp(block, exponents[:, None] + exponents[None, :]))
    return total


def _usual(columns: FloatArray) -> FloatArray:
    """Return the median size of some entries that are not zero, column by column; zero where there are none."""
    some = np.abs(columns[:, :: -(-columns.shape[1] // _LOOKED_AT)])
    some = np.sort(some, axis=1)
    zeros = np.count_nonzero(some == 0.0, axis=1)
    middle = np.minimum((zeros + some.shape[1]) // 2, some.shape[1] - 1)
    return np.asarray(some[np.arange(len(some)), middle])
