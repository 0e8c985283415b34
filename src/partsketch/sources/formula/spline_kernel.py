"""Values of B-splines: of every row only those that are not zero are computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled

FloatArray = NDArray[np.float64]


@compiled
def spline_basis(x: FloatArray, knots: FloatArray, degree: int, out: FloatArray) -> None:
    """Write the B-splines of this degree at every x, one row of `out` each, by the recurrence of Cox and de Boor.

    Beyond the outermost knots the polynomials of the first and last interval go on.
    """
    last = len(knots) - degree - 2
    values = np.empty(degree + 1)
    for j in range(out.shape[0]):
        for row in range(len(x)):
            out[j, row] = 0.0
    for row in range(len(x)):
        here = x[row]
        if np.isnan(here):
            for j in range(out.shape[0]):
                out[j, row] = np.nan
            continue
        # The last interval that has a width and begins at or before here.
        interval = degree
        while interval < last and here >= knots[interval + 1]:
            interval += 1
        while interval > degree and knots[interval] == knots[interval + 1]:
            interval -= 1
        values[0] = 1.0
        for d in range(1, degree + 1):
            carried = 0.0
            for r in range(d):
                right, left = knots[interval + r + 1], knots[interval + 1 - d + r]
                share = values[r] / (right - left) if right != left else 0.0
                values[r] = carried + (right - here) * share
                carried = (here - left) * share
            values[d] = carried
        for j in range(degree + 1):
            out[interval - degree + j, row] = values[j]
