"""What a wild cluster bootstrap says of coefficients: p-values, and intervals at a few levels."""

from __future__ import annotations

from dataclasses import dataclass

from partsketch.model.kept_intervals import KeptIntervals


@dataclass(frozen=True, eq=False)
class WildInference(KeptIntervals):
    """P-values and intervals from a wild cluster bootstrap, for one target.

    Attributes
    ----------
    draws, weights, seed
        How it was made.
    """

    draws: int
    weights: str
    seed: int
