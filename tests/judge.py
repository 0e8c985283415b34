"""The judge: least squares in rational arithmetic, every float64 taken as the exact number that it is.

Columns become whole numbers times a unit of their own, the Gram matrix is one of whole numbers, and elimination without
fractions (Bareiss) solves it. Nothing is rounded before the very end, so squaring the matrix does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class WholeColumn:
    """A column as whole numbers times a unit."""

    values: list[int]
    unit: Fraction


@dataclass(frozen=True)
class Judgement:
    """The exact fit.

    Attributes
    ----------
    coefficients
        One per column, the intercept first if there is one; columns that those before them determine have 0.
    fitted
        Fitted values of all rows, rounded once; they are unique at any rank.
    loss
        The minimal (weighted) sum of squares.
    rank
        Of all columns, rows of weight zero left out.
    aliased
        Position of a column that those before it determine → the positions of those that take part.
    inverse_diagonal
        Diagonal of the inverse Gram matrix; None where the rank is not full, or it was not asked for.
    """

    coefficients: tuple[Fraction, ...]
    fitted: FloatArray
    loss: Fraction
    rank: int
    aliased: dict[int, tuple[int, ...]]
    inverse_diagonal: tuple[Fraction, ...] | None
    targets: WholeColumn
    weights: WholeColumn

    def loss_of(self, fitted: FloatArray) -> Fraction:
        """Return the exact loss of other fitted values."""
        found = _whole(fitted)
        ratio = self.targets.unit / found.unit
        squares = (
            weight * (ratio.numerator * value - ratio.denominator * other) ** 2
            for weight, value, other in zip(self.weights.values, self.targets.values, found.values, strict=True)
        )
        return sum(squares) * self.weights.unit * (found.unit / ratio.denominator) ** 2


def judge(X: Any, y: Any, weights: Any = None, intercept: bool = True, inverse: bool = False) -> Judgement:
    """Solve exactly.

    Parameters
    ----------
    X
        An array of float64, or a list of columns of fractions.
    y, weights
        One per row; None weighs all rows alike.
    intercept
        Whether there is a column of ones before the others.
    inverse
        Whether the diagonal of the inverse Gram matrix is wanted.
    """
    count = len(y)
    ones = WholeColumn([1] * count, Fraction(1))
    columns = [_whole(column) for column in (X.T if isinstance(X, np.ndarray) else X)]
    columns = [ones, *columns] if intercept else columns
    width = len(columns)
    targets = _whole(y)
    heavy = ones if weights is None else _whole(weights)
    everything = [column.values for column in (*columns, targets)]
    weighted = everything if weights is None else [list(map(mul, heavy.values, column)) for column in everything]
    gram = [[0] * (width + 1 + inverse * width) for _ in range(width + 1)]
    for row in range(width + 1):
        for column in range(row, width + 1):
            gram[row][column] = gram[column][row] = sum(map(mul, weighted[row], everything[column]))
    for row in range(width if inverse else 0):
        gram[row][width + 1 + row] = 1
    kept, divisor = _eliminate(gram, width)
    shares = [gram[column][width] if column in kept else 0 for column in range(width)]
    units = [column.unit for column in columns]
    return Judgement(
        coefficients=tuple(
            Fraction(share, divisor) * targets.unit / unit for share, unit in zip(shares, units, strict=True)
        ),
        fitted=_fitted([column.values for column in columns], shares, divisor, targets.unit, count),
        loss=Fraction(gram[width][width], divisor) * targets.unit**2 * heavy.unit,
        rank=len(kept),
        aliased={
            column: tuple(other for other in kept if gram[other][column])
            for column in range(width)
            if column not in kept
        },
        inverse_diagonal=tuple(
            Fraction(gram[column][width + 1 + column], divisor) / (units[column] ** 2 * heavy.unit)
            for column in range(width)
        )
        if inverse and len(kept) == width
        else None,
        targets=targets,
        weights=heavy,
    )


def _whole(column: Any) -> WholeColumn:
    """Return a column of floats or fractions as whole numbers and a unit."""
    if isinstance(column, Sequence) and column and isinstance(column[0], Fraction):
        denominator = math.lcm(*(value.denominator for value in column))
        return WholeColumn([int(value * denominator) for value in column], Fraction(1, denominator))
    values = np.asarray(column, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("the judge takes finite numbers")
    parts, exponents = np.frexp(values)
    # 53 bits hold any float64, subnormal ones included.
    digits = np.ldexp(parts, 53).astype(np.int64)
    # Zeros at the end of all numbers go into the unit: whole numbers stay small, and elimination quick.
    ends = np.where(digits != 0, np.log2(np.abs(digits & -digits), where=digits != 0, out=np.zeros(len(digits))), 0)
    digits >>= ends.astype(np.int64)
    places = exponents - 53 + ends.astype(np.int64)
    lowest = int(places[digits != 0].min()) if digits.any() else 0
    shifts = np.where(digits != 0, places - lowest, 0)
    whole = [digit << shift for digit, shift in zip(digits.tolist(), shifts.tolist(), strict=True)]
    return WholeColumn(whole, Fraction(2) ** lowest)


def _eliminate(matrix: list[list[int]], width: int) -> tuple[list[int], int]:
    """Reduce the first `width` columns of a Gram matrix, in place and without fractions.

    Return the columns that none before them determine, and the common divisor of all entries. A pivot of zero means
    that the whole column is determined: the matrix is positive semidefinite.
    """
    kept: list[int] = []
    divisor = 1
    for pivot in range(width):
        head = matrix[pivot][pivot]
        if head == 0:
            continue
        lead = matrix[pivot]
        for number, row in enumerate(matrix):
            if number != pivot:
                factor = row[pivot]
                row[:] = [(head * old - factor * new) // divisor for old, new in zip(row, lead, strict=True)]
        kept.append(pivot)
        divisor = head
    return kept, divisor


def _fitted(columns: list[list[int]], shares: list[int], divisor: int, unit: Fraction, count: int) -> FloatArray:
    sums = [0] * count
    for column, share in zip(columns, shares, strict=True):
        if share:
            sums = [total + share * value for total, value in zip(sums, column, strict=True)]
    bottom = divisor * unit.denominator
    return np.array([total * unit.numerator / bottom for total in sums])


def digits_of(found: Any, exact: Sequence[Fraction], most: float = 15.5) -> float:
    """Return how many digits of the worst coefficient are right: −log₁₀ of its relative error, at most `most`.

    A coefficient that is exactly zero is measured absolutely, as NIST does.
    """
    worst = most
    for value, truth in zip(found, exact, strict=True):
        if not math.isfinite(float(value)):
            return -math.inf
        error = abs(Fraction(float(value)) - truth) / (abs(truth) or 1)
        if error > Fraction(10) ** -20:
            worst = min(worst, -math.log10(error))
    return worst
