"""Sketching matrices themselves, and sketches of rows in memory: for checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.sketches.accumulator import Columns, DenseRows, FloatArray, IntArray, SparseRows, Stream
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.kernels.scatter import draw_targets
from partsketch.sketches.sparse_sign import SparseSignSketch, random_numbers
from partsketch.sketches.srht import srht_sampled_rows, srht_signs


def sparse_sign(
    matrix: ArrayLike | Any, size: int, seed: int, stream: int = 0, sparsity: int | None = None, first_row: int = 0
) -> FloatArray:
    """Return `S A` for rows in memory, dense or sparse (SciPy CSR); rows are numbered from `first_row`.

    Parameters
    ----------
    matrix : array of shape (rows, columns), or a SciPy CSR array of that shape
        A.
    size : int
        Rows m of the sketch.
    seed, stream : int
        Which S.
    sparsity : int or None
        Non-zeros per row of A; None takes 8, or m if that is less.
    first_row : int
        Number of the first row: sketches of parts sum to the sketch of the whole.

    Returns
    -------
    array of shape (m, columns)
        The sketch.
    """
    specification = SketchSpecification("sparse_sign", size, seed, sparsity)
    is_csr = getattr(matrix, "format", None) == "csr"
    rows: Any = matrix if is_csr else np.ascontiguousarray(matrix, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"matrix has shape {rows.shape}: pass a table of rows and columns.")
    accumulator = SparseSignSketch().accumulator(specification, Stream(stream), Columns(rows.shape[1], 0, False))
    numbers = np.arange(first_row, first_row + rows.shape[0], dtype=np.int64)
    nothing, no_weights = np.empty((rows.shape[0], 0)), np.empty(0)
    if is_csr:
        entries = (np.asarray(rows.data, dtype=np.float64), rows.indices, rows.indptr)
        accumulator.add_rows(SparseRows(numbers, entries, nothing, no_weights))
    else:
        accumulator.add_rows(DenseRows(numbers, rows, nothing, no_weights))
    return accumulator.finish()


def sign_matrix(specification: SketchSpecification, sparsity: int, stream: int, row_numbers: IntArray) -> FloatArray:
    """Return S itself, m × rows: for checks."""
    assert specification.size is not None
    assert specification.seed is not None
    targets = np.empty((sparsity, row_numbers.size), dtype=np.int64)
    signs = np.empty((sparsity, row_numbers.size))
    draw_targets(*random_numbers(specification, stream), row_numbers, specification.size, targets, signs)
    out = np.zeros((specification.size, row_numbers.size))
    for places, sign in zip(targets, signs, strict=True):
        out[places, np.arange(row_numbers.size)] += sign
    return np.asarray(out / np.sqrt(sparsity))


def srht_matrix(row_count: int, size: int, seed: int, stream: int = 0) -> FloatArray:
    """Return S itself, m × rows, with `E[SᵀS] = I`: for checks."""
    kept = srht_sampled_rows(row_count, size, seed, stream)
    odd = np.bitwise_count(kept[:, None] & np.arange(row_count, dtype=np.int64)[None, :]) & 1
    return np.asarray((1.0 - 2.0 * odd) * srht_signs(row_count, seed, stream) / np.sqrt(size), dtype=np.float64)
