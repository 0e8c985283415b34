"""Compiled loops over rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def copy_transposed(rows: NDArray[np.generic], out: NDArray[np.float64]) -> None:
    """Write an n×d array as float64 into a d×n one."""
    out[...] = rows.T
