"""Orthogonal sketch: S = √(p/m) H, the m rows of H orthonormal and uniformly distributed; at m = p nothing is lost.

No row of H is ever made. With A = QR, p rows and q columns, `H A = (HQ) R`, and HQ is an m×q block of a uniformly
distributed rotation of p dimensions. So is the upper block of `N T⁻¹`, where N is a p×q matrix of normal numbers and T
its triangular factor: multiplying N by a rotation changes neither its law nor T, so `N T⁻¹` has orthonormal columns
in uniform directions. Of N the sketch needs the first m rows, N₁, and of the others only `N₂ᵀN₂`, since
`TᵀT = N₁ᵀN₁ + N₂ᵀN₂`. That is Wishart's matrix, and is drawn as a triangle of q×q numbers (Bartlett). Hence

    H A  =  N₁ T⁻¹ R      in law, for any A,

and a sketch costs one exact pass over the rows, mq normal numbers and one small decomposition, whatever p is. Drawing a
Gaussian S and whitening it by `(S Sᵀ)^(−½)` has the same law at m² multiplications a row.
"""

from __future__ import annotations

import math
import os

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import ORTHOGONAL
from partsketch.common.special import gammaincinv
from partsketch.sketches.accumulator import FloatArray
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.gram import power_of_two
from partsketch.sketches.random import COLUMNS_PER_COUNTER, derive_key, fill_normals, random_words
from partsketch.sketches.system_random import fill_system_normals
from partsketch.sketches.triangular import TriangularSketch

#: Numbers of the rows whose normal numbers are those of N₂, and of the words of its diagonal: far from those of N₁.
_REST = 2**40
_DIAGONAL = 2**41


class _Numbers:
    """Random numbers of one sketch: a function of seed and stream, or the operating system's when it is private."""

    def __init__(self, seed: int | None, stream: int) -> None:
        self._key = None if seed is None else derive_key(seed, "orthogonal")
        self._stream = stream

    def normals(self, first: int, rows: int, columns: int) -> FloatArray:
        """Return rows × columns normal numbers, those of rows numbered from `first` on."""
        out = np.empty((-(-columns // COLUMNS_PER_COUNTER) * COLUMNS_PER_COUNTER, rows))
        if self._key is None:
            fill_system_normals(1.0, out)
        else:
            fill_normals(self._key, self._stream, np.arange(first, first + rows, dtype=np.int64), 1.0, out)
        return np.ascontiguousarray(out[:columns].T)

    def uniforms(self, first: int, count: int) -> FloatArray:
        """Return numbers between 0 and 1, neither of which is one of them."""
        if self._key is None:
            words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        else:
            words = random_words(self._key, self._stream, np.arange(first, first + count, dtype=np.int64))
        return ((words >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52


def _rest(numbers: _Numbers, rows: int, columns: int) -> FloatArray:
    """Return a matrix with the Gram matrix of so many rows of normal numbers, in law: no more rows than columns."""
    if rows <= columns:
        return numbers.normals(_REST, rows, columns)
    triangle = np.triu(numbers.normals(_REST, columns, columns), 1)
    freedom = rows - np.arange(columns, dtype=np.float64)
    squares = 2 * gammaincinv(freedom / 2, numbers.uniforms(_DIAGONAL, columns))
    return triangle + np.diag(np.sqrt(squares))


def orthogonal_rows(factor: FloatArray, size: int, row_count: int, seed: int | None, stream: int = 0) -> FloatArray:
    """Return the sketch of p rows from their factor R, `RᵀR = AᵀA`.

    Parameters
    ----------
    factor : array of shape (any, columns)
        R, or any matrix with the Gram matrix of the rows.
    size, row_count : int
        Rows m of the sketch and p of the data.
    seed, stream : int
        Which sketch; without a seed the numbers come from the operating system.

    Returns
    -------
    array of shape (size, columns)
        `√(p/m) H A`; all that the rows tell, above rows of zeros, when m ≥ p.
    """
    from scipy.linalg import solve_triangular

    rows = _compressed(factor, row_count)
    if size >= row_count:
        return np.vstack([rows, np.zeros((max(0, size - len(rows)), rows.shape[1]))])[:size]
    numbers = _Numbers(seed, stream)
    first = numbers.normals(0, size, len(rows))
    drawn = np.vstack([first, _rest(numbers, row_count - size, len(rows))])
    triangle: FloatArray = np.asarray(np.linalg.qr(drawn, mode="r"), dtype=np.float64)
    # The factor with a positive diagonal is the one whose orthonormal part is uniform.
    triangle = triangle * np.where(np.diagonal(triangle) < 0, -1.0, 1.0)[:, None]
    return np.asarray(math.sqrt(row_count / size) * (first @ solve_triangular(triangle, rows)))


def _compressed(factor: FloatArray, row_count: int) -> FloatArray:
    """Return the factor with no more rows than there are rows of data."""
    if len(factor) <= row_count:
        return factor
    # Columns of one size: those that are far smaller than others would be lost in the rounding of the largest.
    sizes = np.abs(factor).max(axis=0)
    units = power_of_two(sizes)
    _, values, right = np.linalg.svd(factor * units, full_matrices=False)
    # Of a column of zeros rounding is left, which would be taken for numbers in a unit of its own.
    return np.asarray(values[:row_count, None] * right[:row_count] * np.where(sizes > 0, 1 / units, 0.0))


class OrthogonalSketch(TriangularSketch):
    """m rows of a uniformly random rotation: never worse than the Gaussian sketch, and exact at m = p."""

    kind = "orthogonal"
    is_random = True
    law = ORTHOGONAL
    cost = SketchCost(lambda m, q, p: q * (q + 1), as_exact=True)
    shares_pass = True
    can_be_private = True
    is_summable = False
    sums_products = True

    def concluded_rows(
        self, specification: SketchSpecification, matrix: FloatArray, row_count: int, stream: int = 0
    ) -> tuple[FloatArray, FloatArray | None]:
        """Factor the sums of products and draw the sketch."""
        assert specification.size is not None
        if specification.private and specification.size >= row_count:
            raise InputError(
                f"sketch_size={specification.size} is too large for a private sketch of {row_count} rows: one with as "
                "many rows as the data tells all sums of products exactly; give a smaller one."
            )
        factor = super().concluded_rows(specification, matrix, row_count)[0]
        return orthogonal_rows(factor, specification.size, row_count, specification.seed, stream), None
