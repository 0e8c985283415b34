"""A solution of small least squares, and what is said of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

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
    avoidable
        Share of the residual sums that columns called dependent would still explain if they were kept, found with twice
        the digits; None at full rank.
    total_sums
        Sums of squares of the targets (around their means, with an intercept), where there are no summaries to tell.
    row_count
        Rows behind the solution, where there are no summaries to tell.
    column_norms
        Norms of the columns of F, to a few percent, where there are no summaries to tell.
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
    avoidable: FloatArray | None = None
    total_sums: FloatArray | None = None
    row_count: int | None = None
    column_norms: FloatArray | None = None


#: From this many columns on, all singular values take longer than the largest and the smallest do by themselves.
_MANY_COLUMNS = 384
#: Vectors that are multiplied together, most times that they are, and the relative gain at which to stop.
_BLOCK, _MOST_STEPS, _SETTLED = 8, 40, 1e-4
#: Rows of a triangle that are multiplied together: of each strip the zeros before its first column are left out.
_STRIP = 256

#: Numbers up to this, and products of as many as there are columns, are far from the largest single number, 3e38.
_LARGEST_SINGLE = 1e30

#: Rounding of coefficients in doubles leaves about 1e-16 of the gradient, times the number of columns.
LARGEST_GRADIENT = 1e-11


def gradient_left(root: FloatArray, missed: FloatArray, coefficients: FloatArray, target_norms: FloatArray) -> float:
    """Return what is left of Fᵀ(t − F a), in units of the norms of F and of what is added up to t − F a."""
    return float(gradients_left(root[None], missed[None], coefficients[None], target_norms[None])[0])


def gradients_left(
    roots: FloatArray, missed: FloatArray, coefficients: FloatArray, target_norms: FloatArray
) -> FloatArray:
    """Return the same for several systems."""
    sizes = np.linalg.norm(roots, axis=1)
    norms = sizes[:, :, None] * (target_norms[:, None, :] + sizes[:, None, :] @ np.abs(coefficients))
    with np.errstate(all="ignore"):
        parts = np.abs(roots.transpose(0, 2, 1) @ missed) / np.where(norms > 0, norms, 1.0)
    return np.asarray(parts.max(axis=(1, 2), initial=0.0))


def condition_of(root: FloatArray, free: int, inverse: FloatArray | None = None) -> float:
    """Return the condition of a triangular factor after its free columns, scaled to norm one.

    With the inverse of the whole factor at hand, that of many columns is found to four digits, in a tenth of the time.
    """
    inner = root[free:, free:]
    if inverse is None or len(inner) <= _MANY_COLUMNS:
        return float(conditions_of(root[None], free)[0])
    with np.errstate(all="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->j", inner, inner))
        # Neither waits for the other, and the product is the same.
        with ThreadPoolExecutor(1) as beside:
            smallest = beside.submit(_largest_value, inverse[free:, free:], norms[:, None])
            return _largest_value(inner, 1.0 / norms) * smallest.result()


def conditions_of(roots: FloatArray, free: int, inverses: FloatArray | None = None) -> FloatArray:
    """Return the conditions of several triangular factors after their free columns, as `condition_of` does."""
    inner = roots[:, free:, free:]
    if not inner.size:
        return np.ones(len(roots))
    if inverses is not None and inner.shape[1] > _MANY_COLUMNS:
        return np.array([condition_of(root, free, inverse) for root, inverse in zip(roots, inverses, strict=True)])
    with np.errstate(all="ignore"):
        values = np.linalg.svd(inner / np.linalg.norm(inner, axis=1)[:, None, :], compute_uv=False)
        return np.asarray(values[:, 0] / values[:, -1])


def _largest_value(triangle: FloatArray, scale: FloatArray) -> float:
    """Return the largest singular value of an upper triangle times a scale, to four digits, by a block Krylov method.

    The largest value on a subspace is never above that of the matrix; the subspace grows until that hardly helps.
    """
    rows = len(triangle)
    strips: list[NDArray[Any]] = [triangle[begin : begin + _STRIP, begin:] for begin in range(0, rows, _STRIP)]
    scales = [scale[begin : begin + _STRIP] if scale.ndim > 1 else scale[begin:] for begin in range(0, rows, _STRIP)]
    # Single numbers hold more than four digits, and their matrix half of the memory that every step goes through.
    kind: Any = np.float32
    single = [
        np.multiply(strip, factor, out=np.empty(strip.shape, kind), casting="same_kind")
        for strip, factor in zip(strips, scales, strict=True)
    ]
    if 0 < np.max([[strip.max(), -strip.min()] for strip in single]) < _LARGEST_SINGLE:
        strips = single
    else:
        strips, kind = [strip * factor for strip, factor in zip(strips, scales, strict=True)], np.float64
    basis, images = (np.empty((rows, _BLOCK * _MOST_STEPS), order="F") for _ in range(2))
    products = np.empty((_BLOCK * _MOST_STEPS,) * 2)
    fresh, found = np.random.default_rng(0).standard_normal((rows, _BLOCK)), 0.0
    for end in range(_BLOCK, _BLOCK * _MOST_STEPS + 1, _BLOCK):
        before, here = basis[:, : end - _BLOCK], slice(end - _BLOCK, end)
        for _ in range(2):  # twice is enough
            fresh = fresh - before @ (before.T @ fresh)
        basis[:, here] = np.linalg.qr(fresh)[0]
        images[:, here] = _times(strips, basis[:, here].astype(kind))
        products[:end, here] = images[:, :end].T @ images[:, here]
        products[here, :end] = products[:end, here].T
        known, found = found, float(np.sqrt(np.linalg.eigvalsh(products[:end, :end])[-1]))
        if not found > known * (1 + _SETTLED):
            break
        fresh = _transposed_times(strips, images[:, here].astype(kind)).astype(np.float64)
    return found


def _times(strips: list[NDArray[Any]], vectors: NDArray[Any]) -> NDArray[Any]:
    """Multiply an upper triangle, of which strips of rows begin at the diagonal, with vectors: zeros are left out."""
    return np.vstack([strip @ vectors[-strip.shape[1] :] for strip in strips])


def _transposed_times(strips: list[NDArray[Any]], vectors: NDArray[Any]) -> NDArray[Any]:
    """Multiply its transpose with vectors."""
    product, begin = np.zeros_like(vectors), 0
    for strip in strips:
        product[begin:] += strip.T @ vectors[begin : begin + len(strip)]
        begin += len(strip)
    return product
