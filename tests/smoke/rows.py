"""The same few rows in every kind of storage that needs no optional package, and in those that are installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import sparse

ROWS = 3000
NAMES = ("x0", "x1", "x2", "x3")
TARGET = "x3"


def matrix(rows: int = ROWS) -> NDArray[np.float64]:
    """Three features, some zeros among them, and a target."""
    draw = np.random.default_rng(3)
    X = draw.normal(size=(rows, 3)) * (draw.random((rows, 3)) < 0.8)
    return np.column_stack([X, 1 + X @ [1.0, -2.0, 0.5] + draw.normal(size=rows)])


def table() -> Any:
    return pa.table(dict(zip(NAMES, matrix().T, strict=True)))


def exact_coefficients(values: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Intercept and coefficients of least squares, by NumPy."""
    rows = matrix() if values is None else values
    return np.asarray(np.linalg.lstsq(np.column_stack([np.ones(len(rows)), rows[:, :-1]]), rows[:, -1])[0], np.float64)


def _npy(folder: Path) -> Path:
    np.save(folder / "rows.npy", matrix())
    return folder / "rows.npy"


def _structured(folder: Path) -> Any:
    rows = np.zeros(ROWS, dtype=[(name, "f8") for name in NAMES])
    for name, column in zip(NAMES, matrix().T, strict=True):
        rows[name] = column
    return rows


def _parquet(folder: Path) -> Path:
    pq.write_table(table(), folder / "rows.parquet", row_group_size=700)
    return folder / "rows.parquet"


def _directory(folder: Path) -> str:
    (folder / "many").mkdir()
    for number in range(3):
        pq.write_table(table().slice(1000 * number, 1000), folder / "many" / f"{number}.parquet")
    return str(folder / "many")


def _csv(folder: Path) -> Path:
    pyarrow.csv.write_csv(table(), folder / "rows.csv")
    return folder / "rows.csv"


def _compressed_csv(folder: Path) -> str:
    for number in range(2):
        with pa.CompressedOutputStream(str(folder / f"{number}.csv.gz"), "gzip") as out:
            pyarrow.csv.write_csv(table().slice(1500 * number, 1500), out)
    return str(folder / "*.csv.gz")


def _feather(folder: Path) -> Path:
    pyarrow.feather.write_feather(table(), str(folder / "rows.feather"), chunksize=400)
    return folder / "rows.feather"


def _uri(folder: Path) -> str:
    return _parquet(folder).as_uri()


def _frame(package: str, make: Callable[[Any], Any]) -> Callable[[Path], Any]:
    return lambda folder: make(import_module(package))


KINDS: dict[str, Callable[[Path], Any]] = {
    "array": lambda folder: matrix(),
    "Fortran array": lambda folder: np.asfortranarray(matrix()),
    "structured array": _structured,
    "CSR array": lambda folder: sparse.csr_array(matrix()),
    "CSC matrix": lambda folder: sparse.csc_matrix(matrix()),
    "table": lambda folder: table(),
    "record batch": lambda folder: table().to_batches()[0],
    "reader": lambda folder: table().to_reader(max_chunksize=250),
    "npy": _npy,
    "Parquet": _parquet,
    "directory": _directory,
    "CSV": _csv,
    "compressed CSV": _compressed_csv,
    "Feather": _feather,
    "URI": _uri,
}
#: Whoever has these packages can pass their frames; partsketch does not need them.
FRAMES = {
    "pandas": _frame("pandas", lambda pandas: pandas.DataFrame(matrix(), columns=list(NAMES))),
    "polars": _frame("polars", lambda polars: polars.DataFrame(matrix(), schema=list(NAMES))),
    "duckdb": _frame("duckdb", lambda duckdb: duckdb.connect().from_arrow(table())),
}
KINDS |= {package: make for package, make in FRAMES.items() if find_spec(package) is not None}
