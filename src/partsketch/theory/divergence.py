"""How unlike the partitions are: D, the Burg divergence, leverage and relative leverage (Section 2 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray, weights_for
from partsketch.theory.moments import PartitionMoments, moments_of, require_full_rank, trace_products

GramLike: TypeAlias = PartitionMoments | ArrayLike

#: Part of the largest eigenvalue, per column, below which one is zero. No rank tolerance of columns: a Gram matrix
#: carries squared singular values, and rounding hides those below the root of this.
_EIGENVALUE_ROUNDING = 10 * np.finfo(np.float64).eps

#: Sums of products made in another order above and below the diagonal differ by far less than this.
_ASYMMETRY = 1e-10


def _root_of_gram(gram: ArrayLike, index: int) -> PartitionMoments:
    matrix = np.asarray(gram, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.all(np.isfinite(matrix)):
        raise InputError(f"Gram matrix {index} must be square and finite: pass X_iᵀX_i of each partition.")
    scale = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    floor = _EIGENVALUE_ROUNDING * len(values) * max(float(values[-1]), 0.0)
    if values[0] < -floor - np.finfo(np.float64).tiny or not np.allclose(matrix, matrix.T, rtol=_ASYMMETRY):
        raise InputError(f"Gram matrix {index} is not symmetric positive semidefinite: pass X_iᵀX_i of each partition.")
    root = np.sqrt(np.where(values > floor, values, 0.0))[:, None] * vectors.T * scale
    return PartitionMoments.from_triangular(np.column_stack([root, np.zeros(len(values))]), len(values))


def gram_moments(grams: Sequence[GramLike], names: Sequence[str] | None = None) -> list[PartitionMoments]:
    """Moments with inverses from Gram matrices or moments; a singular one is refused by partition and columns."""
    moments = moments_of(
        [gram if isinstance(gram, PartitionMoments) else _root_of_gram(gram, i) for i, gram in enumerate(grams)]
    )
    for index, part in enumerate(moments):
        require_full_rank(part, index, names)
    return moments


def divergence_matrix(grams: Sequence[GramLike], names: Sequence[str] | None = None) -> FloatArray:
    """`D_ij = tr(G_i G_j⁻¹)` for all pairs of partitions (Section 2, definition of D).

    Parameters
    ----------
    grams : sequence of arrays of shape (d, d), or of PartitionMoments
        Gram matrices `G_i = X_iᵀX_i`, all invertible. Moments are more accurate: they never square the data.
    names : sequence of str, optional
        Column names, for the message about a singular Gram matrix.

    Returns
    -------
    array of shape (k, k)
        The diagonal is d.
    """
    return trace_products(gram_moments(grams, names))


def divergence(grams: Sequence[GramLike], weights: ArrayLike | None = None) -> float:
    """Divergence `D = (1/k²) Σ_ij tr(G_i G_j⁻¹)`, at least d, and d when all Gram matrices are equal (Lemma 2.1).

    Parameters
    ----------
    grams : sequence of arrays of shape (d, d), or of PartitionMoments
        Gram matrices of the partitions, all invertible.
    weights : array of shape (k,), optional
        With weights, `Σ_j w_j² tr(G G_j⁻¹)` (Extension of Theorem 3.3); equal weights give D.

    Returns
    -------
    float
        D in units of dimensions: D/d − 1 is the relative price of unlike partitions.
    """
    matrix = divergence_matrix(grams)
    return float(matrix.sum(axis=0) @ weights_for(len(matrix), weights) ** 2)


def burg_divergence_matrix(grams: Sequence[GramLike]) -> FloatArray:
    """Burg (Stein) divergence `D_ij − d − log det(G_i G_j⁻¹)` of all pairs (Section 2).

    Parameters
    ----------
    grams : sequence of arrays of shape (d, d), or of PartitionMoments
        Gram matrices of the partitions, all invertible.

    Returns
    -------
    array of shape (k, k)
        Zero on the diagonal, positive elsewhere unless two Gram matrices are equal.
    """
    moments = gram_moments(grams)
    matrix = np.empty((len(moments), len(moments)))
    for i, numerator in enumerate(moments):
        for j, denominator in enumerate(moments):
            squares = np.linalg.svd(numerator.root @ denominator.inverse_root, compute_uv=False) ** 2
            matrix[i, j] = np.sum(squares - 1 - np.log(squares)) if i != j else 0.0
    return matrix


def burg_divergence(grams: Sequence[GramLike]) -> float:
    """Average Burg divergence over all pairs, equal to `D − d` because the log determinants cancel (Section 2).

    Parameters
    ----------
    grams : sequence of arrays of shape (d, d), or of PartitionMoments
        Gram matrices of the partitions, all invertible.

    Returns
    -------
    float
        `BD`, zero if and only if all Gram matrices are equal.
    """
    return float(burg_divergence_matrix(grams).mean())


def leverage_scores(X: ArrayLike) -> FloatArray:
    """Leverage `x_r (XᵀX)⁺ x_rᵀ` of each row among its own partition's rows (Section 2).

    Parameters
    ----------
    X : array of shape (p, d)
        Rows of one partition; any rank.

    Returns
    -------
    array of shape (p,)
        Between 0 and 1, summing to the rank.
    """
    rows = np.asarray(X, dtype=np.float64)
    moments = PartitionMoments.from_rows(rows, np.zeros(len(rows)))
    return np.asarray(np.sum((rows @ moments.inverse_root) ** 2, axis=1))


def relative_leverage_scores(X: ArrayLike, gram: GramLike) -> FloatArray:
    """Relative leverage `x_r G_j⁻¹ x_rᵀ` of each row with respect to another partition (Section 2).

    Parameters
    ----------
    X : array of shape (p, d)
        Rows of partition i.
    gram : array of shape (d, d), or PartitionMoments
        Gram matrix of partition j, invertible.

    Returns
    -------
    array of shape (p,)
        They sum to `D_ij`.
    """
    (moments,) = gram_moments([gram])
    return np.asarray(np.sum((np.asarray(X, dtype=np.float64) @ moments.inverse_root) ** 2, axis=1))
