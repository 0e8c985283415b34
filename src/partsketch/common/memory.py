"""Arrays whose memory is used again: fresh memory is cleared by the system, page by page, when it is first touched.

That takes microseconds per page, which for the small matrices and short lists that come and go with every segment is
more than the work on them.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
from numpy.typing import NDArray

#: References to an array in a list that nobody else holds: the list, and the argument of the function that counts.
_HELD_BY_NOBODY = 2


class Pool:
    """Arrays of one type that are given out again once nobody holds them, or a part of them, any more.

    Parameters
    ----------
    kind
        Type of the numbers.
    most_arrays, most_numbers
        How many arrays are kept, and the most numbers of one that is: so much memory may stay behind.
    """

    def __init__(self, kind: type[np.generic], most_arrays: int, most_numbers: int) -> None:
        self._kind, self._most_arrays, self._most_numbers = kind, most_arrays, most_numbers
        self._kept: list[NDArray[np.generic]] = []
        self._lock = threading.Lock()

    def take(self, count: int) -> NDArray[np.generic]:
        """Return an array of so many numbers, whatever they are, that belongs to the caller."""
        if not 0 < count <= self._most_numbers:
            return np.empty(count, dtype=self._kind)
        kept = self._kept
        with self._lock:
            for i in range(len(kept)):
                # Not much larger, so that somebody who keeps a small array does not keep a large one with it.
                if sys.getrefcount(kept[i]) == _HELD_BY_NOBODY and count <= kept[i].size <= 2 * count:
                    return kept[i][:count]
            array = np.empty(count, dtype=self._kind)
            kept.insert(0, array)
            del kept[self._most_arrays :]
            return array[:]


_NUMBERS = Pool(np.float64, most_arrays=16, most_numbers=2**17 + 2**16)


def fresh(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of this shape, its entries whatever they are, that belongs to the caller."""
    return _NUMBERS.take(int(np.prod(shape))).reshape(shape)  # type: ignore[return-value]
