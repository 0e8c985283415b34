"""Small least squares with twice the digits, for columns that doubles cannot tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.basis import shares_of, well_chosen
from partsketch.common.linalg.blas import triangular_inverse
from partsketch.common.linalg.solution import Alias, FloatArray, Solution, condition_of, gradient_left

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import DoubleDouble, Factor


#: Share of a column, in units of both columns, that counts as taking part in it.
_TAKES_PART = 1e-6

#: Rounding of sums of products of coefficients and columns, in units of their terms.
_ROUNDED_SUMS = 4 * float(np.finfo(np.float64).eps)


def solve_precisely(
    gram: DoubleDouble,
    names: tuple[str, ...],
    width: int,
    free: int,
    tolerance: float,
    rounding: float,
    most: int,
    units: FloatArray,
    locations: FloatArray,
) -> Solution:
    """Return the solution of least norm that sums of products with twice the digits give, in their units."""
    from partsketch.common.linalg.double_double import DoubleDouble, factor_gram

    factor = factor_gram(gram, width, free, tolerance, rounding, most)
    order, chosen = np.arange(width), factor
    aliased: tuple[Alias, ...] = ()
    if not factor.kept.all():
        dependent, shares = np.flatnonzero(~factor.kept), shares_of(factor)
        aliased = _aliases(names, dependent, shares, factor.left_over, free, units, locations)
        order, chosen = well_chosen(gram, factor, shares, free, rounding, units)
    coefficients, inverse_root = _least_norm(chosen, free, units[order])
    high, low = chosen.rows
    missed = _missed(DoubleDouble(high[:width], low[:width]), coefficients).high
    explained = np.einsum("ij,ij->j", high[:width, width:], high[:width, width:])
    least_sums = np.maximum(np.diagonal(high)[width:], 0.0)
    residual_sums, avoidable = least_sums + np.einsum("ij,ij->j", missed, missed), None
    back = np.argsort(order)
    if aliased:
        own = _residual_sums(gram, coefficients[back])
        # What the others leave of a dependent column is multiplied by its coefficient too.
        residual_sums = np.maximum(own, residual_sums)
        if factor.doubtful.any():
            every = factor_gram(gram, width, free, 0.0, rounding, most).rows.high
            least_sums = np.minimum(least_sums, np.maximum(np.diagonal(every)[width:], 0.0))
        avoidable = np.where(own > 0, 1.0 - least_sums / np.where(own > 0, own, 1.0), 0.0)
    kept = np.flatnonzero(factor.kept)
    root = factor.rows.high[np.ix_(kept, kept)]
    return Solution(
        coefficients=coefficients[back],
        residual_sums=residual_sums,
        rank=int(kept.size),
        condition=condition_of(root, int(factor.kept[:free].sum())) if kept.size else float("nan"),
        tolerance=tolerance,
        aliased=aliased,
        inverse_root=inverse_root[back],
        gradient=gradient_left(high[:width, :width], missed, coefficients, np.sqrt(explained + residual_sums)),
        avoidable=avoidable,
    )


def _least_norm(factor: Factor, free: int, units: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of least norm, and the root of the inverse that belongs to them, in units."""
    from partsketch.common.linalg.double_double import DoubleDouble

    width, (high, low) = factor.kept.size, factor.rows
    kept = np.flatnonzero(factor.kept)
    coefficients = factor.solve(DoubleDouble(high[:width, width:], low[:width, width:])).high
    inverse_root = np.zeros((width, kept.size))
    if kept.size:
        inverse_root[kept] = triangular_inverse(np.ascontiguousarray(high[np.ix_(kept, kept)]))
    if kept.size == width:
        return coefficients, inverse_root
    dependent = np.flatnonzero(~factor.kept)
    # The norm is that of the coefficients as the caller's columns have them.
    null_space = -shares_of(factor) * units[:, None]
    null_space[dependent, np.arange(dependent.size)] = units[dependent]
    # A power of two first: the squares of very large or small units are no doubles.
    null_space = np.ldexp(null_space, -np.frexp(np.abs(null_space).max(axis=0))[1])
    null_space /= np.linalg.norm(null_space, axis=0)
    correction = null_space @ np.linalg.pinv(null_space[free:])
    counted = units[free:, None]
    coefficients = coefficients - correction @ (coefficients[free:] * counted) / units[:, None]
    inverse_root = inverse_root - correction @ (inverse_root[free:] * counted) / units[:, None]
    # A column of zeros has neither a coefficient nor an error, not even one of rounding.
    nothing = ~high[:width, :width].any(axis=0)
    coefficients[nothing] = inverse_root[nothing] = 0.0
    return _found_anew(factor, coefficients, dependent), inverse_root


def _found_anew(factor: Factor, coefficients: FloatArray, dependent: NDArray[np.intp]) -> FloatArray:
    """Return coefficients of which those of dependent columns stay, the others solved for with twice the digits.

    The least norm is found in doubles; what it predicts is then as exact as at full rank.
    """
    from partsketch.common.linalg.double_double import DoubleDouble

    width, (high, low) = len(coefficients), factor.rows
    chosen = [*dependent, *range(width, high.shape[1])]
    rest = DoubleDouble(high[:width, chosen], low[:width, chosen])
    found = factor.solve(_missed(rest, coefficients[dependent])).high
    found[dependent] = coefficients[dependent]
    return found


def _missed(rows: DoubleDouble, coefficients: FloatArray) -> DoubleDouble:
    """Return t − F a for rows [F t], with twice the digits."""
    from partsketch.common.linalg.double_double import DoubleDouble

    width = len(coefficients)
    targets = DoubleDouble(rows.high[:, width:], rows.low[:, width:])
    return _less_products(
        targets, DoubleDouble(rows.high.T[:width, :, None], rows.low.T[:width, :, None]), coefficients
    )


def _residual_sums(gram: DoubleDouble, coefficients: FloatArray) -> FloatArray:
    """Return the residual sums of squares of these very coefficients, zero where rounding them leaves no less."""
    from partsketch.common.linalg.double_double import DoubleDouble

    width = len(coefficients)
    high, low = _missed(gram, coefficients)
    own = DoubleDouble(np.diagonal(high[width:]), np.diagonal(low[width:]))
    norms = np.sqrt(np.diagonal(gram.high))
    rounded = _ROUNDED_SUMS * (norms[:width] @ np.abs(coefficients) + norms[width:])
    found = _less_products(own, DoubleDouble(high[:width], low[:width]), coefficients).high
    return np.where(found > np.square(rounded), found, 0.0)


def _less_products(start: DoubleDouble, factors: DoubleDouble, values: FloatArray) -> DoubleDouble:
    """Return what is left after products of factors and values were taken off, with twice the digits."""
    from partsketch.common.linalg.double_double import DoubleDouble
    from partsketch.common.linalg.error_free import two_product, two_sum

    total, rest = start
    for high, low, value in zip(*factors, values, strict=True):
        product, error = two_product(high, -value)
        total, lost = two_sum(total, product)
        rest = rest + lost + error - low * value
    return DoubleDouble(*two_sum(total, rest))


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
        # Rounding of heavy rows may leave nothing of the size of a column that light rows have.
        share = shares[:, number] * sizes / sizes[column] if sizes[column] > 0 else shares[:, number]
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
