"""Sketches with SciPy: mixing by a cosine transform, a prebuilt sparse matrix, and its own CountSketch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.problem import Arrays, FloatArray


@dataclass(frozen=True, eq=False)
class Prebuilt:
    """The rows, and a sketching matrix made before the clock starts."""

    X: FloatArray
    S: Any


def with_sparse_matrix(arrays: Arrays, size: int, sparsity: int = 8) -> Prebuilt:
    """Build S in CSC form: `sparsity` entries ±1/√s at distinct places of every column."""
    from scipy import sparse

    rows = len(arrays.X)
    rng = np.random.default_rng(0)
    sparsity = min(sparsity, size)
    places = np.argpartition(rng.random((rows, size), dtype=np.float32), sparsity - 1, axis=1)[:, :sparsity]
    values = rng.choice([-1.0, 1.0], size=places.shape) / np.sqrt(sparsity)
    starts = np.arange(0, rows * sparsity + 1, sparsity)
    return Prebuilt(arrays.X, sparse.csc_array((values.ravel(), places.ravel(), starts), shape=(size, rows)))


def sparse_product(data: Prebuilt) -> FloatArray:
    """S @ X with S at hand."""
    return np.asarray(data.S @ data.X)


def cosine_mixing(arrays: Arrays, size: int) -> FloatArray:
    """Random signs, scipy.fft.dct(workers=2) along the rows, m rows at random."""
    import scipy.fft

    rng = np.random.default_rng(0)
    rows = len(arrays.X)
    mixed = scipy.fft.dct(arrays.X * rng.choice([-1.0, 1.0], size=(rows, 1)), axis=0, norm="ortho", workers=2)
    return np.asarray(mixed[rng.choice(rows, size, replace=False)] * np.sqrt(rows / size))


def clarkson_woodruff(arrays: Arrays, size: int) -> FloatArray:
    """scipy.linalg.clarkson_woodruff_transform."""
    from scipy.linalg import clarkson_woodruff_transform

    return np.asarray(clarkson_woodruff_transform(arrays.X, size, rng=np.random.default_rng(0)))
