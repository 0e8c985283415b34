"""Streaming costs memory for a block, not for the file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

COLUMNS = 20
READ = """
import re, sys
from pathlib import Path
import numpy as np
from partsketch.sources import open_source
out = np.empty((20, 8192))
total = 0
for block in open_source(sys.argv[1], target="x0").read(block_rows=8192):
    block.copy_into(out[:, : len(block)], 0, len(block))
    total += len(block)
assert total == int(sys.argv[2])
# The peak that getrusage knows includes the parent process before it started this one.
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    """A short and a long one, for all kinds of files."""
    generator = np.random.default_rng(0)
    longest = pa.table({f"x{i}": generator.standard_normal(600_000) for i in range(COLUMNS)})
    return [longest.slice(0, 100_000), longest]


def write_npy(data: pa.Table, path: str) -> None:
    np.save(path, np.column_stack([column.to_numpy() for column in data.columns]))


WRITERS: dict[str, Callable[[pa.Table, str], None]] = {
    # One row group: its size must not matter either.
    "parquet": lambda data, path: pq.write_table(data, path, row_group_size=len(data)),
    "feather": lambda data, path: pyarrow.feather.write_feather(data, path),
    "npy": write_npy,
    "csv": lambda data, path: pyarrow.csv.write_csv(data, path),
}


def peak_megabytes(path: Path, rows: int) -> float:
    run = [sys.executable, "-c", READ, str(path), str(rows)]
    return int(subprocess.run(run, check=True, capture_output=True, text=True).stdout) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("extension", WRITERS)
def test_peak_memory_does_not_grow_with_the_file(extension: str, tables: list[pa.Table], tmp_path: Path) -> None:
    peaks = []
    for rows in tables:
        path = tmp_path / f"{len(rows)}.{extension}"
        WRITERS[extension](rows, str(path))
        peaks.append(peak_megabytes(path, len(rows)))
    growth = (len(tables[1]) - len(tables[0])) * COLUMNS * 8 / 1e6
    # 40 of 80 megabytes: allocators keep some twenty more or less for themselves.
    assert peaks[1] - peaks[0] < growth / 2
