"""Preconditioners: triangular factors R for which A R⁻¹ has almost orthonormal columns."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Part of its norm below which what is left of a column after centring counts as rounding.
_NOTHING_LEFT = 1e-7

#: Enough for a condition number to a few percent, or a third where many singular values are close to the smallest.
_POWER_STEPS = 8


class Conditioner(Protocol):
    """Divides by R and by Rᵀ."""

    #: Estimate of the condition number of R after its columns were scaled to norm one; 1 when not known.
    condition: float

    #: Norms of the columns.
    norms: FloatArray

    def divide(self, vectors: FloatArray) -> FloatArray:
        """Return R⁻¹ V."""
        ...

    def divide_transposed(self, vectors: FloatArray) -> FloatArray:
        """Return R⁻ᵀ V."""
        ...


def _condition(factor: FloatArray) -> float:
    """Estimate the condition number of a triangular matrix by power steps, forwards and backwards."""
    from scipy.linalg import solve_triangular

    if not np.abs(np.diagonal(factor)).min() > 0:
        return float(np.inf)
    largest: FloatArray = np.asarray(np.random.default_rng(0).standard_normal(factor.shape[0]))
    smallest = largest
    growth = decay = 0.0
    with np.errstate(all="ignore"):
        for _ in range(_POWER_STEPS):
            largest = factor.T @ (factor @ (largest / np.linalg.norm(largest)))
            growth = float(np.linalg.norm(largest))
            unit = smallest / np.linalg.norm(smallest)
            halfway = solve_triangular(factor, unit, trans="T", check_finite=False)
            smallest = np.asarray(solve_triangular(factor, halfway, check_finite=False))
            decay = float(np.linalg.norm(smallest))
        condition = np.sqrt(growth * decay)
    return float(condition) if np.isfinite(condition) else float(np.inf)


class TriangularConditioner:
    """The factor of a sketch of the rows."""

    def __init__(self, factor: FloatArray) -> None:
        self.factor = factor
        with np.errstate(over="ignore"):
            self.norms: FloatArray = np.asarray(np.linalg.norm(factor, axis=0))
        usable = self.norms.min() > 0 and np.isfinite(self.norms).all()
        self.condition = _condition(factor / self.norms) if usable else float(np.inf)

    def divide(self, vectors: FloatArray) -> FloatArray:
        """Return R⁻¹ V."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.factor, vectors, check_finite=False))

    def divide_transposed(self, vectors: FloatArray) -> FloatArray:
        """Return R⁻ᵀ V."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.factor, vectors, trans="T", check_finite=False))


class DiagonalConditioner:
    """Columns scaled to norm one, after their means were taken out if there is an intercept.

    R = [√W, √W μᵀ; 0, D] for the total weight W, the means μ and the norms D of the centred columns. Columns without
    anything left are divided by one; `zero` says which columns have no entries at all.
    """

    condition = 1.0

    def __init__(self, scales: FloatArray, fit_intercept: bool) -> None:
        squares = scales[:, 1].copy()
        self.zero, self.norms = squares == 0, np.sqrt(squares)
        self._root, self._means = 1.0, np.zeros(0)
        if fit_intercept:
            weight = scales[0, 0]
            self._root, self._means = float(np.sqrt(weight)), scales[1:, 0] / weight
            centred = squares[1:] - weight * self._means**2
            squares[1:] = np.where(centred > _NOTHING_LEFT * squares[1:], centred, squares[1:])
        self._norms = np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]

    def divide(self, vectors: FloatArray) -> FloatArray:
        """Return R⁻¹ V."""
        out = vectors / self._norms
        if self._means.size:
            out[0] = vectors[0] / self._root - self._means @ out[1:]
        return np.asarray(out)

    def divide_transposed(self, vectors: FloatArray) -> FloatArray:
        """Return R⁻ᵀ V."""
        out = vectors.copy()
        if self._means.size:
            out[1:] -= self._means[:, None] * vectors[0]
        return np.asarray(out / self._norms)  # the first norm is √W
