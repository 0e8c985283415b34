"""Small least squares: equilibrated, rank-revealing, minimum norm, with every decision reported.

There is one way to solve, and it is tried in doubles first: a triangular factor, and how much each column of its
inverse inflates. Where that is more than doubles can bear, the sums of products are taken with twice the digits and
factored so; columns that those before them determine are found there, far above its rounding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from partsketch.common.changed import changed
from partsketch.common.linalg.blas import triangular_factor, triangular_inverse, triangular_solve
from partsketch.common.linalg.precise_solve import solve_precisely
from partsketch.common.linalg.solution import FloatArray, Solution, condition_of, gradient_left
from partsketch.common.linalg.wide_triangles import is_upper_triangle

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import DoubleDouble

#: A column of which those before it leave a smaller part than this is determined by them: hundreds of times what
#: rounding leaves of a column that was computed from others. The one rank tolerance of the package: sketches raise it
#: by their `sketch_rounding`, and tolerances of other things have names and reasons of their own.
RANK_TOLERANCE = 1e-13

#: Variance inflation factor up to which a factor in doubles serves: its square root is what rounding is multiplied by.
SAFE_INFLATION = 1e4

#: The same where twice the digits would take seconds.
_SAFE_INFLATION_OF_MANY = 1e10
_MUCH_WORK = 2e8

#: The same for a factor that was made of the Gram matrix: rounding is multiplied by all of it.
SAFE_FOR_GRAM = 1e3
#: Sums of squares in between are far from over- and underflow, and so are products of any two columns.
SMALLEST_SQUARES, LARGEST_SQUARES = 1e-250, 1e250

#: Numbers of a tall matrix that are factored at once: 16 MB.
_NUMBERS_AT_ONCE = 2**21

#: Rounding that a matrix of doubles carries: tens of times that of one operation.
ROUNDING = 1e-14

#: How many times its rounding must be left of a column for doubles to judge it.
FAR = 1e4

#: What doubles leave of a gradient that is zero, with plenty of room.
ROUNDED_GRADIENT = 1e-13


def sketch_rounding(row_count: int) -> float:
    """Return the relative rounding of sketches: of sums over n rows it grows like √n."""
    return 10.0 * float(np.finfo(np.float64).eps) * float(np.sqrt(max(row_count, 1)))


def solve_least_squares(
    matrix: FloatArray,
    names: tuple[str, ...],
    target_count: int = 1,
    free_columns: int = 0,
    extra_rounding: float = 0.0,
    low: FloatArray | None = None,
    locations: FloatArray | None = None,
    most_rank: int | None = None,
) -> Solution:
    """Solve min ‖F a − t‖ where `matrix` = [F t].

    When the columns of F are dependent, the solution of least norm is returned. The first `free_columns` columns (the
    intercept) do not count in that norm: a constant feature then gets coefficient zero, as in scikit-learn.

    Parameters
    ----------
    matrix
        Rows of [features targets]: a sketch, or the triangular factor of all rows.
    names
        Names of the feature columns.
    target_count
        Number of targets, the last columns.
    free_columns
        Number of leading columns outside the norm.
    extra_rounding
        Relative rounding that the rows carried before they got here; raises the rank tolerance.
    low
        What the doubles of `matrix` leave out of it.
    locations
        What was taken off the features, in multiples of the first column: for naming what determines a column.
    most_rank
        How many rows there are behind the matrix, if fewer than it has.
    """
    from partsketch.common.linalg.double_double import DoubleDouble

    width = matrix.shape[1] - target_count
    tolerance = RANK_TOLERANCE + extra_rounding
    # Doubles without a second part have been rounded on their way here, by a factorisation at least.
    rounding = max(extra_rounding, ROUNDING if low is None else 0.0)
    most = min(matrix.shape[0], width if most_rank is None else most_rank)
    judged = (width, free_columns, tolerance, rounding)
    units = units_of(matrix)
    many = matrix.shape[0] > matrix.shape[1] and matrix.shape[0] * float(matrix.shape[1]) ** 2 > _MUCH_WORK
    if many:
        # Of so many rows doubles are enough.
        rows = DoubleDouble.plain(_factor_in_strips(matrix, units))
    else:
        scaled = np.multiply(matrix, units, order="C")
        rows = DoubleDouble.plain(scaled) if low is None else DoubleDouble.of(scaled, low * units)
    solution = _solve_in_doubles(rows, *judged, many) if most >= width else None
    if solution is None or not solution.gradient <= ROUNDED_GRADIENT:
        shift = np.zeros(width) if locations is None else locations
        solution = solve_precisely(rows.gram(), names, *judged, most, units, shift)
    return in_units(solution, units)


def in_units(solution: Solution, units: FloatArray) -> Solution:
    """Return the solution of columns that had not been multiplied by these units."""
    width = len(solution.coefficients)
    feature_units, target_units = units[:width], units[width:]
    return changed(
        solution,
        coefficients=solution.coefficients * feature_units[:, None] / target_units,
        residual_sums=solution.residual_sums / target_units / target_units,
        inverse_root=solution.inverse_root * feature_units[:, None],
    )


def units_of(matrix: FloatArray) -> FloatArray:
    """Return powers of two that bring the largest entry of each column close to one, of one matrix or of several."""
    largest = np.maximum(matrix.max(axis=-2, initial=0.0), -matrix.min(axis=-2, initial=0.0))
    return np.where(largest > 0, np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000)), 1.0)


def _triangle(rows: FloatArray) -> FloatArray:
    """Return the triangular factor of some rows; a factor as it is."""
    if rows.shape[0] == rows.shape[1] and is_upper_triangle(rows):
        return rows
    return triangular_factor(rows)


def tall_factor(rows: FloatArray) -> FloatArray:
    """Return the triangular factor of a tall matrix: of its Gram matrix where that loses three digits at most."""
    if rows.shape[0] > 2 * rows.shape[1]:
        factor = _factor_of_gram(rows)
        if factor is not None:
            return factor
    return triangular_factor(rows)


def _factor_of_gram(rows: FloatArray) -> FloatArray | None:
    """Return the factor by way of the Gram matrix, in a fifth of the time; None where that is not safe."""
    with np.errstate(all="ignore"):
        gram = rows.T @ rows
    squares = np.diagonal(gram)
    if not (squares.min(initial=1.0) > SMALLEST_SQUARES and squares.max(initial=1.0) < LARGEST_SQUARES):
        return None
    units = np.ldexp(1.0, -(np.frexp(squares)[1] // 2))
    try:
        factor = np.linalg.cholesky(gram * units * units[:, None]).T
    except np.linalg.LinAlgError:
        return None
    found = _inflations(factor, 0)
    if found is None or found[1].max(initial=1.0) > SAFE_FOR_GRAM:
        return None
    return np.ascontiguousarray(factor / units)


def _factor_in_strips(matrix: FloatArray, units: FloatArray) -> FloatArray:
    """Return the triangular factor of tall rows in these units; all of them at once would be copied several times."""
    height = max(matrix.shape[1], _NUMBERS_AT_ONCE // matrix.shape[1])
    factor = triangular_factor(matrix[:height] * units)
    for start in range(height, len(matrix), height):
        factor = triangular_factor(factor, matrix[start : start + height] * units)
    return factor


def _inflations(root: FloatArray, free: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the inverse of a triangular factor and how much it inflates each column; None when there is none."""
    if not np.diagonal(root).all():
        return None
    with np.errstate(all="ignore"):
        inverse = triangular_inverse(root)
        # What the free columns explain of a column is a matter of where it lies, not of what it depends on.
        norms = np.einsum("ij,ij->j", root[free:], root[free:])
        norms[:free] = np.square(np.diagonal(root)[:free])
        inner = np.einsum("ij,ij->i", inverse[free:, free:], inverse[free:, free:])
        inflated = norms * np.concatenate([np.ones(free) / norms[:free], inner])
    return (inverse, inflated) if np.isfinite(inflated).all() else None


def _solve_in_doubles(
    rows: DoubleDouble, width: int, free: int, tolerance: float, rounding: float, many: bool = False
) -> Solution | None:
    """Solve by a triangular factor, or return None where doubles are not enough."""
    if rows.high.shape[0] < width or width == 0:
        return None
    much = many or rows.high.shape[0] * float(rows.high.shape[1]) ** 2 > _MUCH_WORK
    factor = _triangle(rows.high)
    root = factor[:width, :width]
    found = _inflations(root, free)
    safe = _SAFE_INFLATION_OF_MANY if much else SAFE_INFLATION
    if found is None or found[1].max(initial=1.0) > min(safe, tolerance**-2):
        return None
    # A column of which the free ones leave no more than rounding looks like any other to what comes after them.
    left, explained = (np.einsum("ij,ij->j", part, part) for part in (root[free:, free:], root[:free, free:]))
    if (left <= (FAR * rounding) ** 2 * (left + explained)).any():
        return None
    inverse, _ = found
    projected = factor[:width, width:]
    coefficients = triangular_solve(root, projected)
    missed = projected - root @ coefficients
    left_over = factor[width:, width:]
    return Solution(
        coefficients=coefficients,
        residual_sums=np.einsum("ij,ij->j", left_over, left_over) + np.einsum("ij,ij->j", missed, missed),
        rank=width,
        condition=condition_of(root, free, inverse),
        tolerance=tolerance,
        aliased=(),
        inverse_root=inverse,
        gradient=gradient_left(root, missed, coefficients, np.linalg.norm(factor[:, width:], axis=0)),
    )


def factor_of_rows(rows: DoubleDouble) -> DoubleDouble:
    """Return the square triangular factor of some rows, its diagonal not negative, to the digits that they have."""
    from partsketch.common.linalg.double_double import DoubleDouble, factor_gram

    units = units_of(rows.high)
    scaled = rows.scaled(units)
    if not scaled.low.any():
        factor = triangular_factor(scaled.high)
        found = _inflations(factor, 0)
        if found is not None and found[1].max(initial=1.0) <= SAFE_INFLATION:
            return DoubleDouble.of(factor / units)
    precise = factor_gram(scaled.gram(), rows.high.shape[1]).rows
    signs = np.where(np.diagonal(precise.high) < 0, -1.0, 1.0)[:, None]
    return DoubleDouble(precise.high * signs / units, precise.low * signs / units)


def solve_ridge(
    matrix: FloatArray,
    names: tuple[str, ...],
    target_count: int,
    free_columns: int,
    penalty: float,
    units: FloatArray | None = None,
    low: FloatArray | None = None,
) -> Solution:
    """Solve min ‖F a − t‖² + penalty ‖a‖², the first `free_columns` coefficients not penalised.

    Solved as least squares with extra rows, never through the normal equations. Residual sums leave the penalty out;
    rank and condition are those of the penalised problem. `units` are what the columns have been divided by: the
    penalty is on coefficients of the columns before that.
    """
    width = matrix.shape[1] - target_count
    extra = np.zeros((width - free_columns, matrix.shape[1]))
    divided = np.ones(width) if units is None else units[:width]
    extra[:, free_columns:width] = np.sqrt(penalty) * np.diag(1.0 / divided[free_columns:])
    extended = None if low is None else np.vstack([low, np.zeros_like(extra)])
    solution = solve_least_squares(np.vstack([matrix, extra]), names, target_count, free_columns, low=extended)
    residuals = matrix[:, width:] - matrix[:, :width] @ solution.coefficients
    return replace(solution, residual_sums=np.einsum("ij,ij->j", residuals, residuals))
