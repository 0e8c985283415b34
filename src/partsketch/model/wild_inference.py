"""What a wild cluster bootstrap says of coefficients: p-values, and intervals at a few levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WildInference:
    """P-values and intervals from a wild cluster bootstrap, for one target.

    Attributes
    ----------
    draws, weights, seed
        How it was made.
    p_values
        Of each coefficient being zero.
    levels, intervals
        Intervals at these levels, shape (levels, columns, 2); an end that is not bounded has the estimate.
    unbounded
        1 where an end is infinite, else 0.
    """

    draws: int
    weights: str
    seed: int
    p_values: FloatArray
    levels: tuple[float, ...]
    intervals: FloatArray
    unbounded: FloatArray

    def interval(self, level: float) -> FloatArray:
        """Return lower and upper ends at a level, shape (columns, 2)."""
        for place, known in enumerate(self.levels):
            if abs(known - level) < 1e-9:
                signs = np.array([-np.inf, np.inf])
                return np.where(self.unbounded[place] > 0, signs, self.intervals[place])
        shown = ", ".join(f"{known:g}" for known in self.levels)
        raise InputError(f"level is {level:g}: intervals of the wild bootstrap are kept at {shown}; choose one.")

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}
