"""Blocks of columns: what lies in memory as doubles is copied by its addresses, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.sources.blocks import ColumnBlock


@pytest.mark.parametrize("count", [2, 40])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float32", "bool", ">f8"])
def test_other_numbers_are_not_read_as_doubles(dtype: str, count: int) -> None:
    """Whole numbers take as many bytes as doubles do."""
    values = np.array([1, 0, 3]).astype(dtype)
    block = ColumnBlock(np.arange(3), (np.array([1.0, 2.0, 3.0]), *[values] * (count - 1)))
    assert block.addresses is None
    copied = np.empty((count, 2))
    block.copy_into(copied, 1, 3)
    np.testing.assert_array_equal(copied, [[2.0, 3.0]] + [values[1:].astype(float).tolist()] * (count - 1))
