"""More rounds: conjugate gradients preconditioned by stacked sketches, and the law of what they leave.

In coordinates in which G is the identity the sketched Gram matrix A is Wishart, and the stacked fit is off by
`A⁻¹ XᵀSᵀSe` with Se independent of SX. Start Golub and Kahan's bidiagonalisation of SX with the vector Se: all its
entries are independent chi variates, A becomes tridiagonal and XᵀSᵀSe a multiple of the first unit vector. Everything
that conjugate gradients do from there is a function of these entries. So the excess loss after any number of rounds,
divided by what the coordinator sees (`gᵀA⁻¹g`, g the gradient that the sites sent), has a law that depends on d and M
alone: exact for one Gaussian sketch and any data, and drawn in O(d) per draw and round. So does the excess loss itself
as a part of the minimal loss, before anything was asked: `forecast_rounds`.
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


@dataclass(frozen=True)
class RoundForecast:
    """What so many rounds will leave, as a part of the minimal loss: known before anything was asked.

    Attributes
    ----------
    rounds : int
        How many; none is the stacked fit.
    median, upper : float
        Median of the relative excess loss, and what it exceeds in 2.5% of cases.
    least : float
        Median of what the best length of the last step would leave, which nobody knows before it is taken. No method
        that asks for as many gradients of all rows leaves less, whatever the sketch and the data are.
    """

    rounds: int
    median: float
    upper: float
    least: float


def least_round_loss(columns: int, sketch_rows: float, rounds: int) -> float:
    """Return `γ^(r+1)/(1 − γ^(r+1))`, γ = d/M: what the best r rounds leave (Extension of Theorem 3.1).

    Every method that asks for r gradients and knows A leaves the error `p(A⁻¹) A⁻¹(SX)ᵀSe`, p a polynomial of degree r
    with p(0) = 1, if its result does not depend on how columns are measured or mixed (docs/refine.md). Over Se that
    loses `(ℓ/M) tr p(A⁻¹)²A⁻¹`; the eigenvalues of A follow Marchenko's and Pastur's law, and with `p(1/λ) = q(λ)/λ^r`
    the least is the squared length of a monic orthogonal polynomial q of degree r for that law divided by `λ^(2r+1)`,
    one of Bernstein's and Szegő's: `γ^r/(1 − γ^(r+1))`.

    Parameters
    ----------
    columns : int
        Columns d to estimate.
    sketch_rows : float
        Rows M of all sketches together, more than d.
    rounds : int
        Number r of rounds; with none it is γ/(1 − γ), the loss of the stacked fit.

    Returns
    -------
    float
        The limit for large d and M, as a part of the minimal loss. For few columns conjugate gradients leave less,
        because they fit their polynomial to the eigenvalues and the error that are there: see `forecast_rounds`.
    """
    require_count("columns", columns)
    require_count("rounds", rounds, 0)
    _require_rows(columns, sketch_rows)
    left = (columns / sketch_rows) ** (rounds + 1)
    return left / (1 - left)


def forecast_rounds(columns: int, sketch_rows: float, rounds: int, draws: int = _DRAWS) -> tuple[RoundForecast, ...]:
    """Draw what 0, 1, 2, … rounds will leave (Extension of Theorem 3.1).

    Parameters
    ----------
    columns, sketch_rows, draws
        As in `round_law`, and as exact.
    rounds : int
        The last of them; after as many as there are columns only rounding is left.

    Returns
    -------
    tuple of RoundForecast
        One for each number of rounds up to the last, or up to `columns − 1`.
    """
    require_count("columns", columns)
    require_count("rounds", rounds, 0)
    _require_rows(columns, sketch_rows)
    runs = _Runs(columns, sketch_rows, draws)
    found = [runs.forecast(0, 0.0)]
    for number in range(1, min(rounds, columns - 1) + 1):
        runs.look()
        found.append(runs.forecast(number, float(np.median(runs.best_steps))))
        runs.move(runs.best_steps)
    return tuple(found)


def _require_rows(columns: int, sketch_rows: float) -> None:
    if not sketch_rows > columns:
        raise InputError(f"{sketch_rows:g} sketch rows do not exceed {columns} columns: use more.")


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
    _require_rows(columns, sketch_rows)
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
        # (SX)ᵀSe is this long, as a part of the minimal loss; conjugate gradients do not care.
        self._scale = above[0] ** 2 / sketch_rows * (rng.chisquare(sketch_rows, draws) / sketch_rows)

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

    def forecast(self, rounds: int, step: float) -> RoundForecast:
        """Return what is left of the minimal loss after a step of this length, the last of so many."""
        left = self._scale * np.sum((self._error - step * self._direction) ** 2, axis=0)
        best = self.best_steps if rounds else 0.0
        least = self._scale * np.sum((self._error - best * self._direction) ** 2, axis=0)
        median, upper = map(float, np.quantile(left, (0.5, 0.975)))
        return RoundForecast(rounds, median, upper, float(np.median(least)))

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
