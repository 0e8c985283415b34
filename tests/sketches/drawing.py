"""Sketching rows in memory through the protocol, however they are held and cut."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from partsketch.sketches.accumulator import Columns, DenseRows, SparseRows, Stream
from partsketch.sketches.base import SketchSpecification, get_sketch

FloatArray = NDArray[np.float64]


def sketched(
    A: FloatArray,
    specification: SketchSpecification,
    held: str = "dense",
    cuts: tuple[int, ...] = (),
    weights: FloatArray | None = None,
    stream: int = 0,
    row_numbers: NDArray[np.int64] | None = None,
    row_count: int | None = None,
) -> FloatArray:
    """Sketch of [1 A], the last column of A being the target; `held` is "dense", "sparse" or "tile"."""
    sketch = get_sketch(specification.kind)
    numbers = np.arange(len(A), dtype=np.int64) if row_numbers is None else row_numbers
    count = len(A) if row_count is None else row_count
    columns = Columns(A.shape[1] - 1, 1, True)
    guide = None
    first = sketch.first_pass(specification, A.shape[1])
    roots = np.empty(0) if weights is None else np.sqrt(weights)
    if first is not None:
        looked = sketched(A, first, "dense", (), weights, stream, numbers)
        guide = sketch.guide(specification, looked[:, : A.shape[1]], len(A))
    accumulator = sketch.accumulator(specification, Stream(stream, 0, count, guide), columns)
    borders = [0, *cuts, len(A)]
    for begin, end in pairwise(borders):
        rows = slice(begin, end)
        if begin == end:
            continue
        if held == "tile" or not accumulator.takes_rows:
            tile = np.concatenate([np.ones((1, end - begin)), A[rows].T])
            assert accumulator.add(tile if weights is None else tile * roots[rows], numbers[rows])
        elif held == "sparse":
            csr = sparse.csr_array(A[rows, :-1])
            entries = (csr.data, csr.indices, csr.indptr)
            accumulator.add_rows(SparseRows(numbers[rows], entries, np.ascontiguousarray(A[rows, -1:]), roots[rows]))
        else:
            features, targets = np.ascontiguousarray(A[rows, :-1]), np.ascontiguousarray(A[rows, -1:])
            accumulator.add_rows(DenseRows(numbers[rows], features, targets, roots[rows]))
    return sketch.conclude(specification, accumulator.finish(), len(A))


def matrix_of(specification: SketchSpecification, rows: int, stream: int = 0) -> FloatArray:
    """S itself: the sketch of the identity, target and intercept left out."""
    A = np.concatenate([np.eye(rows), np.zeros((rows, 1))], axis=1)
    return sketched(A, specification, stream=stream)[:, 1:-1]
