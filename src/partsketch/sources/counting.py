"""Numbers of consecutive rows, in memory that is used again."""

from __future__ import annotations

import sys
import threading

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

#: Arrays that are kept: a few for each of a few threads, which hold those of the blocks that they work on.
_MOST_ARRAYS = 16

#: Numbers of the largest array that is kept: no more than 8 MB stay behind in all.
_MOST_NUMBERS = 65536

#: References to an array in a list that nobody else holds: the list, and the argument of the function that counts.
_HELD_BY_NOBODY = 2

_KEPT: list[IntArray] = []
_LOCK = threading.Lock()


def consecutive(begin: int, end: int) -> IntArray:
    """Return begin, …, end − 1 as an array that belongs to the caller.

    Blocks are usually let go before the next but one is read. Their memory is then filled again: fresh memory for every
    block, or for every thread, costs more than the numbers do, because the system clears it first.
    """
    count = end - begin
    if not 0 < count <= _MOST_NUMBERS:
        return np.arange(begin, end, dtype=np.int64)
    with _LOCK:
        for i in range(len(_KEPT)):
            if sys.getrefcount(_KEPT[i]) == _HELD_BY_NOBODY and _KEPT[i].size >= count:
                numbers = _KEPT[i]
                break
        else:
            numbers = np.arange(begin, end, dtype=np.int64)
            _KEPT.insert(0, numbers)
            del _KEPT[_MOST_ARRAYS:]
    # The whole array, so that it can be cut to any length later.
    numbers += begin - numbers[:1]
    return numbers[:count]
