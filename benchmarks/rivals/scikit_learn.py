"""scikit-learn: exact least squares, stochastic gradients, and a sparse random projection of the rows."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.problem import Arrays, FloatArray
from benchmarks.verdicts import DidNotConvergeError


def fit_arrays(arrays: Arrays, tol: float = 1e-6) -> FloatArray:
    """Fit with an intercept; directions below `tol` (default as there) of the largest are cut off."""
    from sklearn.linear_model import LinearRegression

    model = LinearRegression(tol=tol).fit(arrays.X, arrays.y)
    return np.concatenate([[model.intercept_], model.coef_])


def fit_gradients(arrays: Arrays) -> FloatArray:
    """SGDRegressor without penalty, on standardised columns as its manual asks for."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import SGDRegressor

    means, scales = arrays.X.mean(axis=0), arrays.X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            model = SGDRegressor(penalty=None, random_state=0).fit((arrays.X - means) / scales, arrays.y)
        except ConvergenceWarning as warning:
            raise DidNotConvergeError(str(warning)) from warning
    slopes = model.coef_ / scales
    return np.concatenate([model.intercept_ - means @ slopes, slopes])


def fit_projected(arrays: Arrays) -> FloatArray:
    """Project the rows with SparseRandomProjection to four per column, then lstsq: a sketch as one would write it."""
    from sklearn.random_projection import SparseRandomProjection

    rows = np.column_stack([np.ones(len(arrays.X)), arrays.X, arrays.y])
    projection = SparseRandomProjection(n_components=4 * (rows.shape[1] - 1), random_state=0)
    sketched = projection.fit_transform(rows.T).T
    return np.asarray(np.linalg.lstsq(sketched[:, :-1], sketched[:, -1], rcond=None)[0])
