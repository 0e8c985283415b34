"""A solution of small least squares, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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


#: Rounding of coefficients in doubles leaves about 1e-16 of the gradient, times the number of columns.
LARGEST_GRADIENT = 1e-11


def gradient_left(root: FloatArray, missed: FloatArray, coefficients: FloatArray, target_norms: FloatArray) -> float:
    """Return what is left of Fᵀ(t − F a), in units of the norms of F and of what is added up to t − F a."""
    sizes = np.linalg.norm(root, axis=0)
    norms = sizes[:, None] * (target_norms + sizes @ np.abs(coefficients))
    with np.errstate(all="ignore"):
        parts = np.abs(root.T @ missed) / np.where(norms > 0, norms, 1.0)
    return float(parts.max(initial=0.0))


def condition_of(root: FloatArray, free: int) -> float:
    """Return the condition of a triangular factor after its free columns, scaled to norm one."""
    inner = root[free:, free:]
    if not inner.size:
        return 1.0
    with np.errstate(all="ignore"):
        values = np.linalg.svd(inner / np.linalg.norm(inner, axis=0), compute_uv=False)
        return float(values[0] / values[-1])
