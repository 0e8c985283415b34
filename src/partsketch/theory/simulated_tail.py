"""Small p-values of the test of Welch and James, by simulation.

Given the Gram matrices of the fits, the statistic depends on nothing but normal errors and chi-squares of the noise
estimates, so its law under shared coefficients can be drawn: partitions have fits θ_i = α + G_i^(−½) z_i and noise
estimates off by the factor v_i = χ²_f/f, and the statistic is the least of Σ (θ_i − a)ᵀ G_i (θ_i − a)/v_i.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: p-values in this range are simulated: above nothing is decided, and below nothing is changed by a factor of ten.
_RANGE = (1e-7, 1e-2)
#: Draws, and those of a p-value that comes out below 0.0005: of one of 0.0001 twenty exceed the statistic.
_DRAWS, _SMALL, _MOST_DRAWS = 40_000, 0.0005, 200_000
#: Largest work of a simulation, in numbers of Gram matrices; beyond, the approximation stays.
_MOST_WORK = 4_000_000_000
_NUMBERS_AT_ONCE = 4_000_000
#: Of up to so many directions, systems of all draws are solved side by side, as many as stay in the cache.
_FEW_DIRECTIONS, _DRAWS_IN_CACHE = 12, 1024


def tail_probability(statistic: float, approximation: float, roots: Sequence[FloatArray], freedom: FloatArray) -> float:
    """Return the probability of a statistic at least as large under shared coefficients.

    Parameters
    ----------
    statistic
        Σ (θ_i − a)ᵀ Ĝ_i (θ_i − a) at its least.
    approximation
        The p-value by another law: returned where simulating would change no decision, or take too long.
    roots
        Factors R_i of the Gram matrices G_i in units of the noise, shape (rows, columns).
    freedom
        Degrees of freedom of the estimates of noise.
    """
    low, high = _RANGE
    count, width = len(roots), roots[0].shape[1]
    if not low < approximation < high or _DRAWS * (count * width**2 + width**3) > _MOST_WORK:
        return approximation
    # In coordinates in which the Gram matrix of all is the identity.
    stacked = np.vstack(roots)
    left, sizes, _ = np.linalg.svd(stacked, full_matrices=False)
    rank = int((sizes > 1e-10 * sizes[0]).sum())
    ends = np.cumsum([len(root) for root in roots])[:-1]
    parts = np.split(left[:, :rank], ends)
    grams = np.stack([part.T @ part for part in parts])
    values, vectors = np.linalg.eigh(grams)
    spread = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    seen = values > 1e-12
    rng = np.random.default_rng(20)
    above = drawn = 0
    at_once = max(1, _NUMBERS_AT_ONCE // (rank * max(rank, count)))
    most = _DRAWS
    while drawn < most:
        size = min(at_once, most - drawn)
        weights = freedom / rng.chisquare(freedom, (size, count))
        normals = rng.standard_normal((size, count, rank)) * seen
        right = np.einsum("nk,kab,nkb->na", weights, spread, normals, optimize=True)
        explained = explained_by_fits(weights, grams, right)
        squares = np.einsum("nk,nkb,nkb->n", weights, normals, normals, optimize=True)
        above += int(np.count_nonzero(squares - explained >= statistic))
        drawn += size
        if drawn == _DRAWS and above < _SMALL * _DRAWS:
            most = _MOST_DRAWS
    return max((above + 1) / (drawn + 1), min(approximation, 5 / drawn))


def explained_by_fits(weights: FloatArray, grams: FloatArray, right: FloatArray) -> FloatArray:
    """Return `rᵀ(Σ w_k G_k)⁻¹r` for every draw."""
    rank = grams.shape[1]
    if rank > _FEW_DIRECTIONS:
        pooled = np.tensordot(weights, grams, axes=1)
        return np.asarray(np.einsum("na,na->n", right, np.linalg.solve(pooled, right[:, :, None])[:, :, 0]))
    explained = np.empty(len(right))
    for begin in range(0, len(right), _DRAWS_IN_CACHE):
        some = slice(begin, begin + _DRAWS_IN_CACHE)
        # Cholesky factors of all draws at once, column by column, and the length of what they make of the right side.
        lower = np.tensordot(grams, weights[some], axes=(0, 1))
        turned = np.ascontiguousarray(right[some].T)
        for j in range(rank):
            lower[j:, j] -= np.einsum("itn,tn->in", lower[j:, :j], lower[j, :j])
            turned[j] -= np.einsum("tn,tn->n", lower[j, :j], turned[:j])
            root = np.sqrt(lower[j, j])
            lower[j:, j] /= root
            turned[j] /= root
        explained[some] = np.einsum("an,an->n", turned, turned)
    return explained
