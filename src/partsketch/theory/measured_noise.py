"""Noise of partitions that somebody measured on their rows, which sketches of them only show."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError


class MeasuredNoise:
    """Residual variances of exact least squares in each partition (Extension of Theorem 3.1).

    Parameters
    ----------
    residual_sums : array of shape (k,)
        Residual sums of squares ℓ_i of the exact fit to each partition, all positive.
    freedom : array of shape (k,)
        Their degrees of freedom, p_i − r_i.

    Attributes
    ----------
    variances, freedom : arrays of shape (k,)
        ℓ_i/(p_i − r_i), and the degrees of freedom.
    """

    def __init__(self, residual_sums: ArrayLike, freedom: ArrayLike) -> None:
        sums, counts = np.asarray(residual_sums, dtype=np.float64), np.asarray(freedom, dtype=np.float64)
        if sums.ndim != 1 or sums.shape != counts.shape or not (np.all(sums > 0) and np.all(np.isfinite(sums))):
            raise InputError("measured noise is a positive residual sum of squares and a count for each partition.")
        if not (np.all(counts >= 1) and np.all(np.isfinite(counts))):
            raise InputError("measured noise needs at least one degree of freedom in each partition.")
        self.variances, self.freedom = sums / counts, counts
