"""Numbers of consecutive rows: right whatever was asked before, and never changed while somebody holds them."""

from __future__ import annotations

import threading
import time
import weakref

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partsketch.sources.counting import consecutive

steps = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 50), st.booleans()), max_size=30)


@given(steps)
def test_held_numbers_stay_as_they_were(wanted: list[tuple[int, int, bool]]) -> None:
    held = []
    for begin, count, hold in wanted:
        numbers = consecutive(begin, begin + count)
        assert np.array_equal(numbers, np.arange(begin, begin + count))
        if hold:
            # A part of the array holds the whole of it.
            held.append((numbers[count // 2 :], begin + count // 2, begin + count))
        del numbers
        for kept, first, last in held:
            assert np.array_equal(kept, np.arange(first, last))


def test_memory_is_used_again() -> None:
    addresses = {consecutive(begin, begin + 1000).ctypes.data for begin in range(0, 50_000, 1000)}
    assert len(addresses) <= 2


def test_threads_use_the_same_memory_but_never_at_the_same_time() -> None:
    """Eight threads ask 2,000 times each, hold what they got for a moment, and look whether it changed meanwhile."""
    places: set[int] = set()
    wrong: list[int] = []

    def work(first: int) -> None:
        for begin in range(first, first + 2000):
            numbers = consecutive(begin, begin + 100)
            places.add(numbers.ctypes.data)
            time.sleep(0)
            if numbers[0] != begin or numbers[-1] != begin + 99:
                wrong.append(begin)

    threads = [threading.Thread(target=work, args=(10_000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(places) <= 32


def test_large_arrays_are_not_kept() -> None:
    numbers = consecutive(0, 1_000_000)
    held = weakref.ref(numbers.base if numbers.base is not None else numbers)
    del numbers
    assert held() is None
