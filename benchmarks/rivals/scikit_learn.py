"""scikit-learn's LinearRegression: centres, then SciPy's lstsq."""

from __future__ import annotations

import numpy as np

from benchmarks.problem import Arrays, FloatArray


def fit_arrays(arrays: Arrays, tol: float = 1e-6) -> FloatArray:
    """Fit with an intercept; directions below `tol` (default as there) of the largest are cut off."""
    from sklearn.linear_model import LinearRegression

    model = LinearRegression(tol=tol).fit(arrays.X, arrays.y)
    return np.concatenate([[model.intercept_], model.coef_])
