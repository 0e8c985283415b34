"""Dask on this machine's threads: its own lstsq (TSQR) and dask-ml's LinearRegression (an iteration)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from benchmarks.problem import Arrays, FloatArray


class DaskArrays(NamedTuple):
    """Chunked features and target."""

    X: Any
    y: Any


def chunked(arrays: Arrays) -> DaskArrays:
    """Cut the rows into chunks, sixteen of them or a few more."""
    import dask.array as da

    rows = -(-len(arrays.X) // 16)
    rows = max(rows, 2 * arrays.X.shape[1])
    return DaskArrays(da.from_array(arrays.X, chunks=(rows, -1)), da.from_array(arrays.y, chunks=rows))


def fit_lstsq(arrays: DaskArrays) -> FloatArray:
    """dask.array.linalg.lstsq on [1 X]."""
    import dask.array as da

    ones = da.ones((arrays.X.shape[0], 1), chunks=(arrays.X.chunks[0], 1))
    A = da.concatenate([ones, arrays.X], axis=1).rechunk({1: -1})
    return np.asarray(da.linalg.lstsq(A, arrays.y)[0].compute())


def fit_dask_ml(arrays: DaskArrays) -> FloatArray:
    """dask-ml's LinearRegression with its quickest solver, the penalty made negligible."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses names that Dask has deprecated
        from dask_ml.linear_model import LinearRegression

        model = LinearRegression(solver="lbfgs", C=1e20).fit(arrays.X, arrays.y)
    return np.concatenate([np.atleast_1d(model.intercept_), model.coef_.ravel()])
