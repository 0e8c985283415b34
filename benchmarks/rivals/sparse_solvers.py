"""SciPy on sparse rows with a column of ones: LSQR, LSMR, and the normal equations."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.problem import Arrays, FloatArray


def lsqr(arrays: Arrays) -> FloatArray:
    """scipy.sparse.linalg.lsqr to twelve digits."""
    from scipy.sparse.linalg import lsqr as solve

    return np.asarray(solve(arrays.X, arrays.y, atol=1e-12, btol=1e-12, conlim=0)[0])


def lsmr(arrays: Arrays) -> FloatArray:
    """scipy.sparse.linalg.lsmr to twelve digits."""
    from scipy.sparse.linalg import lsmr as solve

    return np.asarray(solve(arrays.X, arrays.y, atol=1e-12, btol=1e-12, conlim=0)[0])


def normal_equations(arrays: Arrays) -> FloatArray:
    """AᵀA as a product of sparse arrays, solved densely."""
    A: Any = arrays.X
    return np.linalg.solve((A.T @ A).toarray(), A.T @ arrays.y)
