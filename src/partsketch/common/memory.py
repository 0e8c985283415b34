"""Arrays whose memory is used again: fresh memory is cleared by the system, page by page, when it is first touched.

That takes microseconds per page, which for the small matrices and short lists that come and go with every segment is
more than the work on them.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections import deque
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray


class Pool:
    """Arrays of one type whose memory is given out again once nobody holds them, or a part of them, any more.

    Parameters
    ----------
    kind
        Type of the numbers.
    most_arrays, most_numbers
        How many arrays that nobody holds are kept, and the most numbers of one that is: so much memory may stay behind.
    """

    def __init__(self, kind: type[np.generic], most_arrays: int, most_numbers: int) -> None:
        self._kind, self._most_numbers = kind, most_numbers
        # Taking from a deque and adding to it are single steps: threads need no lock, and memory may come back at any
        # moment, also in the middle of `take`.
        self._free: deque[memoryview] = deque(maxlen=most_arrays)

    def __len__(self) -> int:
        """Return how many arrays are kept that nobody holds."""
        return len(self._free)

    def clear(self) -> None:
        """Keep nothing."""
        self._free.clear()

    def take(self, count: int) -> NDArray[np.generic]:
        """Return an array of so many numbers, whatever they are, that belongs to the caller."""
        if not 0 < count <= self._most_numbers:
            return np.empty(count, dtype=self._kind)
        memory = self._fitting(count)
        # Parts of an array whose memory is another's hold the first array that is not a part: with a memory view behind
        # it, that is this one, and it lives as long as they do.
        array = np.frombuffer(memory, dtype=self._kind, count=count)
        weakref.finalize(array, self._free.append, memory)
        return array

    def _fitting(self, count: int) -> memoryview:
        for _ in range(len(self._free)):
            try:
                memory = self._free.pop()
            except IndexError:
                # Other threads were quicker.
                break
            # Not much larger, so that somebody who keeps a small array does not keep a large one with it.
            if count <= len(memory) <= 2 * count:
                return memory
            self._free.appendleft(memory)
        return np.empty(count, dtype=self._kind).data


#: Numbers of a cache line.
_LINE = 8

#: Bytes of a large page.
_LARGE_PAGE = 2**21
_NUMBERS = Pool(np.float64, most_arrays=16, most_numbers=2**17 + 2**16)


def fresh(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of this shape, its entries whatever they are, that belongs to the caller."""
    return _NUMBERS.take(int(np.prod(shape))).reshape(shape)  # type: ignore[return-value]


def aligned_zeros(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return zeros that start on a cache line: eight of them are read at once."""
    count = int(np.prod(shape))
    memory = fresh((count + _LINE,))
    first = -memory.ctypes.data // 8 % _LINE
    memory.fill(0.0)
    return memory[first : first + count].reshape(shape)


def in_large_pages(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return an array of this shape, its entries whatever they are, that begins where a large page may.

    NumPy asks the system for such pages where an array is large. Pages of 4 KiB take five times as long to come.
    """
    count = int(np.prod(shape))
    whole = np.empty(count + _LARGE_PAGE // 8)
    skipped = -whole.__array_interface__["data"][0] % _LARGE_PAGE // 8
    return whole[skipped : skipped + count].reshape(shape)


def give_back() -> None:
    """Return freed memory to the system, where that can be asked for.

    Memory that worker threads freed is kept for these threads, and is of no use to the one that goes on.
    """
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)
