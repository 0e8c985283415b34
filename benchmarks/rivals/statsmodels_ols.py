"""statsmodels: OLS by pseudo-inverse or QR, with everything its summary needs."""

from __future__ import annotations

import numpy as np

from benchmarks.problem import Arrays, FloatArray


def fit_arrays(arrays: Arrays) -> FloatArray:
    """Solve on [1 X], prepared by `numpy_lstsq.with_ones`, by QR, the faster of its two ways."""
    import statsmodels.api as sm

    return np.asarray(sm.OLS(arrays.y, arrays.X).fit(method="qr").params)
