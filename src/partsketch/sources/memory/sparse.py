"""Rows held as a SciPy sparse array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.base import Capabilities, FilePart, FloatArray, IntArray
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding
from partsketch.sources.row_numbers import consecutive
from partsketch.sources.storage import check_numeric, clip


@dataclass(frozen=True)
class CompressedRows:
    """Views of the entries of some rows of a CSR array.

    SciPy's own class would copy them: it does so whenever a view is less than half of what it looks at.
    """

    data: NDArray[np.generic]
    indices: NDArray[np.integer[Any]]
    indptr: NDArray[np.integer[Any]]
    width: int

    def take(self, positions: IntArray) -> CompressedRows:
        """Return copies of the rows at these positions."""
        first = self.indptr[positions]
        counts = self.indptr[positions + 1] - first
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(self.indptr.dtype)
        entries = np.repeat(first - indptr[:-1], counts) + np.arange(indptr[-1])
        return CompressedRows(self.data[entries], self.indices[entries], indptr, self.width)


@dataclass(frozen=True)
class SparseBlock:
    """Rows whose features are compressed, without duplicate entries, and whose targets are dense."""

    row_numbers: IntArray
    sparse_features: CompressedRows
    targets: NDArray[np.generic]
    weights: FloatArray | None = None
    labels: IntArray | None = None
    dropped: int = 0

    def __len__(self) -> int:
        return int(self.row_numbers.shape[0])

    def copy_into(self, out: FloatArray, begin: int, end: int) -> None:
        """Write rows begin to end densely, one row of `out` per column."""
        matrix = self.sparse_features
        width = matrix.width
        pointers = matrix.indptr[begin : end + 1]
        entries = slice(pointers[0], pointers[-1])
        rows = np.repeat(np.arange(end - begin), np.diff(pointers))
        out[:width] = 0.0
        out[matrix.indices[entries], rows] = matrix.data[entries]
        out[width:] = self.targets[begin:end].T

    def take(self, positions: IntArray) -> SparseBlock:
        """Return the block of the rows at these positions."""
        return SparseBlock(
            row_numbers=self.row_numbers[positions],
            sparse_features=self.sparse_features.take(positions),
            targets=self.targets[positions],
            weights=None if self.weights is None else self.weights[positions],
            labels=None if self.labels is None else self.labels[positions],
            dropped=self.dropped,
        )


@dataclass(frozen=True)
class SparseSource(Capabilities):
    """Rows of a CSR array.

    Attributes
    ----------
    incomplete
        For each row whether it is left out for its missing values, or None when no row is.
    """

    features: Any
    targets: NDArray[np.generic]
    weights: FloatArray | None
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    labels: IntArray | None = None
    partition_values: tuple[str, ...] = ()
    cluster_count: int = 0
    incomplete: NDArray[np.bool_] | None = None
    replayable: bool = True
    random_access: bool = True
    boundaries: tuple[int, ...] = ()
    files: tuple[FilePart, ...] = ()
    encoding: Encoding = NOTHING_ENCODED

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return int(self.features.shape[0])

    @property
    def features_in_memory(self) -> Any:
        """The features."""
        return self.features

    @property
    def stored_entries(self) -> int:
        """Number of stored entries."""
        return int(self.features.nnz)

    @property
    def has_weights(self) -> bool:
        """Whether blocks carry weights."""
        return self.weights is not None

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return f"sparse array of {self.row_count} rows and {self.features.shape[1]} columns"

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[SparseBlock]:
        """Yield rows start to stop; the values are views."""
        first, last = clip(start, stop, self.row_count)
        dropped = 0
        for begin in range(first, last, block_rows):
            block = self._block(begin, min(begin + block_rows, last), dropped)
            if len(block) or (block.dropped and begin + block_rows >= last):
                yield block
                dropped = 0
            else:
                dropped = block.dropped

    def sliced(self, start: int, stop: int | None) -> SparseSource:
        """Return the source of rows start to stop, numbered from zero."""
        rows = slice(start, stop)
        return replace(
            self,
            features=self.features[rows],
            targets=self.targets[rows],
            weights=None if self.weights is None else self.weights[rows],
            labels=None if self.labels is None else self.labels[rows],
            incomplete=None if self.incomplete is None else self.incomplete[rows],
        )

    def counted(self) -> SparseSource:
        """Return this source: its rows are counted."""
        return self

    def _block(self, begin: int, end: int, dropped: int) -> SparseBlock:
        matrix = self.features
        entries = slice(matrix.indptr[begin], matrix.indptr[end])
        pointers = matrix.indptr[begin : end + 1] - matrix.indptr[begin]
        rows = CompressedRows(matrix.data[entries], matrix.indices[entries], pointers, matrix.shape[1])
        block = SparseBlock(
            row_numbers=consecutive(begin, end),
            sparse_features=rows,
            targets=self.targets[begin:end],
            weights=None if self.weights is None else self.weights[begin:end],
            labels=None if self.labels is None else self.labels[begin:end],
            dropped=dropped,
        )
        if self.incomplete is None or not self.incomplete[begin:end].any():
            return block
        kept = np.flatnonzero(~self.incomplete[begin:end])
        left_out = SparseBlock(**{**vars(block), "dropped": dropped + (end - begin) - kept.size})
        return left_out.take(kept)


def is_sparse_array(data: Any) -> bool:
    """Tell whether data is a SciPy sparse matrix or array, without importing SciPy, which takes its time."""
    return any(base.__module__.startswith("scipy.sparse") for base in type(data).__mro__)


def row_compressed(matrix: Any) -> Any:
    """Return a sparse matrix or array as a CSR array without duplicate entries; the caller's is left as it is."""
    from scipy import sparse

    check_numeric(matrix.dtype, "The sparse array")
    rows = sparse.csr_array(matrix)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
