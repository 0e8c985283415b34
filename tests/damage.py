"""Data files, and ways to damage them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

ROWS = 3000


def table(number: int, rows: int = ROWS) -> pa.Table:
    """Rows whose relation between columns is the same in all tables, with noise and weights."""
    rng = np.random.default_rng(number)
    a, b = rng.normal(size=rows), rng.uniform(size=rows)
    y = 1 + 2 * a - b + (1 + number) * rng.normal(size=rows)
    return pa.table({"a": a, "b": b, "y": y, "w": rng.uniform(0.5, 2, rows)})


def write(path: Path, rows: pa.Table) -> None:
    """Write a table in the format of the extension."""
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=500)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(rows, path, chunksize=500)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    else:
        np.save(path, np.column_stack([column.to_numpy() for column in rows.columns]))


def write_files(folder: Path, extension: str = "parquet", count: int = 4) -> list[Path]:
    """Write files part-0 to part-(count − 1)."""
    paths = [folder / f"part-{number}.{extension}" for number in range(count)]
    for number, path in enumerate(paths):
        write(path, table(number))
    return paths


def no_footer(path: Path) -> None:
    """As when the writer was stopped before the end."""
    path.write_bytes(path.read_bytes()[:-100])


def half(path: Path) -> None:
    """As when a copy was stopped."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def nothing(path: Path) -> None:
    """As when a disk was full."""
    path.write_bytes(b"")


def noise(path: Path) -> None:
    """As when a disk has failed."""
    path.write_bytes(np.random.default_rng(0).bytes(5000))


def gone(path: Path) -> None:
    """As when someone tidied up."""
    path.unlink()


def hole(path: Path) -> None:
    """As when a block in the middle was lost: beginning and end are whole, so the file opens."""
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 12000] = b"\x00" * 12000
    path.write_bytes(bytes(content))
