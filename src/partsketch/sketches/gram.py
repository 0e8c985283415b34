"""Sums of products of columns: what the exact summary adds up, merges and factors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from partsketch.common.linalg.blas import triangular_inverse, triangular_solve
from partsketch.common.linalg.helpers import share
from partsketch.common.linalg.wide_gram import WideGram
from partsketch.common.linalg.wide_triangles import single_factor, single_solve, upper_factor
from partsketch.sketches.accumulator import FloatArray

#: Largest variance inflation factor (times growth of a column) of a feature at which the plain Gram matrix is trusted.
SAFE_INFLATION = 1e4


#: The same for a target, 1 / (1 − R²): it touches the residual sum of squares only, not the coefficients.
SAFE_TARGET_INFLATION = 1e6

#: Of more columns than this the inverse of a factor takes longer than to see that no eigenvalue is small.
_MANY_COLUMNS = 128
#: What others leave of a column is far from zero above this part of it: entries of the inverse are safe with a tenth of
#: what they may be, and rounding of a factor is smaller by ten orders.
_FAR_FROM_ZERO = 2.0**-10
#: Further from zero, as columns of most tables are. A sum that is known to be so may grow eightfold more before it is
#: looked at again.
_VERY_FAR = 2.0**-7
#: A factor of d columns in single numbers is that of a matrix which differs by less than d times this, in units of the
#: diagonal: errors of its entries are of the size √d · 2⁻²⁴, and a random matrix of them has a norm of 2√d times that.
#: Twice as much is allowed; 1,200 columns with a correlation of 0.999 need a fifth of it.
SINGLE_ROUNDING = 2.0**-22

#: Rows of a matrix of many columns that one thread works on at a time, and numbers of them that stay in its cache.
_ROWS_AT_ONCE, _NUMBERS_IN_CACHE = 256, 2**15

#: Of more columns than this a factor with twice the digits takes seconds, and is made only where it is needed.
_WIDE = 512


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products of columns, D G D, and the powers of two D; ones for columns that are zero so far.

    Attributes
    ----------
    scale
        The diagonal of D.
    high, low
        The matrix, as a sum of two; the second is None where the first was never in need of it.
    """

    scale: FloatArray
    high: FloatArray
    low: FloatArray | None = None

    @classmethod
    def read(cls, matrix: FloatArray) -> Products:
        """Return what `written` wrote."""
        width = matrix.shape[1]
        low = matrix[width + 1 :] if matrix.shape[0] > width + 1 else None
        return cls(matrix[0], matrix[1 : width + 1], low)

    def written(self) -> FloatArray:
        """Return all of it in one matrix."""
        return np.vstack([self.scale, self.high, *(() if self.low is None else (self.low,))])

    def at(self, scale: FloatArray) -> Products:
        """Return the same in other units."""
        if np.array_equal(scale, self.scale):
            return self
        ratio = scale / self.scale
        change = ratio[:, None] * ratio
        return Products(scale, self.high * change, None if self.low is None else self.low * change)

    def plus(self, other: Products) -> Products:
        """Return the sums over both sets of rows, in the larger units of both."""
        from partsketch.common.linalg.double_double import DoubleDouble

        seen = [np.where(np.diagonal(part.high) > 0, part.scale, np.inf) for part in (self, other)]
        scale = np.minimum(*seen)
        scale = np.where(np.isfinite(scale), scale, 1.0)
        mine, theirs = self.at(scale), other.at(scale)
        if mine.low is None and theirs.low is None:
            return Products(scale, mine.high + theirs.high)
        total = DoubleDouble.of(mine.high, mine.low).plus(theirs.high)
        return Products(scale, *(total if theirs.low is None else total.plus(theirs.low)))

    def moved(self, shift: FloatArray) -> Products:
        """Return the sums after `shift` times the first column, a column of ones, was added to each column."""
        from partsketch.common.linalg.double_double import DoubleDouble, moved_gram

        if not shift.any():
            return self
        # A column that was zero is a multiple of the ones from now on.
        unseen = (np.diagonal(self.high) == 0) & (shift != 0)
        scale = np.where(unseen, np.ldexp(1.0, -np.frexp(np.where(unseen, shift, 1.0))[1]), self.scale)
        here = self.at(scale)
        moved = moved_gram(DoubleDouble.of(here.high, here.low), shift * scale / scale[0])
        return Products(scale, *moved)

    def is_trusted(self, features: int) -> bool:
        """Tell whether a factor in doubles is good enough."""
        if self.low is not None and len(self.high) > _WIDE and (np.diagonal(self.high) > 0).all():
            # Digits beyond doubles are there whether they are needed or not; columns are judged each in its own units.
            here = self.at(self.scale * power_of_two(np.sqrt(np.diagonal(self.high))))
            return Products(here.scale, here.high).is_trusted(features)
        diagonal = np.diagonal(self.high)
        return self.low is None and bool(diagonal.min() > 0) and inflation(self.high, features, diagonal) <= 1.0

    def factor(self, features: int) -> tuple[FloatArray, FloatArray | None]:
        """Return R with a diagonal that is not negative, and what its doubles leave out of it, if that counts."""
        # Norms may be beyond doubles: whoever makes a summary looks.
        with np.errstate(over="ignore"):
            if self.is_trusted(features):
                factor = upper_factor(self.high)
                return np.divide(factor, self.scale, out=factor), None
            from partsketch.common.linalg.double_double import DoubleDouble, factor_gram

            rows = factor_gram(DoubleDouble.of(self.high, self.low), len(self.high)).rows
            return rows.high / self.scale, rows.low / self.scale


def inflation(matrix: FloatArray, features: int, sizes: FloatArray) -> float:
    """Return the largest inverse diagonal entries of features and targets, times sizes, in units of what is safe.

    With the diagonal for sizes that are variance inflation factors. Infinity when the matrix is not positive definite;
    of many columns a bound, if that is safe. What is safe by the bound is safe, and what is not is computed: so the
    bound changes no decision.
    """
    safe = np.where(np.arange(len(matrix)) < features, SAFE_INFLATION, SAFE_TARGET_INFLATION)
    if len(matrix) > _MANY_COLUMNS:
        far, near = (partial(_bound_in_single_numbers, part=part) for part in (_VERY_FAR, _FAR_FROM_ZERO))
        for find in (far, near, _bound):
            if (bound := find(matrix, sizes, safe)) <= 1.0:
                return bound
    try:
        inverse_root = triangular_inverse(upper_factor(matrix))
    except np.linalg.LinAlgError:
        return float(np.inf)
    squares = inverse_root * inverse_root
    # The leading block of a triangular inverse is the inverse of the leading block: features judged without targets.
    inverse = squares.sum(axis=1)
    inverse[:features] = squares[:features, :features].sum(axis=1)
    largest = float((inverse * sizes / safe).max(initial=0.0))
    return largest if np.isfinite(largest) else float(np.inf)


def _bound_in_single_numbers(
    matrix: FloatArray, sizes: FloatArray, safe: FloatArray, part: float = _FAR_FROM_ZERO
) -> float:
    """Return the same bound as `_bound` in a third of its time; infinity where that is none, or too close to tell.

    It asks whether others leave more than a part of every column. Targets are asked for as much as features here:
    single numbers know nothing of what would be enough for them.
    """
    first, across = float(matrix[0, 0]), matrix[0, 1:]
    shift = part + SINGLE_ROUNDING * len(matrix)
    if not (first > 0 and sizes.min() > 0 and np.isfinite(sizes).all()):
        return float(np.inf)
    units = 1.0 / np.sqrt(sizes[1:])
    aside = across * units / np.sqrt(first)
    left = np.empty((across.size, across.size), dtype=np.float32)

    def take_out(begin: int) -> None:
        height = max(1, _NUMBERS_IN_CACHE // across.size)
        end = min(begin + _ROWS_AT_ONCE, across.size)
        for row in range(begin, end, height):
            here, there = slice(row, min(row + height, end)), slice(row, None)
            values = matrix[1:, 1:][here, there] * units[there]
            values *= units[here, None]
            values -= aside[here, None] * aside[there]
            left[here, there] = values

    share([partial(take_out, begin) for begin in range(0, across.size, _ROWS_AT_ONCE)])
    np.fill_diagonal(left, np.diagonal(left) - np.float32(shift))
    try:
        single_factor(left)
    except np.linalg.LinAlgError:
        return float(np.inf)
    solved = aside.astype(np.float32)
    single_solve(left, solved)
    of_first = 1.0 + float(np.square(solved, dtype=np.float64).sum())
    return max(1.0 / (part * SAFE_INFLATION), of_first * float(sizes[0] / first / safe[0]))


def _bound(matrix: FloatArray, sizes: FloatArray, safe: FloatArray) -> float:
    """Return a bound of `inflation` at the cost of one factor; infinity where there is none.

    The first column, as a rule the ones, is taken out of the others: where these lie is no concern of theirs, and makes
    the smallest eigenvalue of many columns tiny. If what is left exceeds a diagonal matrix, its inverse is below that
    of the other; and the factor of the difference bounds the entry of the first column.
    """
    first, across = float(matrix[0, 0]), matrix[0, 1:]
    if not first > 0:
        return float(np.inf)
    left = np.empty((across.size, across.size))

    def take_out(begin: int) -> None:
        here = slice(begin, begin + _ROWS_AT_ONCE)
        np.multiply(across[here, None] / first, across, out=left[here])
        np.subtract(matrix[1:, 1:][here], left[here], out=left[here])

    share([partial(take_out, begin) for begin in range(0, across.size, _ROWS_AT_ONCE)])
    part = _FAR_FROM_ZERO * SAFE_INFLATION / safe[1:]
    np.fill_diagonal(left, np.diagonal(left) - part * sizes[1:])
    try:
        factor = upper_factor(left)
    except np.linalg.LinAlgError:
        return float(np.inf)
    of_first = (1.0 + float(np.square(triangular_solve(factor.T, across, lower=True)).sum()) / first) / first
    return max(float(1.0 / (_FAR_FROM_ZERO * SAFE_INFLATION)), of_first * float(sizes[0] / safe[0]))


def add_scaled(
    total: FloatArray, product: FloatArray | WideGram, scale: FloatArray, before: FloatArray, out: FloatArray
) -> float:
    """Do what `add_scaled_gram` does, to the same bits, with nothing to compile.

    Of many columns what is below the diagonal is left alone.
    """
    if isinstance(product, WideGram):
        product.add_to(total, scale, out)
    else:
        with np.errstate(all="ignore"):
            np.multiply(scale[:, None], scale, out=out)
            out *= product[: scale.size, : scale.size]
            out += total
    if not np.isfinite(product.diagonal()[: scale.size]).all():
        return -1.0
    return float((np.diagonal(out) / before).max(initial=0.0))


def power_of_two(sizes: FloatArray) -> FloatArray:
    """Return the powers of two that bring positive sizes closest below one; one for a size of zero."""
    exponents = np.frexp(sizes)[1]
    return np.where(sizes > 0, np.ldexp(1.0, -np.clip(exponents, -1000, 1000)), 1.0)
