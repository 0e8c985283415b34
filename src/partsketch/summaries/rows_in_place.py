"""Rows of a block where they lie in memory, for sketches that need no copy of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.sketches.accumulator import DenseRows, SparseRows
from partsketch.sources.base import Block, FloatArray
from partsketch.sources.dense_block import DenseBlock
from partsketch.sources.memory.sparse import SparseBlock


def rows_in_place(block: Block, begin: int, end: int, single: bool = False) -> DenseRows | SparseRows | None:
    """Return rows begin to end of a block as float64 rows in memory, or None when they are held in another way.

    With `single` dense features may be float32 as well.
    """
    roots = np.empty(0) if block.weights is None else np.sqrt(block.weights[begin:end])
    numbers = block.row_numbers[begin:end]
    if isinstance(block, DenseBlock):
        features = block.features[begin:end]
        is_single = single and features.dtype == np.float32 and features.flags.aligned
        if not (features.dtype == np.float64 or is_single) or not features.flags.c_contiguous:
            return None
        numeric: Any = features if is_single else _doubles(features)
        return DenseRows(numbers, numeric, _doubles(block.targets[begin:end]), roots)
    if not isinstance(block, SparseBlock):
        return None
    matrix = block.sparse_features
    starts = matrix.indptr[begin : end + 1]
    entries = (_doubles(matrix.data), matrix.indices, starts)
    return SparseRows(numbers, entries, _doubles(block.targets[begin:end]), roots)


def _doubles(values: NDArray[np.generic]) -> FloatArray:
    return np.ascontiguousarray(values, dtype=np.float64)


@compiled
def add_in_order(total, values):  # type: ignore[no-untyped-def]
    """Add values one by one, so that the sum does not depend on how they are cut into blocks."""
    for i in range(values.shape[0]):
        total += values[i]
    return total
