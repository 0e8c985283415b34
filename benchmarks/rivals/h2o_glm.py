"""H2O's generalized linear model with a Gaussian family, in a server of its own on this machine."""

from __future__ import annotations

import atexit
from functools import cache
from typing import Any

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray


@cache
def _server() -> Any:
    import h2o

    h2o.init(nthreads=-1, max_mem_size="8G", bind_to_localhost=True, verbose=False)
    h2o.no_progress()
    atexit.register(lambda: h2o.cluster().shutdown())
    return h2o


def as_frame(arrays: Arrays) -> Any:
    """Send the rows to the server."""
    import pandas as pd

    names = [f"x{index}" for index in range(arrays.X.shape[1])]
    frame = pd.DataFrame(np.column_stack([arrays.X, arrays.y]), columns=[*names, TARGET])
    return _server().H2OFrame(frame)


def fit_frame(frame: Any) -> FloatArray:
    """Fit without penalty."""
    from h2o.estimators import H2OGeneralizedLinearEstimator

    model = H2OGeneralizedLinearEstimator(family="gaussian", lambda_=0, standardize=False, solver="IRLSM")
    model.train(y=TARGET, training_frame=frame)
    found = model.coef()
    names = [name for name in frame.columns if name != TARGET]
    return np.array([found["Intercept"], *(found[name] for name in names)])
