"""The restricted wild cluster bootstrap, from the scores of the partitions alone.

Under the restriction that a coefficient is r, residuals of whole partitions are multiplied by random weights v_g. In
coordinates γ in which the Gram matrix is the identity, with β_j = a·γ, H_g = W_gᵀW_g and d = β̂_j − r, restricted scores
are s_g + d u_g with u_g = H_g a / a·a, a draw moves β_j by Σ v_g a·(s_g + d u_g), and the scores of the draw are
v_g (s_g + d u_g) − H_g Σ_h v_h (s_h + d u_h). All of it is linear in d, so that one set of draws gives p-values for
every r, and by inversion intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.free_memory import available_memory
from partsketch.common.units import bytes_text
from partsketch.model.kept_intervals import LEVELS
from partsketch.model.wild_inference import WildInference
from partsketch.sketches.random import derive_key, random_words

FloatArray = NDArray[np.float64]

_WEIGHTS = {
    "webb": np.array([-np.sqrt(1.5), -1.0, -np.sqrt(0.5), np.sqrt(0.5), 1.0, np.sqrt(1.5)]),
    "rademacher": np.array([-1.0, 1.0]),
}

#: Numbers of draws times partitions that are worked on at once.
_AT_ONCE = 2**20

#: Arrays of draws times partitions at once while weights are drawn.
_COPIES = 5

#: Statistics that differ by less are the same but for rounding, as those of opposite signs of all partitions are.
_TIE = 1e-10

#: How many standard errors away an end of an interval is looked for.
_FARTHEST = 1e4


#: Fewer different draws than these give p-values in steps that are seen.
_FEW_DRAWS = 100


@dataclass(frozen=True)
class Bootstrap:
    """What is asked of a wild bootstrap: number of draws, kind of weights, seed."""

    draws: int = 9999
    weights: str = "webb"
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.draws, int | np.integer) or self.draws < 99:
            raise InputError(f"draws is {self.draws!r}: give a whole number, at least 99.")
        if self.weights not in _WEIGHTS:
            raise InputError(f"weights is {self.weights!r}: choose 'webb' or 'rademacher'.")
        if not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 2**64:
            raise InputError(f"random_state is {self.seed!r}: give a whole number from 0 to 2⁶⁴ − 1.")

    def too_coarse(self, count: int) -> list[str]:
        """Return what is to be said where so few partitions have few different draws."""
        # Draws with all signs turned have the same statistic.
        different = len(_WEIGHTS[self.weights]) ** min(count, 10) // 2
        if different >= _FEW_DRAWS:
            return []
        finer = "ask for Webb weights, or CRV3" if self.weights == "rademacher" else "ask for CRV3"
        return [
            f"The wild bootstrap of {count} partitions has {different} different draws with {self.weights} weights: a "
            f"p-value of 0 says no more than that it is below {1 / different:.2g}, and intervals are as coarse; "
            f"{finer}, or summarise with more partitions."
        ]

    def values(self, count: int) -> FloatArray:
        """Return weights of all draws, shape (draws, partitions); every sign vector once where that is not more."""
        choices = _WEIGHTS[self.weights]
        if self.weights == "rademacher" and 2.0**count <= self.draws:
            return np.array(list(product((1.0, -1.0), repeat=count)))
        needed = _COPIES * 8 * self.draws * count
        if needed > available_memory():
            raise InputError(
                f"{self.draws:,} draws for {count:,} partitions take {bytes_text(needed)}, which are not free: ask for "
                "fewer draws."
            )
        words = random_words(derive_key(self.seed, "wild"), 0, np.arange(self.draws * count, dtype=np.int64))
        numbers = ((words >> np.uint64(32)) * np.uint64(len(choices))) >> np.uint64(32)
        return choices[numbers.astype(np.intp)].reshape(self.draws, count)


class _Draws(NamedTuple):
    """Movement n₀ + d n₁ of a coefficient in each draw, and its variance q₀ + 2 d q₁ + d² q₂, before the scale."""

    n0: FloatArray
    n1: FloatArray
    q0: FloatArray
    q1: FloatArray
    q2: FloatArray
    variance: float

    def p_value(self, away: float) -> float:
        """Return the share of draws that move at least as far as d, in their standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn = (self.n0 + away * self.n1) ** 2 / (self.q0 + away * (2 * self.q1 + away * self.q2))
        return float(np.mean(drawn > away**2 / self.variance * (1 + _TIE)))


def wild_bootstrap(
    basis: FloatArray,
    scores: FloatArray,
    directions: FloatArray,
    coefficients: FloatArray,
    scale: float,
    names: Sequence[str],
    asked: Bootstrap,
) -> WildInference:
    """Return p-values of every coefficient being zero, and intervals.

    Parameters
    ----------
    basis, scores
        W and Wᵀr of every partition, as `Scores` has them.
    directions
        a for every coefficient, shape (columns, rank).
    coefficients
        The estimates.
    scale
        What sums of squared scores are multiplied by in a variance.
    names
        Of the coefficients.
    """
    weights = asked.values(len(basis))
    p_values = np.empty(len(coefficients))
    intervals = np.empty((len(LEVELS), len(coefficients), 2))
    for j, (direction, estimate) in enumerate(zip(directions, coefficients, strict=True)):
        if not direction.any():
            raise InputError(
                f"Column {names[j]!r} adds nothing to the others, and has no wild bootstrap: leave it out."
            )
        draws = _drawn(basis, scores, direction, weights)
        if not draws.variance > 0:
            raise InputError(
                f"The coefficient of {names[j]!r} fits every partition exactly, and has no wild bootstrap: ask for "
                "vcov='CRV1'."
            )
        p_values[j] = draws.p_value(float(estimate))
        error = float(np.sqrt(scale * draws.variance))
        for place, level in enumerate(LEVELS):
            # d = β̂ − r: an upper end r has a negative d.
            intervals[place, j] = [estimate - _end(draws, error, 1 - level, side) for side in (1.0, -1.0)]
    unbounded = ~np.isfinite(intervals)
    finite = np.where(unbounded, coefficients[:, None], intervals)
    return WildInference(
        p_values, LEVELS, finite, unbounded.astype(np.float64), len(weights), asked.weights, int(asked.seed)
    )


def _drawn(basis: FloatArray, scores: FloatArray, direction: FloatArray, weights: FloatArray) -> _Draws:
    length = float(direction @ direction)
    pulled = np.einsum("gij,gi->gj", basis, basis @ direction)  # H_g a
    slopes = pulled / length
    of_scores, of_slopes = scores @ direction, slopes @ direction
    parts = []
    rows = max(1, _AT_ONCE // len(scores))
    for start in range(0, len(weights), rows):
        here = weights[start : start + rows]
        first = here * of_scores - (here @ scores) @ pulled.T
        second = here * of_slopes - (here @ slopes) @ pulled.T
        sums = [np.einsum("bg,bg->b", *pair) for pair in ((first, first), (first, second), (second, second))]
        parts.append([here @ of_scores, here @ of_slopes, *sums])
    n0, n1, q0, q1, q2 = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Draws(n0, n1, q0, q1, q2, float(of_scores @ of_scores))


def _end(draws: _Draws, error: float, chance: float, side: float) -> float:
    """Return the d of this side at which the p-value falls below a chance; infinity if it never does."""
    inside, outside = 0.0, error
    while draws.p_value(side * outside) >= chance:
        inside, outside = outside, 2 * outside
        if outside > _FARTHEST * error:
            return side * np.inf
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        if draws.p_value(side * middle) >= chance:
            inside = middle
        else:
            outside = middle
    return side * 0.5 * (inside + outside)
