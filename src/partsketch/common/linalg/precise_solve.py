"""Small least squares with twice the digits, for columns that doubles cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.blas import triangular_inverse
from partsketch.common.linalg.solution import Alias, FloatArray, Solution, condition_of, gradient_left

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import Factor


#: Share of a column, in units of both columns, that counts as taking part in it.
_TAKES_PART = 1e-6


def solve_precisely(
    factor: Factor,
    names: tuple[str, ...],
    width: int,
    free: int,
    tolerance: float,
    units: FloatArray,
    locations: FloatArray,
) -> Solution:
    """Return the solution of least norm that a factor with twice the digits gives, in its units."""
    from partsketch.common.linalg.double_double import DoubleDouble

    high, low = factor.rows
    kept = np.flatnonzero(factor.kept)
    coefficients = factor.solve(DoubleDouble(high[:width, width:], low[:width, width:])).high
    root = high[np.ix_(kept, kept)]
    inverse_root = np.zeros((width, kept.size))
    if kept.size:
        inverse_root[kept] = triangular_inverse(np.ascontiguousarray(root))
    aliased: tuple[Alias, ...] = ()
    if kept.size < width:
        dependent = np.flatnonzero(~factor.kept)
        shares = factor.solve(DoubleDouble(high[:width, dependent], low[:width, dependent])).high
        aliased = _aliases(names, dependent, shares, factor.left_over, free, units, locations)
        # The norm is that of the coefficients as the caller's columns have them.
        null_space = -shares * units[:width, None]
        null_space[dependent, np.arange(dependent.size)] = units[dependent]
        null_space /= np.linalg.norm(null_space, axis=0)
        correction = null_space @ np.linalg.pinv(null_space[free:])
        counted = units[free:width, None]
        coefficients = coefficients - correction @ (coefficients[free:] * counted) / units[:width, None]
        inverse_root = inverse_root - correction @ (inverse_root[free:] * counted) / units[:width, None]
    missed = _missed(factor, coefficients, width)
    explained = np.einsum("ij,ij->j", high[:width, width:], high[:width, width:])
    residual_sums = np.maximum(np.diagonal(high)[width:], 0.0) + np.einsum("ij,ij->j", missed, missed)
    return Solution(
        coefficients=coefficients,
        residual_sums=residual_sums,
        rank=int(kept.size),
        condition=condition_of(root, int(factor.kept[:free].sum())) if kept.size else float("nan"),
        tolerance=tolerance,
        aliased=aliased,
        inverse_root=inverse_root,
        gradient=gradient_left(high[:width, :width], missed, coefficients, np.sqrt(explained + residual_sums)),
    )


def _missed(factor: Factor, coefficients: FloatArray, width: int) -> FloatArray:
    """Return R a − z for the triangular system R a = z, with twice the digits."""
    from partsketch.common.linalg.double_double import two_product, two_sum

    high, low = factor.rows
    total, rest = high[:width, width:].copy(), low[:width, width:].copy()
    for column in range(width):
        product, error = two_product(high[:width, column : column + 1], -coefficients[column])
        total, lost = two_sum(total, product)
        rest = rest + lost + error - low[:width, column : column + 1] * coefficients[column]
    return np.asarray(total + rest)


def _aliases(
    names: tuple[str, ...],
    dependent: NDArray[np.intp],
    shares: FloatArray,
    left_over: FloatArray,
    free: int,
    units: FloatArray,
    locations: FloatArray,
) -> tuple[Alias, ...]:
    """Name what each dependent column is made of; shares are in units of both columns."""
    sizes = np.sqrt(np.maximum(left_over[: len(names)], 0.0))
    found = []
    for number, column in enumerate(dependent):
        share = shares[:, number] * sizes / (sizes[column] if sizes[column] > 0 else 1.0)
        takes_part = np.abs(share) > _TAKES_PART
        if free and column > 0:
            # Where the column lies, as its own units have it, after those of the others were taken off.
            plain = shares[:, number] * units[: len(names)] / units[column]
            moved = plain[1:] * locations[1:]
            place = plain[0] + locations[column] - moved.sum()
            spread = 1.0 if sizes[column] > 0 else 0.0
            takes_part[0] = abs(place) > _TAKES_PART * max(abs(locations[column]), np.abs(moved).sum(), spread)
        others = tuple(name for name, part in zip(names[:column], takes_part[:column], strict=True) if part)
        found.append(Alias(names[column], others))
    return tuple(found)
