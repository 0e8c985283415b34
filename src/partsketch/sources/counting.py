"""Numbers of consecutive rows, in memory that is used again."""

from __future__ import annotations

import sys
import threading

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

#: While one block is made, the loop that uses the one before still holds it, and so perhaps does another further on.
_BLOCKS_UNDER_WAY = 3

#: References to an array in a list that nobody else holds: the list, and the argument of the function that counts.
_HELD_BY_NOBODY = 2


class _Kept(threading.local):
    """Arrays that this thread was given last."""

    def __init__(self) -> None:
        self.arrays: list[IntArray] = []


_KEPT = _Kept()


def consecutive(begin: int, end: int) -> IntArray:
    """Return begin, …, end − 1 as an array that belongs to the caller.

    Blocks are usually let go before the next but one is read. Their memory is then filled again: fresh memory for every
    block costs more than the numbers do, because the system clears it first.
    """
    arrays, count = _KEPT.arrays, end - begin
    for i in range(len(arrays)):
        if sys.getrefcount(arrays[i]) == _HELD_BY_NOBODY and arrays[i].size >= count > 0:
            arrays[i] += begin - arrays[i][0]
            return arrays[i][:count]
    numbers = np.arange(begin, end, dtype=np.int64)
    arrays.insert(0, numbers)
    del arrays[_BLOCKS_UNDER_WAY:]
    return numbers[:]
