"""TSQR: Householder QR of blocks, each stacked below the factor before it, one chain per core."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.problem import Arrays, FloatArray

#: Rows of a block per column: taller blocks factor the triangle less often, lower ones stay in the cache longer.
_ROWS_PER_COLUMN = 4


def fit_arrays(arrays: Arrays) -> FloatArray:
    """Fit with an intercept."""
    from threadpoolctl import threadpool_limits

    rows, width = arrays.X.shape
    step = _ROWS_PER_COLUMN * width

    def chain(first: int, last: int) -> FloatArray:
        factor = np.empty((0, width + 2))
        for begin in range(first, last, step):
            here = slice(begin, min(begin + step, last))
            block = np.column_stack([np.ones(here.stop - here.start), arrays.X[here], arrays.y[here]])
            factor = np.asarray(np.linalg.qr(np.vstack([factor, block]), mode="r"))
        return factor

    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        halves = list(pool.map(chain, (0, rows // 2), (rows // 2, rows)))
        factor = np.asarray(np.linalg.qr(np.vstack(halves), mode="r"))
        return np.asarray(np.linalg.lstsq(factor[:-1, :-1], factor[:-1, -1], rcond=None)[0])
