"""Values of B-splines: of every row only those that are not zero are computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled

FloatArray = NDArray[np.float64]


#: Rows that are worked on at once.
_ROWS = 512


@compiled
def _values_at(x: float, knots: FloatArray, degree: int, values: FloatArray) -> int:
    """Write the splines at x that are not zero, and return the interval of x, with which the last of them begins."""
    last = len(knots) - degree - 2
    interval = degree
    while interval < last and x >= knots[interval + 1]:
        interval += 1
    # An interval without a width has no splines of its own.
    while interval > degree and knots[interval] == knots[interval + 1]:
        interval -= 1
    values[0] = 1.0
    for d in range(1, degree + 1):
        carried = 0.0
        for r in range(d):
            right, left = knots[interval + r + 1], knots[interval + 1 - d + r]
            share = values[r] / (right - left) if right != left else 0.0
            values[r] = carried + (right - x) * share
            carried = (x - left) * share
        values[d] = carried
    return interval


@compiled
def spline_basis(x: FloatArray, knots: FloatArray, degree: int, out: FloatArray) -> None:
    """Write the B-splines of this degree at every x, one row of `out` each, by the recurrence of Cox and de Boor.

    Beyond the outermost knots the polynomials of the first and last interval go on.
    """
    values = np.empty(degree + 1)
    # A few rows at a time, so that what is written to all columns stays in the cache.
    for begin in range(0, len(x), _ROWS):
        end = min(begin + _ROWS, len(x))
        out[:, begin:end] = 0.0
        for row in range(begin, end):
            if np.isnan(x[row]):
                out[:, row] = np.nan
            else:
                interval = _values_at(x[row], knots, degree, values)
                for j in range(degree + 1):
                    out[interval - degree + j, row] = values[j]
