"""Values of B-splines: of every row only those that are not zero are computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled

FloatArray = NDArray[np.float64]


#: Rows that are worked on at once.
_ROWS = 512
#: Intervals between knots up to which all rows are computed in each.
_FEW_INTERVALS = 5


@compiled
def _find_intervals(x, knots, degree, intervals):  # type: ignore[no-untyped-def]
    """Write the interval of every x, with which the last of the splines that are not zero there begins."""
    last = len(knots) - degree - 2
    # An interval without a width has no splines of its own.
    taken = np.arange(last + 1)
    for interval in range(degree + 1, last + 1):
        if knots[interval] == knots[interval + 1]:
            taken[interval] = taken[interval - 1]
    for row in range(len(x)):
        intervals[row] = degree
    # Counting has no branches that a processor could guess wrong.
    for interval in range(degree + 1, last + 1):
        knot = knots[interval]
        for row in range(len(x)):
            intervals[row] += np.int64(x[row] >= knot)
    for row in range(len(x)):
        intervals[row] = taken[intervals[row]]


@compiled
def _widths(knots, degree):  # type: ignore[no-untyped-def]
    """Return one by the distance of knots that are 1 to `degree` apart; zero where there is none."""
    over = np.zeros((degree + 1, len(knots)))
    for apart in range(1, degree + 1):
        for first in range(len(knots) - apart):
            if knots[first + apart] != knots[first]:
                over[apart, first] = 1.0 / (knots[first + apart] - knots[first])
    return over


@compiled
def _recur(here, knots, degree, over, interval, values, carried):  # type: ignore[no-untyped-def]
    """Write the splines that are not zero in one interval at every x: all numbers but x are the same for all rows."""
    count = len(here)
    for row in range(count):
        values[0, row] = 1.0
    for d in range(1, degree + 1):
        for row in range(count):
            carried[row] = 0.0
        for r in range(d):
            value, right = values[r], interval + r + 1
            width, high, low = over[d, right - d], knots[right], knots[right - d]
            for row in range(count):
                share = value[row] * width
                value[row] = carried[row] + (high - here[row]) * share
                carried[row] = (here[row] - low) * share
        for row in range(count):
            values[d, row] = carried[row]


@compiled
def _recur_everywhere(here, knots, degree, over, intervals, values, carried):  # type: ignore[no-untyped-def]
    """Write the splines that are not zero at every x, each row in its own interval."""
    count = len(here)
    for row in range(count):
        values[0, row] = 1.0
    for d in range(1, degree + 1):
        for row in range(count):
            carried[row] = 0.0
        widths = over[d]
        for r in range(d):
            value = values[r]
            for row in range(count):
                right = intervals[row] + r + 1
                share = value[row] * widths[right - d]
                value[row] = carried[row] + (knots[right] - here[row]) * share
                carried[row] = (here[row] - knots[right - d]) * share
        for row in range(count):
            values[d, row] = carried[row]


@compiled
def spline_basis(x: FloatArray, knots: FloatArray, degree: int, out: FloatArray) -> None:
    """Write the B-splines of this degree at every x, one row of `out` each, by the recurrence of Cox and de Boor.

    Beyond the outermost knots the polynomials of the first and last interval go on.
    """
    over, last = _widths(knots, degree), len(knots) - degree - 2
    values, carried, intervals = np.empty((degree + 1, _ROWS)), np.empty(_ROWS), np.empty(_ROWS, np.int64)
    # A few rows at a time, so that what is written to all columns stays in the cache.
    for begin in range(0, len(x), _ROWS):
        here = x[begin : begin + _ROWS]
        count = len(here)
        _find_intervals(here, knots, degree, intervals)
        for column in range(out.shape[0]):
            for row in range(count):
                out[column, begin + row] = 0.0
        if last - degree < _FEW_INTERVALS:
            # To compute all rows in each of a few intervals is quicker than to look up the knots of every row.
            for interval in range(degree, last + 1):
                _recur(here, knots, degree, over, interval, values, carried)
                # Zero times a value is zero, and is added without a branch.
                for row in range(count):
                    carried[row] = np.float64(intervals[row] == interval)
                for j in range(degree + 1):
                    value, place = values[j], out[interval - degree + j, begin : begin + count]
                    for row in range(count):
                        place[row] += value[row] * carried[row]
        else:
            _recur_everywhere(here, knots, degree, over, intervals, values, carried)
            for j in range(degree + 1):
                for row in range(count):
                    out[intervals[row] - degree + j, begin + row] = values[j, row]
        for row in range(count):
            if np.isnan(here[row]):
                out[:, begin + row] = np.nan
