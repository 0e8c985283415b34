"""Small dense algebra with twice the digits: a number is a sum of two doubles, the second below the first's rounding.

Sums of products of a table's columns need about twice the digits that the table has; with them a Gram matrix is as good
as the rows themselves, whatever the columns are, and nothing has to be orthogonalised. Only matrices of q columns are
worked on here, never rows of data. A product of two doubles is split into its rounded value and what rounding took off
by one fused operation; a sum likewise by Knuth's six additions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.error_free import two_product, two_sum

FloatArray = NDArray[np.float64]


@intrinsic
def fused(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c, rounded once; numba has no such function of its own."""
    signature = types.float64(types.float64, types.float64, types.float64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return signature, generate


#: Part of a column's sum of squares below which what is left of it may be what larger columns leave of their rounding:
#: columns that only rows of 1e-24 of the largest weight have are as small.
_SUSPECT = 1e-6


@compiled
def _subtract_products(high, low, row_high, row_low, factor_high, factor_low, first):  # type: ignore[no-untyped-def]
    """Take factor · row off an array, from position `first` on; its low part is not yet brought in order."""
    for i in range(first, high.size):
        product = factor_high * row_high[i]
        rest = fused(factor_high, row_high[i], -product) + (factor_high * row_low[i] + factor_low * row_high[i])
        before = high[i]
        after = before - product
        part = after - before
        high[i] = after
        low[i] += ((before - (after - part)) - (product + part)) - rest


@compiled
def _in_order(high, low):  # type: ignore[no-untyped-def]
    for i in range(high.size):
        total = high[i] + low[i]
        low[i] -= total - high[i]
        high[i] = total


@compiled
def add_gram(high, low, out_high, out_low):  # type: ignore[no-untyped-def]
    """Add the sums of products of the columns of some rows."""
    for row in range(high.shape[0]):
        for i in range(high.shape[1]):
            if high[row, i] != 0.0:
                _subtract_products(out_high[i], out_low[i], high[row], low[row], -high[row, i], -low[row, i], i)
    for i in range(out_high.shape[0]):
        _in_order(out_high[i], out_low[i])
        for j in range(i):
            out_high[i, j], out_low[i, j] = out_high[j, i], out_low[j, i]


@compiled
def _explained_noise(high, kept, column, diagonal, shares):  # type: ignore[no-untyped-def]
    """Return how large the sums are that cancel in what is left of a column, in squares."""
    total = diagonal[column]
    for k in range(column - 1, -1, -1):
        if kept[k]:
            part = high[k, column]
            for i in range(k + 1, column):
                if kept[i]:
                    part -= high[k, i] * shares[i]
            shares[k] = part / high[k, k]
            total += shares[k] * shares[k] * diagonal[k]
    return total


@compiled
def cholesky(high, low, pivots, free, tolerance, noise, most, left_over):  # type: ignore[no-untyped-def]
    """Factor in place; a column that those before it determine gets zeros, the tolerance alone may call it doubtful."""
    kept, doubtful = np.zeros(pivots, np.bool_), np.zeros(pivots, np.bool_)
    shares = np.empty(pivots)
    count, diagonal = 0, np.empty(high.shape[0])
    for i in range(high.shape[0]):
        diagonal[i] = left_over[i] = high[i, i]
    for j in range(pivots):
        if j == free:
            for i in range(free, high.shape[0]):
                part = diagonal[i]
                for k in range(free):
                    part -= high[k, i] * high[k, i]
                left_over[i] = part
        for k in range(j):
            if kept[k]:
                _subtract_products(high[j], low[j], high[k], low[k], high[k, j], low[k, j], j)
        _in_order(high[j, j:], low[j, j:])
        pivot = high[j, j]
        is_left = count < most and pivot > noise * diagonal[j]
        if is_left and pivot < _SUSPECT * diagonal[j]:
            is_left = pivot > noise * _explained_noise(high, kept, j, diagonal, shares)
        if is_left and not pivot > tolerance * left_over[j]:
            doubtful[j], is_left = True, False
        if is_left:
            kept[j] = True
            count += 1
            root = np.sqrt(pivot)
            root_low = (fused(-root, root, pivot) + low[j, j]) / (2.0 * root)
            high[j, j], low[j, j] = root, root_low
            for i in range(j + 1, high.shape[0]):
                share = high[j, i] / root
                low[j, i] = (fused(-share, root, high[j, i]) + low[j, i] - share * root_low) / root
                high[j, i] = share
            _in_order(high[j, j:], low[j, j:])
        else:
            high[j, j:] = 0.0
            low[j, j:] = 0.0
        high[j, :j] = 0.0
        low[j, :j] = 0.0
    # What is left of the columns behind the pivots.
    for j in range(pivots, high.shape[0]):
        for k in range(pivots):
            if kept[k]:
                _subtract_products(high[j], low[j], high[k], low[k], high[k, j], low[k, j], j)
        _in_order(high[j, j:], low[j, j:])
        high[j, :j] = 0.0
        low[j, :j] = 0.0
    return kept, doubtful


@compiled
def _solve(high, low, kept, right_high, right_low):  # type: ignore[no-untyped-def]
    """Solve R x = b for every row b of the right-hand sides, in place; columns that are not kept get zero."""
    size = kept.size
    column_high, column_low = np.empty(size), np.empty(size)
    for number in range(right_high.shape[0]):
        for j in range(size - 1, -1, -1):
            if not kept[j]:
                right_high[number, j] = right_low[number, j] = 0.0
                continue
            value, rest = right_high[number, j], right_low[number, j]
            total = value + rest
            rest -= total - value
            root = high[j, j]
            share = total / root
            share_low = (fused(-share, root, total) + rest - share * low[j, j]) / root
            whole = share + share_low
            right_high[number, j], right_low[number, j] = whole, share_low - (whole - share)
            for i in range(j):
                column_high[i], column_low[i] = high[i, j], low[i, j]
            _subtract_products(
                right_high[number, :j],
                right_low[number, :j],
                column_high[:j],
                column_low[:j],
                right_high[number, j],
                right_low[number, j],
                0,
            )


class DoubleDouble(NamedTuple):
    """A matrix whose entries are sums of two doubles, the second below the rounding of the first."""

    high: FloatArray
    low: FloatArray

    @classmethod
    def of(cls, high: FloatArray, low: FloatArray | None = None) -> DoubleDouble:
        """Return copies of both parts, the second zero if there is none."""
        first = np.array(high, dtype=np.float64, order="C")
        return cls(first, np.zeros_like(first) if low is None else np.array(low, dtype=np.float64, order="C"))

    @classmethod
    def plain(cls, high: FloatArray) -> DoubleDouble:
        """Return a matrix of doubles as it is, for whoever only reads it: the zeros beside it take no memory."""
        return cls(high, np.broadcast_to(np.zeros(1), high.shape))

    def plus(self, values: FloatArray) -> DoubleDouble:
        """Return the sum with a matrix of doubles."""
        total, rest = two_sum(self.high, values)
        rest = rest + self.low
        high = total + rest
        return DoubleDouble(high, rest - (high - total))

    def scaled(self, units: FloatArray) -> DoubleDouble:
        """Return the columns times these powers of two."""
        return DoubleDouble(self.high * units, self.low * units)

    def moved(self, shift: FloatArray) -> DoubleDouble:
        """Return rows whose columns have been moved by these multiples of the first column; the first must stay."""
        if not shift.any():
            return self
        first = self.high[:, :1]
        product, rest = two_product(first, shift[None, :])
        moved = self.plus(product)
        return moved.plus(rest + self.low[:, :1] * shift)

    def gram(self) -> DoubleDouble:
        """Return the sums of products of the columns."""
        out = DoubleDouble.of(np.zeros((self.high.shape[1],) * 2))
        add_gram(np.ascontiguousarray(self.high), np.ascontiguousarray(self.low), *out)
        return out


class Factor(NamedTuple):
    """The upper triangular factor of a Gram matrix.

    Attributes
    ----------
    rows
        R, with a row of zeros for each column that those before it determine; behind the pivots what is left of the
        sums of products of the other columns.
    kept
        Which pivots are not determined by those before them.
    left_over
        Sums of squares of the columns after the free ones were taken out of them.
    doubtful
        Which pivots the tolerance alone calls determined: what is left of them is more than rounding.
    """

    rows: DoubleDouble
    kept: NDArray[np.bool_]
    left_over: FloatArray
    doubtful: NDArray[np.bool_]

    def solve(self, right: DoubleDouble) -> DoubleDouble:
        """Return x with R x = b for every column b of the right-hand side; zero for columns that are not kept."""
        size = self.kept.size
        out = DoubleDouble.of(right.high[:size].T, right.low[:size].T)
        _solve(*self.rows, self.kept, *out)
        return DoubleDouble(out.high.T, out.low.T)


#: Rounding of sums of products, relative to the sums of squares: what is below counts as nothing.
NOISE = 2.0**-98


def factor_gram(
    gram: DoubleDouble,
    pivots: int,
    free: int = 0,
    tolerance: float = 0.0,
    rounding: float = 0.0,
    most: int | None = None,
) -> Factor:
    """Factor sums of products; a column is determined by those before it if they leave less than `tolerance` of it.

    Parameters
    ----------
    gram
        The matrix.
    pivots
        How many leading columns are eliminated.
    free
        What the first so many leave of a column is what the tolerance is measured by.
    tolerance
        Part of a column's norm.
    rounding
        Part of the columns' norms to which they are known, if more than the rounding of the matrix.
    most
        How many columns at most are not determined by others: as many as there are rows behind the matrix.
    """
    rows = DoubleDouble.of(*gram)
    left_over = np.empty(len(rows.high))
    noise = max(NOISE, rounding**2)
    kept, doubtful = cholesky(*rows, pivots, free, tolerance**2, noise, pivots if most is None else most, left_over)
    return Factor(rows, kept, left_over, doubtful)


def moved_gram(gram: DoubleDouble, shift: FloatArray) -> DoubleDouble:
    """Return the sums of products after multiples of the first column were added to the others; `shift[0]` is zero."""
    half = gram.moved(shift)
    return DoubleDouble(half.high.T, half.low.T).moved(shift)
