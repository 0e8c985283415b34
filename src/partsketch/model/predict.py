"""Predictions of a model for files, written block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.files import atomic_path
from partsketch.model.model import Model
from partsketch.model.prediction_intervals import blocks_with_intervals
from partsketch.sources.base import Source
from partsketch.sources.files.paths import local_files

#: Columns of a target that has an interval.
_WITH_INTERVAL = ("prediction", "lower", "upper", "standard_error")


def write_predictions(
    model: Model,
    data: Any,
    output: Path,
    missing: Literal["error", "drop"] = "error",
    interval: str | None = None,
    level: float = 0.95,
) -> int:
    """Write a file of predictions, whole or not at all, and return their number.

    Parameters
    ----------
    model
        The fitted model.
    data
        Anything that `Model.predict` takes.
    output
        File to write; its ending says the format: .parquet, .csv or .feather.
    missing
        "error" refuses missing values; "drop" leaves their rows out and adds a column "row" that says which are there.
    interval, level
        As in `Model.predict`: adds the columns "lower" and "upper", and "standard_error" of the mean of such rows.
    """
    import pyarrow as pa

    names = ["prediction"] if len(model.target_names) == 1 else [f"prediction_{name}" for name in model.target_names]
    if interval is not None:
        names = [name.replace("prediction", end, 1) for name in names for end in _WITH_INTERVAL]
    fields = [pa.field(name, pa.float64()) for name in names]
    if missing == "drop":
        fields.insert(0, pa.field("row", pa.int64()))
    schema = pa.schema(fields)
    open_writer = _writer_for(output)
    source = model.open_for_prediction(data, missing)
    rows = 0
    with atomic_path(output, local_files(data)) as temporary, open_writer(temporary, schema) as writer:
        for row_numbers, values in _blocks(model, source, interval, level):
            columns: list[NDArray[Any]] = [values[:, target] for target in range(values.shape[1])]
            if missing == "drop":
                columns.insert(0, row_numbers)
            writer.write_batch(pa.record_batch(columns, schema=schema))
            rows += len(values)
    return rows


def _blocks(
    model: Model, source: Source, interval: str | None, level: float
) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
    """Yield row numbers and what is written of them, rows × columns."""
    if interval is None:
        yield from model.predict_blocks(source)
        return
    for row_numbers, values, errors in blocks_with_intervals(model, source, interval, level):
        found = np.concatenate([values, errors[:, :, None]], axis=2)
        yield row_numbers, found.reshape(len(found), found.shape[1] * found.shape[2])


def _writer_for(output: Path) -> Any:
    """Return what opens a writer of record batches for this file's ending."""

    def parquet(path: Path, schema: Any) -> AbstractContextManager[Any]:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema)  # type: ignore[no-any-return]

    def csv(path: Path, schema: Any) -> AbstractContextManager[Any]:
        import pyarrow.csv

        return pyarrow.csv.CSVWriter(path, schema)  # type: ignore[no-any-return]

    def feather(path: Path, schema: Any) -> AbstractContextManager[Any]:
        import pyarrow.ipc

        return pyarrow.ipc.new_file(str(path), schema)  # type: ignore[no-any-return]

    writers = {".parquet": parquet, ".csv": csv, ".feather": feather}
    if output.suffix.lower() not in writers:
        raise InputError(f"Cannot write {output}: its ending says no known format; use .parquet, .csv or .feather.")
    return writers[output.suffix.lower()]
