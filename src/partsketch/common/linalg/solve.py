"""Small least squares: equilibrated, rank-revealing, minimum norm, with every decision reported.

There is one way to solve, and it is tried in doubles first: a triangular factor, and how much each column of its
inverse inflates. Where that is more than doubles can bear, the sums of products are taken with twice the digits and
factored so; columns that those before them determine are found there, far above its rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.blas import triangular_factor, triangular_inverse

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import DoubleDouble, Factor

FloatArray = NDArray[np.float64]

#: A column of which those before it leave a smaller part than this is determined by them: hundreds of times what
#: rounding leaves of a column that was computed from others.
RANK_TOLERANCE = 1e-13

#: Variance inflation factor up to which a factor in doubles serves: its square root is what rounding is multiplied by.
SAFE_INFLATION = 1e4

#: The same where twice the digits would take seconds.
_SAFE_INFLATION_OF_MANY = 1e10
_MUCH_WORK = 2e8

#: Rounding that a matrix of doubles carries: tens of times that of one operation.
_ROUNDING = 1e-14

#: How many times its rounding must be left of a column for doubles to judge it.
_FAR = 1e4

#: What doubles leave of a gradient that is zero, with plenty of room.
_ROUNDED_GRADIENT = 1e-13

#: Share of a column, in units of both columns, that counts as taking part in it.
_TAKES_PART = 1e-6


@dataclass(frozen=True)
class Alias:
    """A column that the columns before it determine, and those of them that take part."""

    column: str
    others: tuple[str, ...]


@dataclass(frozen=True)
class Solution:
    """Least squares fit of targets on features from a small matrix.

    Attributes
    ----------
    coefficients
        Shape (features, targets).
    residual_sums
        Residual sum of squares per target, of these very coefficients.
    rank
        Numerical rank of the feature columns.
    condition
        Ratio of the largest to the smallest singular value of the columns kept, after the free columns were taken out
        of them and they were scaled to norm one.
    tolerance
        A column of which those before it leave a smaller part counts as determined by them.
    aliased
        Columns that others determine; empty at full rank.
    inverse_root
        B with B Bᵀ = G⁻, the symmetric generalised inverse of the Gram matrix that belongs to these coefficients.
    inverse
        How well that is known: "exact", "estimated" from a sketch where the coefficients are not, or "unknown".
    gradient
        What is left of Fᵀ(t − F a), in units of the norms of F and of what is added up to t − F a; what rounding
        explains is below `LARGEST_GRADIENT`.
    total_sums
        Sums of squares of the targets (around their means, with an intercept), where there are no summaries to tell.
    row_count
        Rows behind the solution, where there are no summaries to tell.
    """

    coefficients: FloatArray
    residual_sums: FloatArray
    rank: int
    condition: float
    tolerance: float
    aliased: tuple[Alias, ...]
    inverse_root: FloatArray
    inverse: str = "exact"
    gradient: float = 0.0
    total_sums: FloatArray | None = None
    row_count: int | None = None


def sketch_rounding(row_count: int) -> float:
    """Return the relative rounding of sketches: of sums over n rows it grows like √n."""
    return 10.0 * float(np.finfo(np.float64).eps) * float(np.sqrt(max(row_count, 1)))


#: Rounding of coefficients in doubles leaves about 1e-16 of the gradient, times the number of columns.
LARGEST_GRADIENT = 1e-11


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
    units = _units(matrix)
    rows = DoubleDouble.of(matrix * units, None if low is None else low * units)
    tolerance = RANK_TOLERANCE + extra_rounding
    # Doubles without a second part have been rounded on their way here, by a factorisation at least.
    rounding = max(extra_rounding, _ROUNDING if low is None else 0.0)
    most = min(matrix.shape[0], width if most_rank is None else most_rank)
    solution = _solve_in_doubles(rows, width, free_columns, tolerance, rounding) if most >= width else None
    if solution is None or not solution.gradient <= _ROUNDED_GRADIENT:
        shift = np.zeros(width) if locations is None else locations
        factor = _precise_factor(rows, width, free_columns, tolerance, rounding, most)
        solution = _solve_with_twice_the_digits(factor, names, width, free_columns, tolerance, units, shift)
    feature_units, target_units = units[:width], units[width:]
    return replace(
        solution,
        coefficients=solution.coefficients * feature_units[:, None] / target_units,
        residual_sums=solution.residual_sums / target_units**2,
        inverse_root=solution.inverse_root * feature_units[:, None],
    )


def _units(matrix: FloatArray) -> FloatArray:
    """Return powers of two that bring the largest entry of each column close to one."""
    largest = np.abs(matrix).max(axis=0, initial=0.0)
    return np.where(largest > 0, np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000)), 1.0)


def _triangle(rows: FloatArray) -> FloatArray:
    """Return the triangular factor of some rows; a factor as it is."""
    if rows.shape[0] == rows.shape[1] and not np.tril(rows, -1).any():
        return rows
    return triangular_factor(rows)


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


def _solve_in_doubles(rows: DoubleDouble, width: int, free: int, tolerance: float, rounding: float) -> Solution | None:
    """Solve by a triangular factor, or return None where doubles are not enough."""
    from scipy.linalg import solve_triangular

    if rows.high.shape[0] < width or width == 0:
        return None
    much = rows.high.shape[0] * float(rows.high.shape[1]) ** 2 > _MUCH_WORK
    factor = _triangle(rows.high)
    root = factor[:width, :width]
    found = _inflations(root, free)
    safe = _SAFE_INFLATION_OF_MANY if much else SAFE_INFLATION
    if found is None or found[1].max(initial=1.0) > min(safe, tolerance**-2):
        return None
    # A column of which the free ones leave no more than rounding looks like any other to what comes after them.
    squares = np.square(root)
    if (squares[free:].sum(axis=0)[free:] <= (_FAR * rounding) ** 2 * squares.sum(axis=0)[free:]).any():
        return None
    inverse, _ = found
    projected = factor[:width, width:]
    coefficients = np.asarray(solve_triangular(root, projected, check_finite=False))
    missed = projected - root @ coefficients
    left_over = factor[width:, width:]
    return Solution(
        coefficients=coefficients,
        residual_sums=np.einsum("ij,ij->j", left_over, left_over) + np.einsum("ij,ij->j", missed, missed),
        rank=width,
        condition=_condition(root, free),
        tolerance=tolerance,
        aliased=(),
        inverse_root=inverse,
        gradient=_gradient(root, missed, coefficients, np.linalg.norm(factor[:, width:], axis=0)),
    )


def _solve_with_twice_the_digits(
    factor: Factor,
    names: tuple[str, ...],
    width: int,
    free: int,
    tolerance: float,
    units: FloatArray,
    locations: FloatArray,
) -> Solution:
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
    residual_sums = np.maximum(np.diagonal(high)[width:], 0.0) + np.einsum("ij,ij->j", missed, missed)
    return Solution(
        coefficients=coefficients,
        residual_sums=residual_sums,
        rank=int(kept.size),
        condition=_condition(root, int(factor.kept[:free].sum())) if kept.size else float("nan"),
        tolerance=tolerance,
        aliased=aliased,
        inverse_root=inverse_root,
        gradient=_gradient(high[:width, :width], missed, coefficients, np.sqrt(_squares(high, width) + residual_sums)),
    )


def _squares(high: FloatArray, width: int) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", high[:width, width:], high[:width, width:]))


def _precise_factor(rows: DoubleDouble, width: int, free: int, tolerance: float, rounding: float, most: int) -> Factor:
    from partsketch.common.linalg.double_double import DoubleDouble, factor_gram

    if rows.high.shape[0] * float(rows.high.shape[1]) ** 2 > _MUCH_WORK and rows.high.shape[0] > rows.high.shape[1]:
        rows = DoubleDouble.of(_triangle(rows.high))
    return factor_gram(rows.gram(), width, free, tolerance, rounding, most)


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


def _gradient(root: FloatArray, missed: FloatArray, coefficients: FloatArray, target_norms: FloatArray) -> float:
    """Return what is left of Fᵀ(t − F a), in units of the norms of F and of what is added up to t − F a."""
    sizes = np.linalg.norm(root, axis=0)
    norms = sizes[:, None] * (target_norms + sizes @ np.abs(coefficients))
    with np.errstate(all="ignore"):
        parts = np.abs(root.T @ missed) / np.where(norms > 0, norms, 1.0)
    return float(parts.max(initial=0.0))


def _condition(root: FloatArray, free: int) -> float:
    inner = root[free:, free:]
    if not inner.size:
        return 1.0
    with np.errstate(all="ignore"):
        values = np.linalg.svd(inner / np.linalg.norm(inner, axis=0), compute_uv=False)
        return float(values[0] / values[-1])


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


def factor_of_rows(rows: DoubleDouble) -> DoubleDouble:
    """Return the square triangular factor of some rows, its diagonal not negative, to the digits that they have."""
    from partsketch.common.linalg.double_double import DoubleDouble, factor_gram

    units = _units(rows.high)
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
