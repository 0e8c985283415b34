"""How far a certificate may be off: the variance of its estimate, itself estimated from the sketches alone.

The estimate is `f = Σ u_i T̂_i + …`, a sum over pairs of partitions of `u_i tr(A_j B_i)` with `A_j` the sketched Gram
matrix of j and `B_i` the estimated inverse Gram matrix of i, independent Wishart and inverse-Wishart matrices, and with
coefficients `u_i` that are sums of independent chi-squares. Its variance has three parts:

- of the chi-squares: `Var ℓ̂_i = 2 ℓ_i²/(m_i − r_i)`, times the squared derivative;
- of the matrices, one partition at a time (first order): `φ_i = u_i tr(H B_i) + tr(A_i C)` with `H = Σ_{j≠i} A_j`,
  `C = Σ_{j≠i} u_j B_j`, from the second moments `Var tr(AC) = (2/m) tr(CGCG)`,
  `Var tr(HB) = [2 (tr HG⁻¹)² + 2c tr(HG⁻¹HG⁻¹)]/((c+1)(c−2))` with `c = m − r − 1`, and
  `Cov(tr AC, tr HB) = −(2/m) tr(HC)` on the row space;
- of pairs (second order): `tr(δA_j δB_i)`. Putting estimates of H and C in the first-order part counts each pair twice
  in expectation, so the pair part is subtracted once.

Finite only for c > 2, that is m > r + 3, like the variance of the excess loss itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partsketch.theory.arguments import FloatArray
from partsketch.theory.sketch_moments import SketchMoments

# The pair part is a share of at most 1/k of the variance and costs k² products: beyond this k it is left in, which
# makes the standard error larger by less than one percent.
PAIRWISE_LIMIT = 64


#: Numbers of products that are held at a time.
_AT_A_TIME = 2**20


def _unbiased_inverse_wishart(square: FloatArray, trace: FloatArray, c: float) -> tuple[FloatArray, FloatArray]:
    """`tr(HgHg)` and `(tr Hg)²` without bias from the same with an estimated inverse Gram matrix B in place of g."""
    kappa = (c + 1) * (c - 2)
    # The expectations of both are combinations of both: two equations in two unknowns.
    system = (1 + (2 + c) / kappa, c / kappa, 2 * c / kappa, 1 + 2 / kappa)
    return _solved(*system, square, trace**2)


def _unbiased_wishart(square: FloatArray, trace: FloatArray, m: FloatArray) -> FloatArray:
    """`tr(CGCG)` without bias from the same with a sketched Gram matrix A in place of G."""
    return _solved(1 + 1 / m, 1 / m, 2 / m, np.ones_like(m), square, trace**2)[0]


def _solved(a: Any, b: Any, c: Any, d: Any, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return x and y of a x + b y = first, c x + d y = second, which cannot be negative."""
    determinant = a * d - b * c
    x, y = (d * first - b * second) / determinant, (a * second - c * first) / determinant
    return np.maximum(x, 0.0), np.maximum(y, 0.0)


def _overlap(first: FloatArray, second: FloatArray) -> float:
    """`(tr M)² + tr(M²)` for M the product of the projections on two row spaces, given orthonormal bases."""
    d = first.shape[0]
    if first.shape[1] == d and second.shape[1] == d:
        return float(d * d + d)
    cosines = first.T @ second
    return float(np.sum(cosines**2) ** 2 + np.sum((cosines.T @ cosines) ** 2))


def certificate_variance(moments: SketchMoments, shares: FloatArray, derivatives: FloatArray) -> float:
    """Variance, over the sketches, of the estimated excess loss given the data.

    Parameters
    ----------
    moments : SketchMoments
        Estimates from the sketches.
    shares : array of shape (k,)
        Averaging weights.
    derivatives : array of shape (k,)
        Derivative of the estimate with respect to each estimated loss ℓ̂_i.

    Returns
    -------
    float
        Infinite when some m_i ≤ r_i + 3.
    """
    freedom = moments.sizes - moments.ranks
    if np.any(freedom <= 3):
        return math.inf
    squared_losses = moments.losses**2 * freedom / (freedom + 2)
    variance = float(np.sum(derivatives**2 * 2 * squared_losses / freedom * moments.sampling))
    prices = shares**2 * (moments.losses * moments.noise_factors + moments.noise_variance)
    # E ℓ̂² exceeds ℓ² by the factor (freedom + 2)/freedom; the squared price is corrected for it.
    inflation = (shares**2 * moments.noise_factors) ** 2 * (moments.losses**2 - squared_losses)
    squared_prices = prices**2 - inflation
    return variance + max(0.0, _matrix_variance(moments, prices, squared_prices))


def _matrix_variance(moments: SketchMoments, prices: FloatArray, squared_prices: FloatArray) -> float:
    grams = [part.gram for part in moments.sketches]
    inverses = [root @ root.T for root in moments.inverse_roots]
    bases = [np.linalg.qr(root)[0] for root in moments.inverse_roots]
    total = np.sum(grams, axis=0)
    weighted = np.sum([price * inverse for price, inverse in zip(prices, inverses, strict=True)], axis=0)
    variance = 0.0
    for i, (gram, inverse, basis) in enumerate(zip(grams, inverses, bases, strict=True)):
        m, c = moments.sizes[i], moments.sizes[i] - moments.ranks[i] - 1
        others, outer = total - gram, weighted - prices[i] * inverse
        product = others @ inverse
        square, squared_trace = _unbiased_inverse_wishart(*_square_and_trace(product), c)
        own = squared_prices[i] * (2 * squared_trace + 2 * c * square) / ((c + 1) * (c - 2))
        product = outer @ gram
        cross = _unbiased_wishart(*_square_and_trace(product), m)
        mixed = float(np.sum((basis.T @ others @ basis) * (basis.T @ outer @ basis)))
        variance += float(moments.sampling[i] * (own + 2 / m * cross - 4 * prices[i] / m * mixed))
    if len(grams) <= PAIRWISE_LIMIT:
        variance -= _pair_variance(moments, prices, squared_prices, grams, inverses, bases)
    return variance


def _pair_variance(
    moments: SketchMoments,
    prices: FloatArray,
    squared_prices: FloatArray,
    grams: list[FloatArray],
    inverses: list[FloatArray],
    bases: list[FloatArray],
) -> float:
    variance = 0.0
    count, width = len(grams), len(grams[0])
    step = max(1, _AT_A_TIME // width**2)
    for begin in range(0, count, step):
        chosen = np.arange(begin, min(begin + step, count))
        stacked, sizes = np.stack([grams[j] for j in chosen]), moments.sizes[chosen]
        for i, (inverse, m, rank) in enumerate(zip(inverses, moments.sizes, moments.ranks, strict=True)):
            c = m - rank - 1
            square, trace = _square_and_trace(inverse @ stacked)
            square, squared_trace = _unbiased_inverse_wishart(_unbiased_wishart(square, trace, sizes), trace, c)
            pair = squared_prices[i] * ((2 + c) * square + c * squared_trace) / ((c + 1) * (c - 2))
            overlaps = np.array([_overlap(bases[i], bases[j]) for j in chosen])
            shared = prices[i] * prices[chosen] * overlaps / m
            of_others = np.where(chosen == i, 0.0, 2 / sizes * (pair + shared))
            variance += float(moments.sampling[i] * of_others.sum())
    return variance


def _square_and_trace(product: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return `tr(P²)` and `tr P` of one matrix or of each in a stack."""
    return np.einsum("...ij,...ji->...", product, product), np.trace(product, axis1=-2, axis2=-1)
