"""Rows that are already in memory as an array of features and an array of targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.base import Capabilities, FilePart, FloatArray, Source
from partsketch.sources.dense_block import DenseBlock
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding
from partsketch.sources.memory.sparse import SparseSource, is_sparse_array, row_compressed
from partsketch.sources.row_numbers import consecutive
from partsketch.sources.storage import check_numeric, clip


@dataclass(frozen=True)
class ArraySource(Capabilities):
    """Rows of a dense array; blocks are views of it, and nothing is checked for being finite."""

    features: NDArray[np.generic]
    targets: NDArray[np.generic]
    weights: FloatArray | None
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    replayable: bool = True
    random_access: bool = True
    boundaries: tuple[int, ...] = ()
    files: tuple[FilePart, ...] = ()
    partition_values: tuple[str, ...] = ()
    encoding: Encoding = NOTHING_ENCODED

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return int(self.features.shape[0])

    @property
    def row_major(self) -> bool:
        """Whether the features of a row lie one after another in memory."""
        return bool(self.features.flags.c_contiguous)

    @property
    def features_in_memory(self) -> NDArray[np.generic]:
        """The features."""
        return self.features

    @property
    def has_rows_of_doubles(self) -> bool:
        """Whether they do, as float64."""
        return bool(self.row_major and self.features.dtype == np.float64 and self.features.flags.aligned)

    @property
    def has_weights(self) -> bool:
        """Whether blocks carry weights."""
        return self.weights is not None

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return f"array of {self.row_count} rows and {self.features.shape[1]} columns"

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
        """Yield rows start to stop as views."""
        first, last = clip(start, stop, self.row_count)
        for begin in range(first, last, block_rows):
            end = min(begin + block_rows, last)
            yield DenseBlock(
                row_numbers=consecutive(begin, end),
                features=self.features[begin:end],
                targets=self.targets[begin:end],
                weights=None if self.weights is None else self.weights[begin:end],
            )

    def sliced(self, start: int, stop: int | None) -> ArraySource:
        """Return the source of rows start to stop, numbered from zero."""
        rows = slice(start, stop)
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, features=self.features[rows], targets=self.targets[rows], weights=weights)

    def counted(self) -> ArraySource:
        """Return this source: its rows are counted."""
        return self


def array_source(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    first_row: int = 0,
) -> Source:
    """Make a source of features and targets that are in memory, without copying the features.

    Parameters
    ----------
    X
        Features, n×d: a NumPy array of any order and numeric type, or a SciPy CSR or CSC matrix or array.
    y
        Targets, n or n×t, or None when there are none.
    sample_weight
        Weights of the rows, n, or None.
    feature_names, target_names
        Names of the columns; "x0", "x1", ... and "y" (or "y0", "y1", ...) unless given.
    first_row
        Number of the first row, for messages.

    Returns
    -------
    Source
        Whether values are finite is not checked, which would cost a pass over memory; weights are checked.
    """
    is_sparse = is_sparse_array(X)
    features: Any = X if is_sparse else numeric_array(X, "X")
    if features.ndim != 2:
        raise InputError(f"X has {features.ndim} dimension(s): it must have two, rows and columns.")
    rows, width = features.shape
    targets = np.empty((rows, 0)) if y is None else numeric_array(y, "y")
    if targets.ndim == 1:
        targets = targets[:, np.newaxis]
    if targets.ndim != 2:
        raise InputError(f"y has {targets.ndim} dimensions: it must have one or two.")
    if targets.shape[0] != rows:
        raise InputError(f"X has {rows} rows but y has {targets.shape[0]}: they must have the same number of rows.")
    weights = None if sample_weight is None else checked_weights(sample_weight, rows, first_row)
    count = targets.shape[1]
    names = tuple(feature_names) if feature_names is not None else tuple(f"x{i}" for i in range(width))
    default_targets = ("y",) if count == 1 else tuple(f"y{i}" for i in range(count))
    target_labels = tuple(target_names) if target_names is not None else default_targets
    if len(names) != width or len(target_labels) != count:
        raise InputError(
            f"There are {width} features and {count} targets, but {len(names)} and {len(target_labels)} names for them."
        )
    if is_sparse:
        return SparseSource(row_compressed(X), targets, weights, names, target_labels)
    return ArraySource(features, targets, weights, names, target_labels)


def numeric_array(values: Any, name: str) -> NDArray[np.generic]:
    """Return values as a numeric array without copying, or say what is wrong with them."""
    refuse_masked(values, name)
    try:
        array: NDArray[np.generic] = np.asarray(values)
    except ValueError as error:
        raise InputError(f"{name} is ragged: its rows must all have the same number of values.") from error
    check_numeric(array.dtype, name)
    return array


def refuse_masked(values: Any, name: str) -> None:
    """Refuse a masked array: whatever makes an array of it takes masked values for numbers."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array: fill its missing values first (filled(numpy.nan)).")


def checked_weights(sample_weight: Any, rows: int, first_row: int = 0) -> FloatArray:
    """Return sample weights as float64, or name the first one that is negative or not finite."""
    weights = np.asarray(numeric_array(sample_weight, "sample_weight"), dtype=np.float64)
    if weights.shape != (rows,):
        raise InputError(f"sample_weight has the shape {weights.shape}: it must be ({rows},), one weight per row.")
    bad = np.flatnonzero(~(weights >= 0) | np.isinf(weights))
    if bad.size:
        raise InputError(
            f"sample_weight is {weights[bad[0]]} in row {first_row + bad[0]}: weights must be finite and not negative."
        )
    return weights
