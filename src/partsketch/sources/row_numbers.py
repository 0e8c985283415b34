"""Numbers of consecutive rows, in memory that is used again."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from partsketch.common.memory import Pool

IntArray = NDArray[np.int64]

#: Rows of the largest blocks whose numbers are kept: no more than 8 MB stay behind in all.
_MOST_ROWS = 65536

_POOL = Pool(np.int64, most_arrays=16, most_numbers=_MOST_ROWS)


@cache
def _first_numbers() -> IntArray:
    return np.arange(_MOST_ROWS, dtype=np.int64)


def consecutive(begin: int, end: int) -> IntArray:
    """Return begin, …, end − 1 as an array that belongs to the caller."""
    if end - begin > _MOST_ROWS:
        return np.arange(begin, end, dtype=np.int64)
    first = _first_numbers()[: max(0, end - begin)]
    numbers: IntArray = np.add(first, begin, out=_POOL.take(first.size))
    return numbers
