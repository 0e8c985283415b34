"""Sums of products of a tile's columns without any rounding, at the speed of ordinary products.

Every column is cut into slices of few bits, so few that the products of two slices and their sums over all rows of the
tile are whole numbers that a double holds exactly, in whatever order they are added. What the slices leave out is below
2⁻⁵⁷ of the column's usual entries: three slices do where the largest entry is not far above the usual ones, more where
it is. Columns of few digits (counts, indicators, prices) have one slice only.

Plainly, columns are multiplied in long doubles: ten times as long (4096 rows of 40 columns, `python -m
benchmarks.kernels`), with rounding all the same, and with no more digits than doubles on some machines.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.blas import gram
from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.double_double import DoubleDouble, fused

FloatArray = NDArray[np.float64]

#: Slices at most; six hold entries of full precision that are 2⁶⁰ times smaller than the largest of their column.
_MOST_SLICES = 6

#: Slices per column that there is room for at first: almost all tables do with three.
_ROOM = 4

#: Part of a usual entry that may be left out.
_LEFT_OUT = 2.0**-57

#: Rows that tell what a usual entry is.
_LOOKED_AT = 256


@compiled
def _cut(columns, level, bits, enough, slices, owners, levels, count):  # type: ignore[no-untyped-def]
    """Take one slice off every column of which more than enough is left; return how many slices there are now."""
    # Adding and taking off this number rounds to whole multiples of 2^(−level · bits).
    magic = 1.5 * 2.0 ** (52 - level * bits)
    for column in range(columns.shape[0]):
        rest, out = columns[column], slices[count]
        largest = 0.0
        for row in range(rest.size):
            largest = max(largest, abs(rest[row]))
        if largest <= enough[column]:
            continue
        used = 0.0
        for row in range(rest.size):
            part = (rest[row] + magic) - magic
            out[row] = part
            rest[row] -= part
            used += abs(part)
        if used > 0.0:
            owners[count], levels[count] = column, level
            count += 1
    return count


@compiled
def _add_products(products, owners, levels, exponents, high, low):  # type: ignore[no-untyped-def]
    """Add the products of slices to sums with twice the digits, from small to large: i and j make 2^(−bits (i + j))."""
    width, most = len(exponents), 1
    places = np.full((_MOST_SLICES + 1, width), -1)
    filled = np.zeros(_MOST_SLICES + 1, np.bool_)
    for number in range(len(owners)):
        places[levels[number], owners[number]] = number
        filled[levels[number]] = True
        most = max(most, levels[number])
    for row in range(width):
        for column in range(width):
            unit = exponents[row] + exponents[column]
            first, second = high[row, column], low[row, column]
            for order in range(2 * most, 1, -1):
                for level in range(max(1, order - _MOST_SLICES), min(_MOST_SLICES, order - 1) + 1):
                    if not (filled[level] and filled[order - level]):
                        continue
                    here, there, value = places[level, row], places[order - level, column], 0.0
                    if here >= 0 and there >= 0:
                        value = math.ldexp(products[here, there], unit)
                    total = first + value
                    part = total - first
                    rest = ((first - (total - part)) + (value - part)) + second
                    first = total + rest
                    second = rest - (first - total)
            high[row, column], low[row, column] = first, second


@compiled
def _rounded_off(values, roots, products, out):  # type: ignore[no-untyped-def]
    for column in range(values.shape[0]):
        for row in range(values.shape[1]):
            out[column, row] = fused(values[column, row], roots[row], -products[column, row])


def rounded_off(values: FloatArray, roots: FloatArray, products: FloatArray) -> FloatArray:
    """Return what rounding took off the products of columns (shape columns × rows) and roots of weights."""
    out = np.empty_like(products)
    _rounded_off(np.ascontiguousarray(values), np.ascontiguousarray(roots), products, out)
    return out


def add_exact_gram(total: DoubleDouble, columns: FloatArray, lower: FloatArray | None = None) -> DoubleDouble:
    """Add the sums of products of columns (shape columns × rows) to the total, exact to about thirty digits.

    `lower` is what rounding took off the columns. It differs between the columns of a row, and of columns that nearly
    depend on one another it would move the difference: its products with the columns are added, and so are those of
    what the slices leave out.
    """
    width, rows = columns.shape
    bits = (53 - max(rows - 1, 1).bit_length()) // 2
    largest = np.abs(columns).max(axis=1, initial=0.0)
    # Powers of two, so that dividing by them loses nothing; entries are then at most one.
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    rest = columns * np.ldexp(1.0, -exponents)[:, None]
    enough = _LEFT_OUT * _usual(rest)
    slices = np.empty((_ROOM * width + 8, rows))
    owner, level_of = np.empty((2, _MOST_SLICES * width), np.int64)
    count = 0
    for level in range(1, _MOST_SLICES + 1):
        if count + width + 8 > len(slices):
            slices = np.vstack([slices, np.empty((width, rows))])
        before, count = count, _cut(rest, level, bits, enough, slices, owner, level_of, count)
        if count == before and not (np.abs(rest).max(axis=1, initial=0.0) > enough).any():
            break
    owner, level_of = owner[:count], level_of[:count]
    padded = -(-max(count, 1) // 8) * 8
    slices[count:padded] = 0.0
    products = gram(slices[:padded])[:count, :count]
    _add_products(products, owner, level_of, exponents, *total)
    if lower is None:
        return total
    across = columns @ (lower + rest * np.ldexp(1.0, exponents)[:, None]).T
    return total.plus(across + across.T)


def _usual(columns: FloatArray) -> FloatArray:
    """Return the median size of some entries that are not zero, column by column; zero where there are none."""
    some = np.abs(columns[:, :: -(-columns.shape[1] // _LOOKED_AT)])
    some = np.sort(some, axis=1)
    zeros = np.count_nonzero(some == 0.0, axis=1)
    middle = np.minimum((zeros + some.shape[1]) // 2, some.shape[1] - 1)
    return np.asarray(some[np.arange(len(some)), middle])
