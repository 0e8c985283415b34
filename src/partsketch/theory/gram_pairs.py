"""Traces of products of pairs of Gram matrices, `tr(G_i G_j)`, for thousands of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Where a number on the diagonal is smaller than this, against the largest, dividing by it would lose digits.
_SMALLEST = 1e-3


class GramPairs:
    """The k × k matrix `T` of `tr(G_i G_j)`, which has rank r(r + 1)/2 at most: with many matrices it is never formed.

    Parameters
    ----------
    grams : array of shape (k, r, r)
        Symmetric matrices.
    """

    def __init__(self, grams: FloatArray) -> None:
        rows, columns = np.triu_indices(grams.shape[1])
        # A pair off the diagonal counts twice.
        self._flat: FloatArray = grams[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))

    def times(self, vector: FloatArray) -> FloatArray:
        """Return `T v`."""
        return np.asarray(self._flat @ (self._flat.T @ vector))

    @property
    def diagonal(self) -> FloatArray:
        """`tr(G_i²)`."""
        return np.asarray(np.sum(self._flat**2, axis=1))

    def solve(self, diagonal: FloatArray, right: FloatArray) -> FloatArray:
        """Return `(T + diag(D))⁻¹ b`; for more matrices than T has ranks by Woodbury's formula."""
        count, rank = self._flat.shape
        safe = np.abs(diagonal).min(initial=np.inf) > _SMALLEST * np.abs(diagonal).max(initial=0.0)
        if count <= rank or not safe:
            return np.asarray(np.linalg.solve(self._flat @ self._flat.T + np.diag(diagonal), right))
        divided = self._flat / diagonal[:, None]
        inner = np.eye(rank) + self._flat.T @ divided
        return np.asarray(right / diagonal - divided @ np.linalg.solve(inner, self._flat.T @ (right / diagonal)))
