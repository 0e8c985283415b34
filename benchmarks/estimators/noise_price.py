"""What estimating the noise of partitions costs: at the least, and if nothing at all is known of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import gammainc, gammaincinv

from benchmarks.problem import FloatArray

#: States of the chain that are drawn, and those left out at its start.
_SWEEPS, _FIRST = 500, 100

#: How often pairs of partitions may change their noise before coefficients are drawn anew.
_EXCHANGES = 6


def least_price(rows: Sequence[FloatArray], noise: FloatArray, rng: np.random.Generator) -> float:
    """Return `E‖X(b̂ − b)‖²`: b knows which partition has which σ_i², its posterior mean b̂ only that these are they.

    Parameters
    ----------
    rows : sequence of arrays of shape (m_i, d + 1)
        `H_i [X_i y_i]`, in coordinates in which G is the identity.
    noise : array of shape (k,)
        σ_i², in any order.
    rng
        For the chain: coefficients given the noise are normal; given coefficients, two partitions exchange their noise
        or not (Metropolis).

    Returns
    -------
    float
        Posterior variance of b, given these sketches and a flat law of the coefficients.
    """
    sums = Sums(rows)
    values = _chain(sums, noise, lambda held, losses: _exchanged(held, losses, rng), rng)
    return float(np.sum((values - values.mean(axis=0)) ** 2) / len(values))


def price_without_numbers(rows: Sequence[FloatArray], noise: FloatArray, rng: np.random.Generator) -> float:
    """Return `‖X(b̂ − b)‖²` of a posterior mean b̂ that has to find the k numbers as well.

    Its law of the noise: logarithms are uniform between two ends, of which nothing is known. It is no bound, but shows
    what a fit pays that is told neither whose noise is which nor how large any is.
    """
    sums = Sums(rows)

    def drawn(held: FloatArray, losses: FloatArray) -> FloatArray:
        low, high = _ends(np.log(held), rng)
        least, most = losses / 2 * np.exp(-high), losses / 2 * np.exp(-low)
        # Given coefficients, half the loss over σ² is a gamma variate between these.
        below, above = gammainc(sums.sizes / 2, least), gammainc(sums.sizes / 2, most)
        uniform = np.clip(below + (above - below) * rng.uniform(size=len(held)), 1e-14, 1 - 1e-14)
        return np.asarray(losses / 2 / np.clip(gammaincinv(sums.sizes / 2, uniform), least, most))

    start = np.ones(len(rows))
    for _ in range(5):
        start = sums.losses(sums.best(start)[1]) / sums.sizes
    values = _chain(sums, start, drawn, rng)
    away = values.mean(axis=0) - sums.best(noise)[2]
    return float(away @ away)


class Sums:
    """Sums of products of each sketch, and the fits that they give."""

    def __init__(self, rows: Sequence[FloatArray]) -> None:
        self.grams: FloatArray = np.stack([part[:, :-1].T @ part[:, :-1] for part in rows])
        self.products: FloatArray = np.stack([part[:, :-1].T @ part[:, -1] for part in rows])
        self.squares = np.array([float(part[:, -1] @ part[:, -1]) for part in rows])
        self.sizes = np.array([float(len(part)) for part in rows])

    def best(self, noise: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the information, generalised least squares, and b, if this is the noise."""
        gram = np.tensordot(1 / noise, self.grams, axes=1)
        weighted: FloatArray = np.asarray(np.linalg.solve(gram, self.products.T @ (1 / noise)), dtype=np.float64)
        return gram, weighted, weighted + self.products.sum(axis=0) - self.grams.sum(axis=0) @ weighted

    def losses(self, solution: FloatArray) -> FloatArray:
        """Return the squared loss of a fit on each sketch."""
        crossed = np.einsum("a,iab,b->i", solution, self.grams, solution)
        return np.asarray(np.maximum(self.squares - 2 * self.products @ solution + crossed, 1e-300))


def _chain(
    sums: Sums, noise: FloatArray, drawn: Callable[[FloatArray, FloatArray], FloatArray], rng: np.random.Generator
) -> FloatArray:
    """Return b in the states of a chain that draws coefficients and noise in turn."""
    held, seen = noise.copy(), []
    for sweep in range(_SWEEPS):
        gram, weighted, best = sums.best(held)
        if sweep >= _FIRST:
            seen.append(best)
        solution = weighted + np.linalg.solve(np.linalg.cholesky(gram).T, rng.standard_normal(len(weighted)))
        held = drawn(held, sums.losses(solution))
    return np.array(seen)


def _exchanged(held: FloatArray, losses: FloatArray, rng: np.random.Generator) -> FloatArray:
    count = len(held)
    for _ in range(_EXCHANGES):
        order = rng.permutation(count)
        one, other = order[: count // 2], order[count // 2 : 2 * (count // 2)]
        gain = (losses[one] - losses[other]) * (1 / held[one] - 1 / held[other]) / 2
        swapped = np.log(rng.uniform(size=len(one))) < gain
        held[one], held[other] = (
            np.where(swapped, held[other], held[one]),
            np.where(swapped, held[one], held[other]),
        )
    return held


def _ends(logarithms: FloatArray, rng: np.random.Generator) -> tuple[float, float]:
    """Draw the ends of a uniform law from what it gave, its length flat on a logarithmic scale."""
    length = float(np.ptp(logarithms))
    longer = length / rng.beta(len(logarithms) - 1, 2)
    low = float(logarithms.min()) - rng.uniform() * (longer - length)
    return low, low + longer
