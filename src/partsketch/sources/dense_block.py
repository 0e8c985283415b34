"""Rows held as two-dimensional arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import copy_transposed
from partsketch.sources.base import FloatArray, IntArray


@dataclass(frozen=True)
class DenseBlock:
    """Rows held as two-dimensional arrays: features n×d and targets n×t, in any memory order and numeric type."""

    row_numbers: IntArray
    features: NDArray[np.generic]
    targets: NDArray[np.generic]
    weights: FloatArray | None = None
    labels: IntArray | None = None
    dropped: int = 0
    sparse_features: None = None

    def __len__(self) -> int:
        return int(self.row_numbers.shape[0])

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end, one row of `out` per column."""
        width = self.features.shape[1]
        copy_transposed(self.features[begin:end], out[:width])
        copy_transposed(self.targets[begin:end], out[width:])

    def take(self, positions: IntArray) -> DenseBlock:
        """Return the block of the rows at these positions."""
        return DenseBlock(
            row_numbers=self.row_numbers[positions],
            features=self.features[positions],
            targets=self.targets[positions],
            weights=None if self.weights is None else self.weights[positions],
            labels=None if self.labels is None else self.labels[positions],
            dropped=self.dropped,
        )
