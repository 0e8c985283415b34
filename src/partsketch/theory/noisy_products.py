"""Least squares from sums of products with noise whose law is known.

The file of a site holds T̃ = T + E: T the sums of products of its rows, E symmetric with independent normal entries, of
standard deviation s on the diagonal and s/√2 beside it. Then for every vector γ

    Cov(Eγ) = (s²/2) (‖γ‖² I + γγᵀ),    Var(γᵀEγ) = s² ‖γ‖⁴.

With the features written as rows of A and the target as a in the coordinates of T, Aᵀ = QR, the fit solves
QᵀT̃Q φ = QᵀT̃a, θ = R⁻¹φ. Its distance from least squares without noise is (QᵀT̃Q)⁻¹Qᵀ(Eγ) with γ = a − Qφ, and what it
loses is a sum of squares of normal numbers; both laws follow, with γ and QᵀTQ as they are estimated. Where features
are correlated a few directions lose nearly all, and no single chi-square is close to that sum: it is drawn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from partsketch.theory.arguments import FloatArray
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution

#: In units of the noise of one entry times √p, where the eigenvalues of noise alone end (the edge of the semicircle).
#: What is below cannot be told from noise.
EDGE = 2.0
#: Draws behind an interval of what is lost, at the least and at the most, and numbers in all: at the most the tail of
#: 2.5% is known to 0.12 points.
_LEAST_DRAWS, _MOST_DRAWS, _NUMBERS = 1 << 12, 1 << 14, 1 << 21
_SEED = 2116


@dataclass(frozen=True, eq=False)
class NoisyFit:
    """A fit to noisy sums of products, and what is known of it.

    Attributes
    ----------
    coefficients
        Of the features.
    covariance
        Of the coefficients around those of least squares without noise.
    inverse
        Of the Gram matrix of the features: noise variance times this is the covariance around the true coefficients of
        what the rows leave open.
    excess_loss, excess_weights
        What the fit is expected to lose: the sum of the weights with which squares of normal numbers make this loss.
    minimal_loss, loss_deviation
        Loss of least squares without noise, estimated without bias to first order, and its standard deviation.
    signal
        Smallest eigenvalue of the noisy Gram matrix, in units of the noise of one entry times √p.
    repaired
        How many eigenvalues below the edge of the noise were raised to it.
    """

    coefficients: FloatArray
    covariance: FloatArray
    inverse: FloatArray
    excess_loss: float
    excess_weights: FloatArray
    minimal_loss: float
    loss_deviation: float
    signal: float
    repaired: int


def fit_noisy_products(products: FloatArray, features: FloatArray, target: FloatArray, deviation: float) -> NoisyFit:
    """Solve least squares from noisy sums of products.

    Parameters
    ----------
    products : ndarray
        T̃, symmetric, shape (q, q).
    features : ndarray
        A, one line per feature in the coordinates of T̃, shape (p, q), of rank p.
    target : ndarray
        a, shape (q,).
    deviation : float
        s, the standard deviation of the noise of an entry on the diagonal; zero for sums without noise.

    Returns
    -------
    NoisyFit
        Coefficients; the laws hold to first order while `signal` is above `EDGE`.
    """
    basis, upper = np.linalg.qr(features.T)
    count = basis.shape[1]
    gram = basis.T @ products @ basis
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    unit = deviation / math.sqrt(2) * math.sqrt(count)
    # Without noise rounding is all that there is to be told from nothing.
    floor = max(EDGE * unit, np.finfo(np.float64).eps * count * float(values[-1]))
    raised = np.maximum(values, floor)
    inverse = (vectors / raised) @ vectors.T
    solution = inverse @ (basis.T @ (products @ target))
    residual = target - basis @ solution
    inside = basis.T @ residual
    noise = deviation**2 / 2 * (float(residual @ residual) * np.eye(count) + np.outer(inside, inside))
    back = np.linalg.inv(upper)
    spread = inverse @ noise @ inverse
    # Those of a product of two positive definite matrices: rounding alone could make one negative.
    weights = np.maximum(np.linalg.eigvals(inverse @ noise).real, 0.0)
    expected = float(weights.sum())
    return NoisyFit(
        coefficients=back @ solution,
        covariance=back @ spread @ back.T,
        inverse=back @ inverse @ back.T,
        excess_loss=expected,
        excess_weights=weights,
        minimal_loss=float(residual @ products @ residual) + expected,
        loss_deviation=deviation * float(residual @ residual),
        signal=float(values[0]) / unit if unit > 0 else math.inf,
        repaired=int(np.sum(values < floor)),
    )


def excess_distribution(weights: FloatArray, below: float = math.inf) -> ConfidenceDistribution:
    """Return the law of a weighted sum of squares of normal numbers, from fixed draws.

    Parameters
    ----------
    weights : ndarray
        At least zero.
    below : float
        Degrees of freedom of a mean square that the sum is divided by; infinite where it is divided by nothing.

    Returns
    -------
    ConfidenceDistribution
        By its quantiles.
    """
    values = _squares(len(weights)) @ weights
    if math.isfinite(below):
        values /= np.random.default_rng(_SEED + 1).chisquare(below, len(values)) / below
    values.sort()
    places = np.array(PROBABILITIES) * (len(values) - 1)
    quantiles = np.interp(places, np.arange(len(values)), values)
    return ConfidenceDistribution("quantiles", tuple(float(value) for value in quantiles))


@lru_cache(maxsize=4)
def _squares(count: int) -> FloatArray:
    draws = max(_LEAST_DRAWS, min(_MOST_DRAWS, _NUMBERS // max(count, 1)))
    return np.asarray(np.random.default_rng(_SEED).normal(size=(draws, count)) ** 2)
