"""Blocks of sparse rows: views of the array's entries, or copies of the rows that were chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from partsketch.sources.memory.arrays import array_source

SOURCE: Any = array_source(
    sparse.random_array((500, 7), density=0.3, rng=np.random.default_rng(0), format="csr"), np.arange(500.0)
)


def dense(block: Any) -> Any:
    out = np.full((8, len(block)), np.nan)
    block.copy_into(out, 0, len(block))
    return out.T


def test_blocks_do_not_copy_entries() -> None:
    blocks = list(SOURCE.read(50, 450, 100))
    assert len(blocks) == 4
    for block in blocks:
        assert np.shares_memory(block.sparse_features.data, SOURCE.features.data)
        assert np.shares_memory(block.sparse_features.indices, SOURCE.features.indices)


@given(st.lists(st.integers(0, 199), max_size=30), st.integers(0, 300))
def test_chosen_rows_are_those_of_the_array(positions: list[int], start: int) -> None:
    block = next(iter(SOURCE.read(start, start + 200, 200)))
    taken = block.take(np.array(positions, dtype=np.int64))
    numbers = start + np.array(positions, dtype=np.int64)
    np.testing.assert_array_equal(dense(taken)[:, :-1], SOURCE.features.toarray()[numbers])
    np.testing.assert_array_equal(dense(taken)[:, -1], numbers)
