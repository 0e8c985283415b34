"""Sketches from which nothing can be said of the stacked fit: refused, in place of an estimate that is off."""

from __future__ import annotations

import numpy as np

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray
from partsketch.theory.gram_pairs import GramPairs

#: Estimates of noise may vary so many times more than from residuals of their own; intervals of 95% hold in 94% of
#: simulated fits from 1.2 to 1.5, in 78% from there to 2, and in a third beyond.
_TOLD_APART = 1.4


def require_rows(rows: float, rank: int) -> None:
    """Refuse data whose rows leave no residuals."""
    if rows <= rank:
        raise InputError(f"{rows:g} rows of rank {rank} leave nothing to estimate the noise from: use more rows.")


def require_openness(shares: FloatArray, sizes: FloatArray, rank: int) -> None:
    """Refuse a sketch that decides its part of the fit by itself: it leaves no residuals."""
    for index, (share, size) in enumerate(zip(shares, sizes, strict=True)):
        if share * (1 + 1 / max(rank, 1)) >= size:
            raise InputError(
                f"the stacked fit reproduces the sketch of partition {index} almost exactly, so nothing can be said of "
                "its error: use a larger sketch_size there."
            )


def require_told_apart(grams: FloatArray, sizes: FloatArray, rank: int) -> None:
    """Refuse sketches of a row or two that are few in all: the equations for the v_i are then next to singular.

    For equal noise residual sums of squares have the covariances `2 v² T`, T the matrix of these equations. So with h_i
    the leverage, `hᵀT⁻¹h` over `Σ h_i²/(m_i − h_i)` is how much more an estimate varies than from residuals of its own.
    """
    shares = np.trace(grams, axis1=1, axis2=2)
    varied = float(shares @ GramPairs(grams).solve(sizes - 2 * shares, shares))
    if varied > _TOLD_APART * float(np.sum(shares**2 / (sizes - shares))):
        raise InputError(
            f"{sizes.sum():g} sketch rows in all, {sizes.min():g} or more from each of {len(sizes)} partitions, do not "
            f"show the noise of every partition beside {rank} columns: use a larger sketch_size, more partitions, or "
            "fewer columns."
        )
