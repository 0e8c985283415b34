"""Sparse arrays opened by column: targets, weights and partition taken out of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sources.base import IntArray
from partsketch.sources.faults import (
    Fault,
    Missing,
    complete_rows,
    infinity_fault,
    missing_fault,
    number_faults,
    weight_faults,
)
from partsketch.sources.levels import PartitionColumn, distinct_keys, sorted_keys
from partsketch.sources.memory.sparse import SparseSource, row_compressed
from partsketch.sources.roles import select
from partsketch.sources.storage import RawBlock


def sparse_column_source(
    data: Any,
    target: str | Sequence[str] | None,
    features: Sequence[str] | None,
    weights: str | None,
    partition_column: str | None,
    cluster_column: str | None = None,
    *,
    missing: Missing,
) -> SparseSource:
    """Make a source of the columns of a sparse array, checked for missing and infinite values."""
    matrix = row_compressed(data)
    names = [f"x{i}" for i in range(matrix.shape[1])]
    selection = select(names, target, features, weights, partition_column, cluster_column)
    rows = matrix.shape[0]
    if rows == 0:
        raise InputError("The sparse array has no rows.")
    chosen = matrix[:, [_position(name) for name in selection.features]]
    columns = {name: _dense(matrix, name) for name in selection.used if name not in selection.features}
    faults: list[Fault] = _entry_faults(chosen, selection.features)
    with np.errstate(over="ignore", invalid="ignore"):
        for name, values in columns.items():
            faults.extend(number_faults(name, values, None))
    if selection.weights is not None:
        faults.extend(weight_faults(selection.weights, columns[selection.weights]))
    kept = complete_rows(RawBlock(0, rows, ()), faults, missing)
    incomplete = None if kept is None else ~kept
    labels: IntArray | None = None
    found: list[PartitionColumn] = []
    for name in selection.labels:
        column = _dense(matrix, name)
        keys = sorted_keys(distinct_keys(column, kept))
        if kept is not None:
            # Rows that are left out need a label too, but not one of their own.
            column = np.where(kept, column, keys[0])
        found.append(PartitionColumn(name, keys))
        own, _ = found[-1].labels(column)
        labels = own if labels is None else labels + len(found[0].values) * own
    return SparseSource(
        features=chosen,
        targets=np.column_stack([columns[name] for name in selection.targets] or [np.empty((rows, 0))]),
        weights=None if selection.weights is None else np.asarray(columns[selection.weights], dtype=np.float64),
        feature_names=selection.features,
        target_names=selection.targets,
        labels=labels,
        partition_values=found[0].texts if found else (),
        cluster_count=len(found[1].values) if len(found) > 1 else 0,
        incomplete=incomplete,
    )


def _position(name: str) -> int:
    return int(name.removeprefix("x"))


def _dense(matrix: Any, name: str) -> Any:
    return matrix[:, [_position(name)]].toarray().ravel()


def _entry_faults(matrix: Any, names: Sequence[str]) -> list[Fault]:
    """Find what is not finite among the stored entries; their number, not that of the cells, is the cost."""
    with np.errstate(over="ignore", invalid="ignore"):
        if matrix.dtype.kind != "f" or np.isfinite(matrix.data.sum()):
            return []
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    row_of = np.searchsorted(matrix.indptr, bad, side="right") - 1
    faults = []
    for column in np.unique(matrix.indices[bad]).tolist():
        here = matrix.indices[bad] == column
        for is_missing in (True, False):
            where = np.zeros(matrix.shape[0], dtype=bool)
            where[row_of[here & (np.isnan(matrix.data[bad]) == is_missing)]] = True
            if where.any():
                faults.append((missing_fault if is_missing else infinity_fault)(names[column], where))
    return faults
