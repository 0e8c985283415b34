"""Small triangles of one shape, solved side by side: of a hundred, the interpreter takes longer than the arithmetic.

What is asked of each is what `solve.py` asks of one, and whatever does not pass is left to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partsketch.common.linalg.blas import triangular_factor, triangular_inverse, triangular_solve
from partsketch.common.linalg.helpers import shared_map
from partsketch.common.linalg.solution import FloatArray, Solution, conditions_of, gradients_left
from partsketch.common.linalg.solve import (
    FAR,
    LARGEST_SQUARES,
    RANK_TOLERANCE,
    ROUNDED_GRADIENT,
    ROUNDING,
    SAFE_FOR_GRAM,
    SAFE_INFLATION,
    SMALLEST_SQUARES,
    in_units,
    tall_factor,
    units_of,
)

#: Wider triangles are inverted one by one, as triangles: there the arithmetic is what takes time.
WIDEST_OF_MANY = 128

#: Numbers of the triangles that are solved at once: they stay in the cache.
_NUMBERS_AT_ONCE = 2**18
#: How many of them a thread takes at most, while others may take more.
_MOST_AT_ONCE = 16
#: Triangles up to this wide are inverted as any matrix is.
_INVERTED_WHOLE = 16


def at_once(width: int) -> int:
    """Return how many triangles of so many columns are solved at once."""
    return max(1, _NUMBERS_AT_ONCE // max(1, width * width))


def tall_factors(parts: Sequence[FloatArray]) -> list[FloatArray]:
    """Return `tall_factor` of matrices that have the same columns."""
    width = parts[0].shape[1] if parts else 0
    if not 0 < width <= WIDEST_OF_MANY:
        return shared_map(tall_factor, parts)
    some = min(_MOST_AT_ONCE, at_once(width))
    found = shared_map(_tall_factors, [parts[i : i + some] for i in range(0, len(parts), some)])
    return [factor for factors in found for factor in factors]


def _tall_factors(parts: Sequence[FloatArray]) -> list[FloatArray]:
    if any(part.shape[0] <= 2 * part.shape[1] for part in parts):
        return [tall_factor(part) for part in parts]
    with np.errstate(all="ignore"):
        grams = np.stack([part.T @ part for part in parts])
    squares = np.diagonal(grams, axis1=1, axis2=2)
    if not (squares.min() > SMALLEST_SQUARES and squares.max() < LARGEST_SQUARES):
        return [tall_factor(part) for part in parts]
    units = np.ldexp(1.0, -(np.frexp(squares)[1] // 2))
    try:
        factors = np.linalg.cholesky(grams * units[:, None, :] * units[:, :, None]).transpose(0, 2, 1)
    except np.linalg.LinAlgError:
        return [tall_factor(part) for part in parts]
    _, inflated = _inflations(factors, 0)
    safe = np.isfinite(inflated).all(axis=1) & ~(inflated.max(axis=1) > SAFE_FOR_GRAM)
    found = np.ascontiguousarray(factors / units[:, None, :])
    return [factor if good else triangular_factor(part) for part, factor, good in zip(parts, found, safe, strict=True)]


def _inflations(roots: FloatArray, free: int) -> tuple[FloatArray, FloatArray]:
    """Return the inverses of triangles without zeros on the diagonal, and how much they inflate columns."""
    with np.errstate(all="ignore"):
        if roots.shape[2] <= WIDEST_OF_MANY:
            inverses: FloatArray = _inverted(roots)
        else:
            inverses = np.stack([triangular_inverse(root) for root in roots])
        # What the free columns explain of a column is a matter of where it lies, not of what it depends on.
        norms = np.einsum("kij,kij->kj", roots[:, free:, free:], roots[:, free:, free:])
        inner = np.einsum("kij,kij->ki", inverses[:, free:, free:], inverses[:, free:, free:])
        return inverses, norms * inner


def _inverted(roots: FloatArray) -> FloatArray:
    """Return the inverses of upper triangles, by halves: as any matrix they take three times as long."""
    width = roots.shape[2]
    if width <= _INVERTED_WHOLE:
        return np.asarray(np.linalg.inv(roots), dtype=np.float64)
    half = width // 2
    inverses = np.zeros(roots.shape)
    above, below = _inverted(roots[:, :half, :half]), _inverted(roots[:, half:, half:])
    inverses[:, :half, :half], inverses[:, half:, half:] = above, below
    np.negative(above @ (roots[:, :half, half:] @ below), out=inverses[:, :half, half:])
    return inverses


def _solved(roots: FloatArray, right: FloatArray) -> FloatArray:
    if roots.shape[2] <= WIDEST_OF_MANY:
        # An upper triangle is its own LU decomposition, with no rows exchanged: only the back substitution rounds.
        return np.asarray(np.linalg.solve(roots, right))
    return np.stack([triangular_solve(root, side) for root, side in zip(roots, right, strict=True)])


def solve_factors(
    factors: FloatArray, target_count: int, free_columns: int, extra_roundings: FloatArray
) -> list[Solution | None]:
    """Solve min ‖F a − t‖ for upper triangles F of all rows; None for those that `solve_least_squares` must judge.

    Parameters
    ----------
    factors : array of shape (k, q, q)
        Upper triangles, targets last.
    target_count, free_columns
        Columns of targets; leading columns that explain the others without being judged.
    extra_roundings : array of shape (k,)
        Rounding of each triangle beyond that of doubles.
    """
    found = shared_map(
        lambda some: _solve_some(factors[some], target_count, free_columns, extra_roundings[some]),
        [slice(i, i + _MOST_AT_ONCE) for i in range(0, len(factors), _MOST_AT_ONCE)],
    )
    return [solution for solutions in found for solution in solutions]


def _solve_some(
    factors: FloatArray, target_count: int, free_columns: int, extra_roundings: FloatArray
) -> list[Solution | None]:
    count, rows, columns = factors.shape
    width = columns - target_count
    found: list[Solution | None] = [None] * count
    # A triangle is what is expected here; anything else is not looked at.
    if width == 0 or rows != columns or np.tril(factors, -1).any():
        return found
    units = units_of(factors)
    factors = factors * units[:, None, :]
    tolerances, roundings = RANK_TOLERANCE + extra_roundings, np.maximum(extra_roundings, ROUNDING)
    usable = np.asarray(np.diagonal(factors, axis1=1, axis2=2)[:, :width].all(axis=1))
    roots = np.where(usable[:, None, None], factors[:, :width, :width], np.eye(width))
    inverses, inflated = _inflations(roots, free_columns)
    usable &= np.isfinite(inflated).all(axis=1)
    usable &= ~(inflated.max(axis=1, initial=1.0) > np.minimum(SAFE_INFLATION, tolerances**-2))
    # A column of which the free ones leave no more than rounding looks like any other to what comes after them.
    squares = np.square(roots[:, :, free_columns:])
    left, whole = squares[:, free_columns:].sum(axis=1), squares.sum(axis=1)
    usable &= ~(left <= np.square(FAR * roundings)[:, None] * whole).any(axis=1)
    chosen = np.flatnonzero(usable)
    factors, roots, inverses = factors[chosen], roots[chosen], inverses[chosen]
    projected, left_over = factors[:, :width, width:], factors[:, width:, width:]
    coefficients = _solved(roots, projected)
    missed = projected - roots @ coefficients
    sums = np.einsum("kij,kij->kj", left_over, left_over) + np.einsum("kij,kij->kj", missed, missed)
    conditions = conditions_of(roots, free_columns, inverses)
    gradients = gradients_left(roots, missed, coefficients, np.linalg.norm(factors[:, :, width:], axis=1))
    for place, number in enumerate(chosen):
        if gradients[place] <= ROUNDED_GRADIENT:
            solution = Solution(
                coefficients=coefficients[place],
                residual_sums=sums[place],
                rank=width,
                condition=float(conditions[place]),
                tolerance=float(tolerances[number]),
                aliased=(),
                inverse_root=inverses[place],
                gradient=float(gradients[place]),
            )
            found[number] = in_units(solution, units[number])
    return found
