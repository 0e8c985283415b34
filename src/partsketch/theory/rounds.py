"""More rounds: conjugate gradients preconditioned by stacked sketches, and the law of what they leave.

In coordinates in which G is the identity the sketched Gram matrix A is Wishart, and the stacked fit is off by
`A⁻¹ XᵀSᵀSe` with Se independent of SX. Start Golub and Kahan's bidiagonalisation of SX with the vector Se: all its
entries are independent chi variates, A becomes tridiagonal and XᵀSᵀSe a multiple of the first unit vector. Everything
that conjugate gradients do from there is a function of these entries. So the excess loss after any number of rounds,
divided by what the coordinator sees (`gᵀA⁻¹g`, g the gradient that the sites sent), has a law that depends on d and M
alone: exact for one Gaussian sketch and any data, and drawn in O(d) per draw and round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray, require_count
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution
from partsketch.theory.stacked_certificate import squares_of_rows
from partsketch.theory.stacking import StackedFit

#: Draws of the law: the share beyond its quantile at 2.5% is known to about 0.35 points.
_DRAWS = 2000


@dataclass(frozen=True, eq=False)
class RoundLaw:
    """What so many rounds leave, for sketches of M rows in all.

    Attributes
    ----------
    step : float
        The median of the best length of the last step, in units of the preconditioned gradient: what is taken before
        it is known.
    ratios : array of shape (draws,)
        Excess loss after that step, divided by `gᵀA⁻¹g` before it.
    """

    step: float
    ratios: FloatArray

    def confidence(self, seen: float, floor: float, one_sided: bool) -> ConfidenceDistribution:
        """Return the distribution of the excess loss where `gᵀA⁻¹g` was seen.

        Parameters
        ----------
        seen : float
            `gᵀA⁻¹g` before the last step.
        floor : float
            What rounding adds.
        one_sided : bool
            Whether only the upper end is known, for sketches that distort less than Gaussian ones.
        """
        quantiles = np.quantile(self.ratios, PROBABILITIES) * seen
        if one_sided:
            quantiles = np.where(np.array(PROBABILITIES) < 0.5, 0.0, quantiles)
        quantiles = np.where(np.array(PROBABILITIES) < 0.5, quantiles, quantiles + floor)
        return ConfidenceDistribution("quantiles", tuple(map(float, quantiles)))

    @property
    def freedom(self) -> float:
        """Degrees of freedom of a chi-square whose logarithm varies as much as that of the ratios."""
        return 2.0 / max(float(np.var(np.log(self.ratios))), 1e-12)


def round_law(columns: int, sketch_rows: float, rounds: int, draws: int = _DRAWS) -> RoundLaw:
    """Draw the law of what is left after so many rounds (Extension of Theorem 3.1).

    Parameters
    ----------
    columns : int
        Columns d to estimate, of full rank.
    sketch_rows : float
        Rows M of all sketches together, more than d.
    rounds : int
        Answers that came, at least 1.
    draws : int
        How many; they are the same at every call.

    Returns
    -------
    RoundLaw
        Exact for one Gaussian sketch of all rows; for alike partitions with as many rows in all, approximate.
    """
    require_count("columns", columns)
    require_count("rounds", rounds)
    if not sketch_rows > columns:
        raise InputError(f"{sketch_rows:g} sketch rows do not exceed {columns} columns: use more.")
    runs = _Runs(columns, sketch_rows, draws)
    # After as many rounds as there are columns nothing but rounding is left.
    for _ in range(min(rounds, columns) - 1):
        runs.look()
        runs.move(runs.best_steps)
    runs.look()
    step = float(np.median(runs.best_steps))
    return RoundLaw(step, runs.left_after(step))


class _Runs:
    """Conjugate gradients on many tridiagonal A at once, with G the identity; arrays have one column per draw."""

    def __init__(self, columns: int, sketch_rows: float, draws: int) -> None:
        rng = np.random.default_rng((columns, round(1000 * sketch_rows), 7))
        counts = np.arange(columns)[:, None] * np.ones(draws)
        above, below = np.sqrt(rng.chisquare(columns - counts)), np.sqrt(rng.chisquare(sketch_rows - 1 - counts))
        self._diagonal = (above**2 + below**2) / sketch_rows
        self._beside = below[:-1] * above[1:] / sketch_rows
        # A = L D Lᵀ, once for all solves.
        self._lower = np.empty_like(self._beside)
        for place in range(columns - 1):
            self._lower[place] = self._beside[place] / self._diagonal[place]
            self._diagonal[place + 1] -= self._lower[place] * self._beside[place]
        first = np.zeros((columns, draws))
        first[0] = 1.0
        self._error = self._solve(first)
        self._direction = np.zeros_like(first)
        self._seen = np.zeros(draws)

    def _solve(self, sides: FloatArray) -> FloatArray:
        found = sides.copy()
        for place, factor in enumerate(self._lower):
            found[place + 1] -= factor * found[place]
        found /= self._diagonal
        for place in range(len(self._lower) - 1, -1, -1):
            found[place] -= self._lower[place] * found[place + 1]
        return found

    def look(self) -> None:
        """Find the next direction: the preconditioned gradient, conjugate to the one before."""
        turned, before = self._solve(self._error), self._seen
        self._seen = np.sum(self._error * turned, axis=0)
        grown = np.divide(self._seen, before, out=np.zeros_like(before), where=before > 0)
        self._direction = turned + grown * self._direction

    @property
    def best_steps(self) -> FloatArray:
        """The lengths of the steps that leave least."""
        return np.asarray(np.sum(self._error * self._direction, axis=0) / np.sum(self._direction**2, axis=0))

    def move(self, steps: FloatArray) -> None:
        """Take steps of these lengths."""
        self._error = self._error - steps * self._direction

    def left_after(self, step: float) -> FloatArray:
        """Return the excess losses after a step of this length, divided by what is seen before it."""
        return np.asarray(np.sum((self._error - step * self._direction) ** 2, axis=0) / self._seen)


def effective_sketch_rows(fit: StackedFit) -> float:
    """Rows of one sketch of all rows whose Gram matrix fluctuates as much as that of these stacked sketches.

    `d(d + 1)/Σ (tr K_i² + (tr K_i)²)/m_i` with `K_i` the part of partition i in G: Σm_i for alike partitions with
    sketch rows in proportion, fewer for others.

    Parameters
    ----------
    fit : StackedFit
        From `stacked_fit`.
    """
    rank = fit.pooled.rank
    squares = squares_of_rows(fit.grams, fit.sizes) + fit.shares**2
    return min(float(fit.sizes.sum()), rank * (rank + 1) / float(np.sum(squares / fit.sizes)))
