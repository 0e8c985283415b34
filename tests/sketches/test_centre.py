"""What is taken off columns far from zero, and whether it has to be."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.sketches.centre import is_needed, middle_if_narrow


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e290])
@pytest.mark.parametrize(("location", "narrow"), [(1.0, False), (1e2, False), (1e6, True), (1e15, True)])
def test_a_sketch_tells_whether_a_column_is_narrow(location: float, narrow: bool, unit: float) -> None:
    """The first row alone is narrow in every column; all rows are where their spread is below 2**-12 of the place."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([np.ones(100), rng.normal(size=100), unit * (location + rng.normal(size=100))])
    first = middle_if_narrow(rows[:1, 1:].T)
    assert first is not None
    centre = np.concatenate([[0.0], first])
    assert centre[2] == rows[0, 2]
    sketch = rng.normal(size=(20, 100)) @ (rows - centre)
    assert is_needed(sketch, centre) is narrow


def test_constants_and_zeros() -> None:
    rng = np.random.default_rng(2)
    rows = np.column_stack([np.ones(50), np.full(50, 1e9), rng.normal(size=50)])
    sketch = rng.normal(size=(10, 50))
    assert is_needed(sketch @ (rows - [0.0, 1e9, 0.0]), np.array([0.0, 1e9, 0.0]))
    assert not is_needed(sketch @ (rows - [0.0, 0.0, 0.5]), np.array([0.0, 0.0, 0.5]))
    assert is_needed(np.zeros((10, 3)), np.array([0.0, 1.0, 0.0]))
