"""Values that are taken off columns far from zero, so that their location does not cost digits of their spread.

With a column of ones this changes nothing of a regression but its intercept, which is put right at the end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: A column whose middle is this many times as far from zero as its entries are from one another is centred.
_FAR = 4.0

#: Sketches lose no more than this part of a column's digits to its location before it is taken off.
_NARROW = 2.0**-12

#: Rows that are looked at before a sketch begins, and numbers at most.
_LOOKED_AT, _MOST_NUMBERS = 256, 2**18


def rows_to_look_at(width: int) -> int:
    """Return how many rows of so many columns decide what is taken off."""
    return max(8, min(_LOOKED_AT, _MOST_NUMBERS // max(width, 1)))


def middle(columns: FloatArray) -> FloatArray:
    """Return a value in the middle of each column (shape columns × rows) that is far from zero; zero for the others.

    It has few digits, so that taking it off a column of few digits leaves few digits.
    """
    if not columns.shape[1]:
        return np.zeros(len(columns))
    with np.errstate(all="ignore"):
        centre = np.median(columns, axis=1)
        spread = np.mean(np.abs(columns - centre[:, None]), axis=1)
        grid = np.ldexp(1.0, np.clip(np.frexp(spread)[1] - 4, -1000, 1000))
        rounded = np.where(spread > 0, np.rint(centre / grid) * grid, centre)
        return np.where((np.abs(centre) > _FAR * spread) & np.isfinite(rounded), rounded, 0.0)


def middle_if_narrow(columns: FloatArray) -> FloatArray | None:
    """Return what a sketch should take off: the middle of columns that are narrow beside their location; None if none.

    Indicators that happen to be one in all these rows are left alone.
    """
    if not columns.shape[1]:
        return None
    with np.errstate(all="ignore"):
        low, high = columns.min(axis=1), columns.max(axis=1)
        size = np.maximum(np.abs(low), np.abs(high))
        narrow = (high - low <= _NARROW * size) & (size > 0) & ((low != high) | (low != 1.0))
    if not narrow.any():
        return None
    return np.where(narrow, middle(columns), 0.0)


def is_needed(sketch: FloatArray, centre: FloatArray) -> bool:
    """Whether any column of all rows is narrow, given their sketch around a centre, the ones first.

    The first rows of a partition may be one or two, whose columns are narrow whatever they are.
    """
    sizes = np.abs(sketch).max(axis=0, initial=0.0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    scaled = sketch / sizes
    ones = scaled[:, 0]
    with np.errstate(all="ignore"):
        means = ones @ scaled / (ones @ ones)
        spread = np.linalg.norm(scaled - np.outer(ones, means), axis=0)
        wide = spread > _NARROW * np.abs(centre * sizes[0] / sizes + means) * np.linalg.norm(ones)
    return bool(np.any((centre != 0) & ~wide))
