"""The lasso on a factor: what a minimum must satisfy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.questions.descent import minimise


def test_a_column_that_hardly_takes_part_is_found() -> None:
    """Its penalty is a ten-millionth below its pull: descent stops before it sees that, and the equations would not.

    Forty tables: with columns that are nearly alike descent ends on either side of the border.
    """
    rng = np.random.default_rng(3)
    for _ in range(40):
        rows = rng.normal(size=(30, 4))
        rows[:, 1:] += 3 * rng.normal(size=(30, 1))
        root: NDArray[np.float64] = np.asarray(np.linalg.qr(rows, mode="r"))
        right = root @ [0.0, 1.0, 2.0, 3.0]
        absolute = np.full(4, 1e-3 * float(np.abs(root.T @ right).max()))
        without = np.r_[0.0, minimise(root[:, 1:], right, absolute[1:], np.zeros(3), np.zeros(3))]
        pull = abs(root[:, 0] @ (right - root @ without))
        absolute[0] = pull * (1 - 1e-7)
        found = minimise(root, right, absolute, np.zeros(4), np.zeros(4))
        left = np.abs(root.T @ (right - root @ found))
        # The room that the solver allows for rounding, of the penalty; the border is a hundred times as far.
        assert np.all(left <= absolute * (1 + 2e-9))
        assert found[0] != 0
