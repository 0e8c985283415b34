"""What estimating the noise of partitions must cost: the least of all fits that treat partitions alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    grams = np.stack([part[:, :-1].T @ part[:, :-1] for part in rows])
    products = np.stack([part[:, :-1].T @ part[:, -1] for part in rows])
    squares = np.array([float(part[:, -1] @ part[:, -1]) for part in rows])
    held, count = noise.copy(), len(noise)
    seen = []
    for sweep in range(_SWEEPS):
        gram = np.tensordot(1 / held, grams, axes=1)
        weighted = np.linalg.solve(gram, products.T @ (1 / held))
        if sweep >= _FIRST:
            seen.append(weighted + products.sum(axis=0) - grams.sum(axis=0) @ weighted)
        drawn = weighted + np.linalg.solve(np.linalg.cholesky(gram).T, rng.standard_normal(len(weighted)))
        losses = squares - 2 * products @ drawn + np.einsum("a,iab,b->i", drawn, grams, drawn)
        for _ in range(_EXCHANGES):
            order = rng.permutation(count)
            one, other = order[: count // 2], order[count // 2 : 2 * (count // 2)]
            gain = (losses[one] - losses[other]) * (1 / held[one] - 1 / held[other]) / 2
            swapped = np.log(rng.uniform(size=len(one))) < gain
            held[one], held[other] = (
                np.where(swapped, held[other], held[one]),
                np.where(swapped, held[one], held[other]),
            )
    values = np.array(seen)
    return float(np.sum((values - values.mean(axis=0)) ** 2) / len(values))
