"""The trivial baseline: read every column with pyarrow and do nothing. Nothing that uses pyarrow can be faster."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.problem import FloatArray


def read_parquet(path: Path) -> FloatArray:
    """Read in batches with pyarrow's own threads; the answer is the number of rows."""
    import pyarrow.parquet as pq

    return np.array([sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches())], dtype=np.float64)


def read_parquet_two_threads(path: Path, pre_buffer: bool = True) -> FloatArray:
    """Read in batches, each of two threads its own row groups; `pre_buffer` (default as there) fetches whole ones."""
    import pyarrow.parquet as pq

    def work(first: int) -> int:
        file = pq.ParquetFile(path, pre_buffer=pre_buffer, buffer_size=0 if pre_buffer else 1 << 18)
        groups = range(first, file.num_row_groups, 2)
        return sum(batch.num_rows for batch in file.iter_batches(row_groups=groups, use_threads=False))

    with ThreadPoolExecutor(2) as pool:
        return np.array([sum(pool.map(work, range(2)))], dtype=np.float64)
