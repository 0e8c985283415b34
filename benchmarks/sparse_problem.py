"""Sparse rows of the workloads: deterministic, kept in .benchmark-data, and their reference answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular

from benchmarks.problem import DATA, Arrays, FloatArray, Reference, load_reference, save_reference, solve_reference

_CHUNK = 50_000
_REFINEMENTS = 3


class SparseArrays(Arrays):
    """Features as a CSR array, and target."""

    def head(self, rows: int) -> SparseArrays:
        """Return the first rows, for warming up."""
        X: Any = self.X[:rows]
        return SparseArrays(X, np.array(self.y[:rows]))


def with_ones(arrays: Arrays) -> SparseArrays:
    """Put a column of ones first."""
    parts: Any = [np.ones((len(arrays.y), 1)), arrays.X]
    together: Any = sparse.csr_array(sparse.hstack(parts))
    return SparseArrays(together, arrays.y)


@dataclass(frozen=True)
class SparseProblem:
    """A regression on sparse columns: independent, or in pairs whose second is the first and a little more.

    Attributes
    ----------
    density
        Share of the entries of a column that are stored.
    difference
        Size of the little more; 0 means columns without pairs.
    """

    rows: int
    width: int
    density: float
    difference: float = 0.0

    @property
    def _stem(self) -> str:
        return f"sparse-{self.rows}x{self.width}-{self.density:g}-{self.difference:g}"

    def make(self) -> None:
        """Make the rows and the reference, once."""
        self.arrays()
        self.reference()

    def arrays(self) -> SparseArrays:
        """Load the rows into memory."""
        path = DATA / f"{self._stem}.npz"
        if not path.exists():
            DATA.mkdir(parents=True, exist_ok=True)
            X, y = self._drawn()
            unfinished = path.with_suffix(".unfinished.npz")
            np.savez(unfinished, data=X.data, indices=X.indices, indptr=X.indptr, y=y)
            unfinished.rename(path)
        with np.load(path) as stored:
            entries: Any = (stored["data"], stored["indices"], stored["indptr"])
            features: Any = sparse.csr_array(entries, shape=(self.rows, self.width))
            return SparseArrays(features, stored["y"])

    def _drawn(self) -> tuple[Any, FloatArray]:
        rng = np.random.default_rng([20240229, self.rows, self.width])
        columns = self.width // 2 if self.difference else self.width
        X = _entries(rng, self.rows, columns, self.density)
        if self.difference:
            more = _entries(rng, self.rows, columns, self.density)
            X = sparse.csr_array(sparse.hstack([X, X + self.difference * more]))
            X.sort_indices()
        signal = X @ rng.standard_normal(self.width)
        return X, signal + 1.0 + signal.std() * rng.standard_normal(self.rows)  # R² = 1/2

    def reference(self) -> Reference:
        """Return the exact answer, computed once and kept."""
        path = DATA / f"{self._stem}.reference.npz"
        if not path.exists():
            save_reference(path, self._solved())
        return load_reference(path)

    def _solved(self) -> Reference:
        arrays = self.arrays()
        if self.difference:
            return solve_reference(
                lambda: (
                    (arrays.X[begin : begin + _CHUNK].toarray(), arrays.y[begin : begin + _CHUNK])  # type: ignore[attr-defined]
                    for begin in range(0, self.rows, _CHUNK)
                )
            )
        return _by_gram_matrix(arrays)


def _entries(rng: np.random.Generator, rows: int, columns: int, density: float) -> Any:
    """Return normal entries at random places; a row has a binomial number of them."""
    counts = rng.binomial(columns, density, size=rows)
    row = np.repeat(np.arange(rows), counts)
    places = np.unique(row * columns + rng.integers(0, columns, size=row.size))  # one that came twice is kept once
    indptr = np.searchsorted(places, np.arange(rows + 1) * columns).astype(np.int32)
    indices = (places % columns).astype(np.int32)
    return sparse.csr_array((rng.standard_normal(places.size), indices, indptr), shape=(rows, columns))


def _by_gram_matrix(arrays: Arrays) -> Reference:
    """Solve well-conditioned rows by Cholesky, refined with residuals in extended precision."""
    A: Any = with_ones(arrays).X
    factor = cholesky((A.T @ A).toarray())
    exact = A.astype(np.longdouble)
    coefficients = np.zeros(A.shape[1], dtype=np.longdouble)
    step = residual = np.zeros(0)
    for _ in range(1 + _REFINEMENTS):
        residual = arrays.y - exact @ coefficients
        gradient = (exact.T @ residual).astype(np.float64)
        step = solve_triangular(factor, solve_triangular(factor, gradient, trans=1))
        coefficients = coefficients + step
    last_step = float(np.linalg.norm(step) / np.linalg.norm(coefficients.astype(np.float64)))
    return Reference(coefficients.astype(np.float64), factor, float(residual @ residual), last_step)
