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
from scipy.linalg import solveh_banded

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray, require_count
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution
from partsketch.theory.stacked_certificate import pairs_of_rows
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
    rng = np.random.default_rng((columns, round(1000 * sketch_rows), 7))
    # After as many rounds as there are columns nothing but rounding is left.
    rounds = min(rounds, columns)
    states = [_Draw.of(columns, sketch_rows, rng) for _ in range(draws)]
    for number in range(rounds):
        for state in states:
            state.look()
        step = float(np.median([state.best_step for state in states]))
        if number < rounds - 1:
            for state in states:
                state.move()
    return RoundLaw(step, np.array([state.left_after(step) for state in states]))


@dataclass(eq=False)
class _Draw:
    """Conjugate gradients on one tridiagonal A, with G the identity."""

    banded: FloatArray
    error: FloatArray
    direction: FloatArray
    seen: float = 0.0

    @classmethod
    def of(cls, columns: int, sketch_rows: float, rng: np.random.Generator) -> _Draw:
        above = np.sqrt(rng.chisquare(columns - np.arange(columns)))
        below = np.sqrt(rng.chisquare(sketch_rows - 1 - np.arange(columns)))
        banded = np.zeros((2, columns))
        banded[1] = (above**2 + below**2) / sketch_rows
        banded[0, 1:] = below[:-1] * above[1:] / sketch_rows
        first = np.zeros(columns)
        first[0] = 1.0
        start = solveh_banded(banded, first)
        return cls(banded, start / np.linalg.norm(start), np.zeros(columns))

    def look(self) -> None:
        """Find the next direction: the preconditioned gradient, conjugate to the one before."""
        turned = np.asarray(solveh_banded(self.banded, self.error))
        before = self.seen
        self.seen = float(self.error @ turned)
        self.direction = turned + (self.seen / before * self.direction if before > 0 else 0.0)

    @property
    def best_step(self) -> float:
        """The length of the step that leaves least."""
        return float(self.error @ self.direction) / float(self.direction @ self.direction)

    def move(self) -> None:
        """Take the best step."""
        self.error = self.error - self.best_step * self.direction

    def left_after(self, step: float) -> float:
        """Return the excess loss after a step of this length, divided by what is seen before it."""
        left = self.error - step * self.direction
        return float(left @ left) / self.seen


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
    squares = np.diagonal(pairs_of_rows(fit.grams, fit.sizes)) + fit.shares**2
    return min(float(fit.sizes.sum()), rank * (rank + 1) / float(np.sum(squares / fit.sizes)))
