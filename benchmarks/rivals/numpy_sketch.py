"""Gaussian sketches Z = S X in NumPy: S drawn at once, and S drawn in blocks on two threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.problem import Arrays, FloatArray


def sketch_at_once(arrays: Arrays, size: int) -> FloatArray:
    """The obvious line; S takes 8·m·n bytes."""
    rng = np.random.default_rng(0)
    return np.asarray(rng.standard_normal((size, len(arrays.X))) @ arrays.X / np.sqrt(size))


def sketch_blocked(arrays: Arrays, size: int, block: int) -> FloatArray:
    """Two threads, each with NumPy's fastest generator and half the rows; S never exists as a whole."""
    from threadpoolctl import threadpool_limits

    rows, width = arrays.X.shape

    def work(seed: int, first: int, last: int) -> FloatArray:
        rng = np.random.Generator(np.random.SFC64(seed))
        total, numbers = np.zeros((size, width)), np.empty(size * block)
        for begin in range(first, last, block):
            count = min(block, last - begin)
            S = numbers[: size * count].reshape(size, count)
            rng.standard_normal(out=S)
            total += S @ arrays.X[begin : begin + count]
        return total

    with threadpool_limits(limits=1), ThreadPoolExecutor(2) as pool:
        halves = pool.map(work, (0, 1), (0, rows // 2), (rows // 2, rows))
        return np.asarray(sum(halves) / np.sqrt(size))
