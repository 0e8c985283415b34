"""Small least squares: equilibrated, rank-revealing, minimum norm, with every decision reported."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.blas import triangular_inverse

FloatArray = NDArray[np.float64]

#: From here on a solution is worth looking for without singular vectors first.
_MANY_COLUMNS = 100


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
        Residual sum of squares per target.
    rank
        Numerical rank of the feature columns.
    condition
        Ratio of the largest to the smallest singular value kept, after columns were scaled to norm one.
    tolerance
        Singular values of the scaled columns below this part of the largest count as zero.
    aliased
        Columns that others determine; empty at full rank.
    inverse_root
        B with B Bᵀ = G⁻, the symmetric generalised inverse of the Gram matrix that belongs to these coefficients.
    inverse
        How well that is known: "exact", "estimated" from a sketch where the coefficients are not, or "unknown".
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
    total_sums: FloatArray | None = None
    row_count: int | None = None


def solve_least_squares(
    matrix: FloatArray,
    names: tuple[str, ...],
    target_count: int = 1,
    free_columns: int = 0,
    extra_rounding: float = 0.0,
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
    """
    width = matrix.shape[1] - target_count
    features, targets = matrix[:, :width], matrix[:, width:]
    norms = np.linalg.norm(features, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    scaled = features / scale
    tolerance = max(matrix.shape) * np.finfo(np.float64).eps + extra_rounding
    if width >= _MANY_COLUMNS and matrix.shape[0] >= width:
        solution = _solve_at_full_rank(scaled, targets, scale, tolerance)
        if solution is not None:
            return solution
    left, values, right = np.linalg.svd(scaled, full_matrices=False)
    largest = float(values[0]) if values.size else 0.0
    rank = int(np.count_nonzero(values > tolerance * largest))
    kept = right[:rank].T / scale[:, None]
    inverse_root = kept / values[:rank]
    projected = left[:, :rank].T @ targets
    coefficients = inverse_root @ projected
    residuals = targets - left[:, :rank] @ projected
    aliased: tuple[Alias, ...] = ()
    if rank < width:
        null_space = _null_space(right[:rank], scale)
        counted = null_space[free_columns:]
        correction = null_space @ np.linalg.pinv(counted)
        coefficients = coefficients - correction @ coefficients[free_columns:]
        inverse_root = inverse_root - correction @ inverse_root[free_columns:]
        aliased = _find_aliases(scaled, names, width - rank, np.sqrt(tolerance))
    coefficients[norms == 0] = 0.0
    condition = largest / float(values[rank - 1]) if rank else float("nan")
    return Solution(
        coefficients=coefficients,
        residual_sums=np.einsum("ij,ij->j", residuals, residuals),
        rank=rank,
        condition=condition,
        tolerance=tolerance,
        aliased=aliased,
        inverse_root=inverse_root,
    )


def _solve_at_full_rank(
    scaled: FloatArray, targets: FloatArray, scale: FloatArray, tolerance: float
) -> Solution | None:
    """Solve by a triangular factor, or return None where the rank is not full.

    Singular values tell the rank; their vectors, which take most of the time, are of use only where it is not full.
    """
    from scipy.linalg import solve_triangular

    width = scaled.shape[1]
    factor = np.hstack([scaled, targets])
    if np.tril(factor, -1).any():
        factor = np.asarray(np.linalg.qr(factor, mode="r"))
    root = factor[:width, :width]
    values = np.linalg.svd(root, compute_uv=False)
    if not values[-1] > tolerance * values[0]:
        return None
    residuals = factor[width:, width:]
    return Solution(
        coefficients=solve_triangular(root, factor[:width, width:]) / scale[:, None],
        residual_sums=np.einsum("ij,ij->j", residuals, residuals),
        rank=width,
        condition=float(values[0] / values[-1]),
        tolerance=tolerance,
        aliased=(),
        inverse_root=triangular_inverse(root) / scale[:, None],
    )


def solve_ridge(
    matrix: FloatArray, names: tuple[str, ...], target_count: int, free_columns: int, penalty: float
) -> Solution:
    """Solve min ‖F a − t‖² + penalty ‖a‖², the first `free_columns` coefficients not penalised.

    Solved as least squares with extra rows, never through the normal equations. Residual sums leave the penalty out;
    rank and condition are those of the penalised problem.
    """
    width = matrix.shape[1] - target_count
    extra = np.zeros((width - free_columns, matrix.shape[1]))
    extra[:, free_columns:width] = np.sqrt(penalty) * np.eye(width - free_columns)
    solution = solve_least_squares(np.vstack([matrix, extra]), names, target_count, free_columns)
    residuals = matrix[:, width:] - matrix[:, :width] @ solution.coefficients
    return replace(solution, residual_sums=np.einsum("ij,ij->j", residuals, residuals))


def _null_space(row_space: FloatArray, scale: FloatArray) -> FloatArray:
    """Return a basis of the vectors a with F a = 0, given the row space of the scaled F; columns of norm one."""
    complete = np.linalg.qr(row_space.T, mode="complete")[0]
    basis = complete[:, row_space.shape[0] :] / scale[:, None]
    return np.asarray(basis / np.linalg.norm(basis, axis=0))


def _find_aliases(scaled: FloatArray, names: tuple[str, ...], count: int, tolerance: float) -> tuple[Alias, ...]:
    """Name `count` columns that those before them determine: the ones that leave least when these are taken out."""
    width = scaled.shape[1]
    left_over = np.empty(width)
    basis = np.zeros((scaled.shape[0], 0))
    kept: list[int] = []
    dependent: list[int] = []
    for column in range(width):
        rest = scaled[:, column]
        for _ in range(2):  # twice is enough for orthogonality to working precision
            rest = rest - basis @ (basis.T @ rest)
        left_over[column] = np.linalg.norm(rest)
        if left_over[column] <= tolerance and len(dependent) < count:
            dependent.append(column)
        else:
            kept.append(column)
            basis = np.column_stack([basis, rest / left_over[column]]) if left_over[column] > 0 else basis
    if len(dependent) < count:
        rest_of = sorted(kept, key=lambda column: left_over[column])[: count - len(dependent)]
        dependent = sorted([*dependent, *rest_of])
        kept = [column for column in kept if column not in rest_of]
    aliases = []
    for column in dependent:
        before = [other for other in kept if other < column]
        share = np.linalg.lstsq(scaled[:, before], scaled[:, column], rcond=None)[0] if before else np.zeros(0)
        others = tuple(names[other] for other, part in zip(before, share, strict=True) if abs(part) > 1e-6)
        aliases.append(Alias(names[column], others))
    return tuple(aliases)
