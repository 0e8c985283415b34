"""The normal equations as anyone would write them in twenty lines of NumPy, plain and on two threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import Arrays, FloatArray


def fit_arrays(arrays: Arrays) -> FloatArray:
    """Add up AᵀA for A = [1 X] in blocks of rows and solve."""
    width = arrays.X.shape[1] + 1
    gram, moment = np.zeros((width, width)), np.zeros(width)
    for begin in range(0, len(arrays.X), 65536):
        X, y = arrays.X[begin : begin + 65536], arrays.y[begin : begin + 65536]
        gram[1:, 1:] += X.T @ X
        gram[0, 0] += len(X)
        gram[0, 1:] += X.sum(axis=0)
        moment[0] += y.sum()
        moment[1:] += X.T @ y
    gram[1:, 0] = gram[0, 1:]
    return np.linalg.solve(gram, moment)


def fit_parquet(path: Path) -> FloatArray:
    """Read batches, add up AᵀA for A = [1 X y], solve; pyarrow and BLAS use their own threads."""
    import pyarrow.parquet as pq

    gram: Any = 0.0
    for batch in pq.ParquetFile(path).iter_batches(batch_size=65536):
        A = np.array([np.ones(batch.num_rows), *(column.to_numpy() for column in batch.columns)])
        gram = gram + A @ A.T
    return np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])


def fit_parquet_two_threads(path: Path) -> FloatArray:
    """The same, written with care: two threads with row groups of their own, and nothing fetched ahead."""
    from concurrent.futures import ThreadPoolExecutor

    import pyarrow.parquet as pq
    from threadpoolctl import threadpool_limits

    def work(first: int) -> Any:
        file, gram = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18), np.zeros(())
        groups = range(first, file.num_row_groups, 2)
        for batch in file.iter_batches(batch_size=65536, row_groups=groups, use_threads=False):
            A = np.array([np.ones(batch.num_rows), *(column.to_numpy() for column in batch.columns)])
            gram = gram + A @ A.T
        return gram

    with threadpool_limits(limits=1), ThreadPoolExecutor(2) as pool:
        gram = sum(pool.map(work, range(2)))
    return np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
