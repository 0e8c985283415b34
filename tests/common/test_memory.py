"""Memory that is used again: never while somebody holds it, and not too much of it."""

from __future__ import annotations

import threading
import time
import weakref

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partsketch.common.memory import Pool, fresh

steps = st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=40)


@given(steps)
def test_held_arrays_stay_as_they_were(wanted: list[tuple[int, bool]]) -> None:
    pool = Pool(np.float64, most_arrays=3, most_numbers=50)
    held = []
    for number, (count, hold) in enumerate(wanted):
        array = pool.take(count)
        assert array.shape == (count,)
        array[...] = number
        if hold:
            # A part of an array, in another shape, holds the whole of it.
            held.append((array[count // 2 :].reshape(1, -1), number))
        del array
        for kept, value in held:
            assert (kept == value).all()


def test_memory_is_used_again_for_sizes_that_are_alike() -> None:
    pool = Pool(np.int64, most_arrays=4, most_numbers=1000)
    place = pool.take(1000).ctypes.data
    assert {pool.take(count).ctypes.data for count in range(500, 1001)} == {place}
    # Whoever keeps a few numbers should not keep many with them.
    assert pool.take(499).ctypes.data != place


def test_large_arrays_and_many_arrays_are_not_kept() -> None:
    pool = Pool(np.float64, most_arrays=2, most_numbers=10)
    arrays = [pool.take(count) for count in (11, 10, 10, 10)]
    # An array from the pool is made from memory that the pool knows; one that is too large for it is not.
    assert arrays[0].base is None
    places = [array.ctypes.data for array in arrays[1:]]
    references = [weakref.ref(array) for array in arrays]
    while arrays:
        del arrays[0]
    assert [reference() for reference in references] == [None] * 4
    # The two that came back last are given out again, and the third is gone.
    assert sorted(array.ctypes.data for array in [pool.take(10), pool.take(10)]) == sorted(places[1:])
    assert len(pool) <= 2


def test_threads_share_memory_but_never_at_the_same_time() -> None:
    """Eight threads ask 2,000 times each, hold what they got for a moment, and look whether it changed meanwhile."""
    pool = Pool(np.int64, most_arrays=16, most_numbers=100)
    places: set[int] = set()
    wrong: list[int] = []

    def work(first: int) -> None:
        for value in range(first, first + 2000):
            numbers = pool.take(100)
            numbers[...] = value
            places.add(numbers.ctypes.data)
            time.sleep(0)
            if not (numbers == value).all():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(10_000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(places) <= 32


def test_shapes() -> None:
    assert fresh((3, 4)).shape == (3, 4)
    assert fresh((0, 4)).shape == (0, 4)
    assert fresh((7,)).dtype == np.float64
    assert fresh((2000, 3000)).shape == (2000, 3000)
