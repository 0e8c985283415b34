"""Numbers of consecutive rows: right whatever was asked before, and never changed while somebody holds them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partsketch.sources.row_numbers import consecutive

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
