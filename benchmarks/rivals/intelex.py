"""Extension for Scikit-learn (scikit-learn-intelex): oneDAL's normal equations, all cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray


def fit_arrays(arrays: Arrays) -> FloatArray:
    """Fit with an intercept."""
    from sklearnex.linear_model import LinearRegression

    model = LinearRegression().fit(arrays.X, arrays.y)
    return np.concatenate([np.atleast_1d(model.intercept_), model.coef_.ravel()])


def fit_parquet(path: Path) -> FloatArray:
    """Fit batch by batch with IncrementalLinearRegression."""
    import pyarrow.parquet as pq
    from sklearnex.linear_model import IncrementalLinearRegression

    model = IncrementalLinearRegression()
    for batch in pq.ParquetFile(path).iter_batches(batch_size=65536):
        X = np.stack([batch[name].to_numpy() for name in batch.schema.names if name != TARGET], axis=1)
        model.partial_fit(X, batch[TARGET].to_numpy())
    return np.concatenate([np.atleast_1d(model.intercept_), model.coef_.ravel()])
