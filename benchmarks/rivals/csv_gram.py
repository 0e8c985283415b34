"""CSV files parsed by packages that use all cores, and the normal equations of what they hold in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray
from benchmarks.rivals.gram_baseline import fit_arrays


def fit_polars(path: Path) -> FloatArray:
    """Read with polars; features and target become NumPy arrays."""
    import polars as pl

    table = pl.read_csv(path)
    return fit_arrays(Arrays(table.drop(TARGET).to_numpy(), table[TARGET].to_numpy()))


def fit_duckdb(path: Path) -> FloatArray:
    """Read with DuckDB; each column becomes a NumPy array."""
    import duckdb

    columns = duckdb.connect().read_csv(str(path)).fetchnumpy()
    target = np.asarray(columns.pop(TARGET))
    return fit_arrays(Arrays(np.column_stack([np.asarray(column) for column in columns.values()]), target))
