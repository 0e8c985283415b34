"""The same data in every kind of storage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

from partsketch.sources import Source, open_source

ROWS = 97
NAMES = ("x0", "x1", "x2", "x3")


def matrix() -> NDArray[np.float64]:
    """Rows with zeros, so that a sparse array has something to leave out; x3 is a small whole number."""
    generator = np.random.default_rng(11)
    values = generator.standard_normal((ROWS, 4)) * (generator.random((ROWS, 4)) < 0.7)
    values[:, 3] = generator.integers(0, 5, ROWS)
    return values


def table() -> Any:
    return pa.table(dict(zip(NAMES, matrix().T, strict=True)))


def _npy(folder: Path) -> str:
    np.save(folder / "a.npy", matrix())
    return str(folder / "a.npy")


def _npy_fortran(folder: Path) -> list[str]:
    np.save(folder / "f1.npy", np.asfortranarray(matrix()[:40]))
    np.save(folder / "f2.npy", np.asfortranarray(matrix()[40:]))
    return [str(folder / "f1.npy"), str(folder / "f2.npy")]


def _npy_structured(folder: Path) -> str:
    rows = np.zeros(ROWS, dtype=[(name, "f8") for name in NAMES])
    for name, column in zip(NAMES, matrix().T, strict=True):
        rows[name] = column
    np.save(folder / "s.npy", rows)
    return str(folder / "s.npy")


def _parquet(group_size: int) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        path = folder / f"groups-{group_size}.parquet"
        pq.write_table(table(), path, row_group_size=group_size)
        return str(path)

    return make


def _parquet_files(folder: Path) -> str:
    directory = folder / "several"
    (directory / "deeper").mkdir(parents=True, exist_ok=True)
    pieces = [(0, 13), (13, 0), (13, 50), (63, ROWS - 63)]
    for number, (start, length) in enumerate(pieces):
        place = directory / ("deeper" if number == 3 else "") / f"part-{number}.parquet"
        # Columns may come in another order in another file.
        order = NAMES if number % 2 == 0 else tuple(reversed(NAMES))
        pq.write_table(table().slice(start, length).select(list(order)), place, row_group_size=17)
    # Sorted by path, "deeper" would come first.
    (directory / "deeper").rename(directory / "z")
    return str(directory)


def _csv(folder: Path) -> str:
    pyarrow.csv.write_csv(table(), folder / "a.csv")
    return str(folder / "a.csv")


def _csv_files(folder: Path) -> str:
    for number, (start, length) in enumerate([(0, 40), (40, ROWS - 40)]):
        with pa.CompressedOutputStream(str(folder / f"many-{number}.csv.gz"), "gzip") as out:
            pyarrow.csv.write_csv(table().slice(start, length), out)
    return str(folder / "many-*.csv.gz")


def _tsv(folder: Path) -> Path:
    pyarrow.csv.write_csv(table(), folder / "a.tsv", pyarrow.csv.WriteOptions(delimiter="\t"))
    return folder / "a.tsv"


def _feather(folder: Path) -> str:
    pyarrow.feather.write_feather(table(), str(folder / "a.feather"), chunksize=10)
    return str(folder / "a.feather")


def _uri(folder: Path) -> str:
    _parquet(20)(folder)
    return (folder / "groups-2[0].par*").as_uri().replace("%5B0%5D", "[0]").replace("%2A", "*")


def _duckdb(folder: Path) -> Any:
    data = table()
    return duckdb.connect().from_arrow(data)


KINDS: dict[str, Callable[[Path], Any]] = {
    "array": lambda folder: matrix(),
    "Fortran array": lambda folder: np.asfortranarray(matrix()),
    "CSR": lambda folder: sparse.csr_array(matrix()),
    "CSC matrix": lambda folder: sparse.csc_matrix(matrix()),
    "pandas": lambda folder: pd.DataFrame(matrix(), columns=list(NAMES), index=np.arange(ROWS) * 3),
    "polars": lambda folder: pl.DataFrame(matrix(), schema=list(NAMES)),
    "table": lambda folder: table(),
    "chunked table": lambda folder: pa.concat_tables([table().slice(0, 30), table().slice(30, 0), table().slice(30)]),
    "record batch": lambda folder: table().to_batches()[0],
    "reader": lambda folder: table().to_reader(max_chunksize=25),
    "DuckDB": _duckdb,
    "npy": _npy,
    "npy files": _npy_fortran,
    "structured npy": _npy_structured,
    "parquet": _parquet(1000),
    "parquet groups": _parquet(10),
    "parquet files": _parquet_files,
    "csv": _csv,
    "csv files": _csv_files,
    "tsv": _tsv,
    "feather": _feather,
    "URI": _uri,
}


def delivered(source: Source, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> NDArray[np.float64]:
    """All that a range delivers: row numbers, features, targets, one column each."""
    width = len(source.feature_names) + len(source.target_names)
    parts = []
    for block in source.read(start, stop, block_rows):
        assert len(block) <= block_rows
        out = np.full((width + 1, len(block)), np.nan)
        out[0] = block.row_numbers
        block.copy_into(out[1:], 0, len(block))
        parts.append(out.T)
    return np.concatenate(parts) if parts else np.empty((0, width + 1))


def read_table(data: Any, **options: Any) -> NDArray[np.float64]:
    return delivered(open_source(data, **options))
