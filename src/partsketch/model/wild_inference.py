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
        Intervals at these levels, shape (levels, columns, 2); an end may be infinite.
    """

    draws: int
    weights: str
    seed: int
    p_values: FloatArray
    levels: tuple[float, ...]
    intervals: FloatArray

    def interval(self, level: float) -> FloatArray:
        """Return lower and upper ends at a level, shape (columns, 2)."""
        for place, known in enumerate(self.levels):
            if abs(known - level) < 1e-9:
                return np.asarray(self.intervals[place])
        shown = ", ".join(f"{known:g}" for known in self.levels)
        raise InputError(f"level is {level:g}: intervals of the wild bootstrap are kept at {shown}; choose one.")

    def to_dict(self) -> dict[str, Any]:
        """Return the values as plain data; an infinite end is None."""
        return {
            "draws": self.draws,
            "weights": self.weights,
            "seed": str(self.seed),
            "p_values": self.p_values.tolist(),
            "levels": list(self.levels),
            "intervals": [
                [[end if np.isfinite(end) else None for end in pair] for pair in at_level]
                for at_level in self.intervals.tolist()
            ],
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> WildInference:
        """Return what `to_dict` described."""
        intervals = [
            [[-np.inf if low is None else low, np.inf if high is None else high] for low, high in at_level]
            for at_level in values["intervals"]
        ]
        return cls(
            draws=int(values["draws"]),
            weights=str(values["weights"]),
            seed=int(values["seed"]),
            p_values=np.array(values["p_values"], dtype=np.float64),
            levels=tuple(values["levels"]),
            intervals=np.array(intervals, dtype=np.float64),
        )
