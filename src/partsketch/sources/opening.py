"""One way in: whatever holds the data becomes a source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import ChunkedRows, CollectionOpener, open_chunked
from partsketch.sources.cluster.chunks import cluster_of
from partsketch.sources.cluster.remote import ChunkedColumns
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.encoding import Encoding
from partsketch.sources.faults import Missing
from partsketch.sources.files.paths import DataFiles, are_paths, find_files
from partsketch.sources.levels import PartitionColumn
from partsketch.sources.memory.sparse import is_sparse_array
from partsketch.sources.opener import Opener, openers
from partsketch.sources.roles import by_default, columns_to_encode, select
from partsketch.sources.scan import scan
from partsketch.sources.storage import Rows

ColumnName = str | int


def open_source(
    data: Any,
    *,
    target: ColumnName | Sequence[ColumnName] | None = None,
    features: Sequence[ColumnName] | None = None,
    weights: ColumnName | None = None,
    partition_column: ColumnName | tuple[ColumnName, ColumnName] | None = None,
    encode: bool = False,
    missing: Missing = "error",
    fit_intercept: bool = True,
    encoding: Encoding | None = None,
    engine: CollectionOpener | None = None,
    formula: str | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
) -> Source:
    """Open data as a source of numbered rows.

    Parameters
    ----------
    data
        A two-dimensional NumPy array (columns "x0", "x1", ...; a structured one has its own names), a SciPy CSR or CSC
        matrix or array, anything with the Arrow C stream interface (pandas, polars, pyarrow, DuckDB), a function that
        gives a new Arrow stream whenever it is called, or a path, directory, glob or URI, or a list of these, of
        `.npy`, Parquet, CSV or Feather files (`CsvFiles` says how CSV is written; names of folders such as year=2024
        are columns; "-" is the standard input); or a collection of a cluster (a Dask array or data frame, a Ray
        dataset, a Spark data frame), which stays there; or files and objects that an installed package opens.
    target
        Name of the target column, or names of several; an array's columns may be given by position. None for
        prediction.
    features
        Names of the feature columns; None means every column that has no other role.
    weights
        Name of the column of sample weights.
    partition_column
        Name of the column whose distinct values are the partitions; it costs a pass over the data. It is a feature only
        if it is listed in `features`. Of two, rows are labelled with the values of both.
    encode
        Whether text columns among the features are one-hot encoded, which costs a pass over the data. Without it they
        are refused.
    missing
        "error" refuses missing values, "drop" leaves out and counts the rows that have any.
    fit_intercept
        Whether the model will have an intercept: then the first level of every encoded column gets no indicator.
    encoding
        The encoding of an earlier source, to be repeated as it is; levels it does not know are refused.
    engine
        The engine that reaches the data when they are a collection of its cluster.
    formula
        In place of target and features: "fare ~ log(distance) + C(zone)". It may need a pass over the data.
    levels
        With a formula: levels, knots and other state that are known, by the expression they belong to.

    Returns
    -------
    Source
        Nothing but the schema has been read, except for the pass that `encode` and `partition_column` need.

    Raises
    ------
    InputError
        The data cannot be used as asked; the message names the culprit.
    """
    if missing not in ("error", "drop"):
        raise InputError(f"missing is {missing!r}: it must be 'error' or 'drop'.")
    labels = partition_column if isinstance(partition_column, tuple) else (partition_column, None)
    roles: list[Any] = [target, features, weights, *labels]
    is_sparse = is_sparse_array(data)
    width = data.shape[-1] if is_sparse or _is_matrix(data) else None
    roles = [_by_name(names, width) for names in roles]
    if is_sparse:
        from partsketch.sources.memory.sparse_columns import sparse_column_source

        if formula is not None:
            raise InputError("A formula needs columns with names, and a sparse matrix has none: name the target alone.")
        return sparse_column_source(data, *roles, missing=missing)
    rows = open_rows(data) if cluster_of(data) is None else open_chunked(data, engine)
    if formula is not None and formula in [column.name for column in rows.columns]:
        formula, roles[0] = None, formula
    if formula is not None or (encoding is not None and encoding.design is not None):
        return _open_formula(rows, formula, encoding, target, roles[2:], missing, levels)
    selection = select([column.name for column in rows.columns], *roles)
    if features is None:
        selection = by_default(rows.columns, selection)
    if rows.row_count == 0:
        raise InputError(f"The data ({rows.description}) has no rows.")
    encoding = _of_features(encoding, rows, selection.features)
    encoded = columns_to_encode(rows, selection, encode and encoding is None, encoding.columns if encoding else ())
    chosen = rows.choose(selection.used, [*encoded, *selection.only_labels])
    found = encoding if encoding is not None else Encoding((), drop_first=fit_intercept)
    columns: tuple[PartitionColumn, ...] = ()
    if (encoded and encoding is None) or selection.labels:
        found, columns = scan(rows, selection, encoded, found, encoding is not None, missing)
    make = ChunkedColumns if isinstance(rows, ChunkedRows) else ColumnSource
    source = make(chosen, selection, found, columns, missing)
    _check_feature_names(source.feature_names, source.target_names)
    return source


def _of_features(encoding: Encoding | None, rows: Rows, features: Sequence[str]) -> Encoding | None:
    """Return the encoding without columns that are no features: levels may be agreed on for more than one model."""
    if encoding is None:
        return None
    known = {column.name for column in rows.columns}
    for name in encoding.columns:
        if name not in known:
            raise InputError(f"There are levels of '{name}', which is no column of the data: correct the name.")
    return replace(encoding, levels=tuple(pair for pair in encoding.levels if pair[0] in features))


def _open_formula(
    rows: Rows,
    formula: str | None,
    encoding: Encoding | None,
    target: Any,
    roles: Sequence[str | None],
    missing: Missing,
    levels: Mapping[str, Sequence[Any]] | None,
) -> Source:
    """Return the source of a formula, or of the design of an earlier one."""
    from partsketch.sources.formula.opening import open_design, open_formula

    weights, *named = roles
    labels = (named[0], named[1])
    if formula is not None:
        source = open_formula(rows, formula, weights, labels, missing, levels)
    else:
        assert encoding is not None
        assert encoding.design is not None
        source = open_design(rows, encoding.design, weights, labels, missing, target is not None)
    both = set(source.feature_names) & set(source.target_names)
    if both:
        raise InputError(f"{min(both)!r} is the target and a feature of the formula: leave it out on the right.")
    _check_feature_names(source.feature_names or ("",), source.target_names)
    return source


def open_rows(data: Any) -> Rows:
    """Return the rows of data that are in memory or in files, all columns of them."""
    if isinstance(data, np.ndarray):
        from partsketch.sources.memory.arrays import numeric_array
        from partsketch.sources.memory.matrices import MemoryPart, matrix_rows

        return matrix_rows([MemoryPart(data if data.dtype.names else numeric_array(data, "The array"))])
    if isinstance(data, DataFiles):
        return _open_files(data)
    if are_paths(data):
        return _open_files(find_files(data))
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        from partsketch.sources.memory.tables import table_rows

        return table_rows(data)
    for opener in openers():
        if opener.recognises(data):
            return object_rows(opener, data)
    from partsketch.sources.memory.tables import other_rows

    rows = other_rows(data)
    if rows is not None:
        return rows
    raise InputError(
        f"Data of type {type(data).__name__} cannot be opened: pass an array, a data frame, an Arrow table, a dict of "
        "arrays or paths."
    )


def _is_matrix(data: Any) -> bool:
    """Tell whether data is a two-dimensional array, in memory or on a cluster, whose columns have no names."""
    arrays = isinstance(data, np.ndarray) or (cluster_of(data) is not None and hasattr(data, "dtype"))
    return arrays and data.ndim == 2


def object_rows(opener: Opener, data: Any) -> Rows:
    """Return the rows of an object that the opener of another package makes of it."""
    import pyarrow as pa

    opened = opener.open_object(data)
    if not isinstance(opened, pa.RecordBatchReader):
        return open_rows(opened)
    from partsketch.sources.memory.streams import Reopened, StreamRows

    again = partial(opener.open_object, data)
    return StreamRows(Reopened(again, f"stream of {opener.name} data"), opened.schema)


def _open_files(data_files: DataFiles) -> Rows:
    """Return the rows of files, with the columns that stand in the names of their folders."""
    rows = _open_format(data_files)
    if not any(data_files.folders):
        return rows
    from partsketch.sources.files.folders import FolderRows, folder_columns

    return FolderRows(rows, folder_columns(data_files), tuple(column.name for column in rows.columns))


def _open_format(data_files: DataFiles) -> Rows:
    if data_files.format == "Parquet":
        from partsketch.sources.files.parquet import parquet_rows

        return parquet_rows(data_files)
    if data_files.format == "CSV":
        from partsketch.sources.files.csv import csv_rows

        return csv_rows(data_files)
    if data_files.format == "Feather":
        from partsketch.sources.files.feather import feather_rows

        return feather_rows(data_files)
    if data_files.format != "NumPy":
        from partsketch.sources.files.file_rows import opened_file_rows

        return opened_file_rows(data_files)
    from partsketch.sources.memory.matrices import NpyPart, matrix_rows

    if not data_files.is_local:
        raise InputError(f"{data_files.names[0]} is remote: .npy files are mapped into memory and must be local.")
    return matrix_rows([NpyPart(path, name) for path, name in zip(data_files.paths, data_files.names, strict=True)])


def _by_name(names: Any, width: int | None) -> Any:
    """Replace whole numbers by names: positions in an array of this width, else what a data frame calls its columns."""
    if names is None or isinstance(names, str):
        return names
    if isinstance(names, int | np.integer):
        return str(names) if width is None else f"x{names + width if names < 0 else names}"
    if not isinstance(names, Iterable) or (isinstance(names, np.ndarray) and names.dtype.kind == "f"):
        raise InputError(
            "target, features, weights and partition_column are names or positions of columns, not values: put the "
            "values into the data as a column, or use SketchedRegression().fit(X, y)."
        )
    return [_by_name(name, width) for name in names]


def _check_feature_names(features: tuple[str, ...], targets: tuple[str, ...]) -> None:
    # Counted once: text may have become ten thousand columns.
    repeated = sorted(name for name, times in Counter(features).items() if times > 1 or name in targets)
    if repeated:
        raise InputError(f"Encoding makes more than one column named '{repeated[0]}': rename a column.")
    if not features:
        raise InputError("No feature is left after encoding: every text column has a single value.")
