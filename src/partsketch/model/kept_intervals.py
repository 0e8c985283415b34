"""Intervals that no formula makes of standard errors: kept at a few levels as they were found, with p-values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

FloatArray = NDArray[np.float64]

#: Levels at which intervals are kept.
LEVELS = (0.9, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class KeptIntervals:
    """P-values and intervals of the coefficients of one target.

    Attributes
    ----------
    p_values
        Of each coefficient being zero.
    levels, intervals
        Intervals at these levels, shape (levels, columns, 2); an end that is not bounded has the estimate.
    unbounded
        1 where an end is infinite, else 0.
    """

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
        raise InputError(f"level is {level:g}: intervals of this model are kept at {shown}; choose one.")

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain data."""
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}
