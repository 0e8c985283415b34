"""Products and averages of chi-square variates, taken for one chi-square with the same moments of its logarithm.

The excess loss of a sketched fit is an estimate times a ratio of independent chi-squares. Its quantiles have no closed
form; a single F variate with the same mean and variance of the logarithm is within 1.5 points of the nominal coverage
wherever it was tried (m from r + 4 on).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from partsketch.common.special import digamma, gammaln, polygamma
from partsketch.theory.arguments import FloatArray
from partsketch.theory.confidence import ConfidenceDistribution

#: Beyond so many degrees of freedom a chi-square divided by them is one.
_MANY = 1e8

#: Points of the rule for the average of two; the integrand is smooth and vanishes at both ends.
_POINTS = 96


@lru_cache(maxsize=4096)
def log_moments(freedom: float) -> tuple[float, float]:
    """Mean and variance of `log(χ²_f/f)`; zero for infinite f."""
    if freedom >= _MANY:
        return 0.0, 0.0
    half = freedom / 2
    return float(digamma(half)) - math.log(half), float(polygamma(1, half))


@lru_cache(maxsize=4096)
def freedom_of(variance: float) -> float:
    """Degrees of freedom f of the chi-square whose logarithm has this variance, `ψ′(f/2)`."""
    if variance <= 2 / _MANY:
        return math.inf
    low, high = math.log(1e-6), math.log(_MANY)
    for _ in range(80):
        middle = (low + high) / 2
        if float(polygamma(1, math.exp(middle) / 2)) > variance:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)


def ratio_confidence(scale: float, above: float, mean: float, variance: float) -> ConfidenceDistribution:
    """Distribution of `scale · (χ²_above/above) · W`, for W independent with these moments of its logarithm.

    Parameters
    ----------
    scale : float
        What multiplies both; zero makes it a point.
    above : float
        Degrees of freedom of the chi-square.
    mean, variance : float
        Of log W.

    Returns
    -------
    ConfidenceDistribution
        An F variate with the same mean and variance of the logarithm.
    """
    if scale <= 0 or above <= 0:
        return ConfidenceDistribution("point", (0.0,))
    below = freedom_of(max(variance, 0.0))
    return ConfidenceDistribution("noncentral_f", (scale * math.exp(mean + log_moments(below)[0]), above, below, 0.0))


def log_moments_of_ratio(above: Iterable[float], below: Iterable[float]) -> tuple[float, float]:
    """Mean and variance of the logarithm of a product of `χ²_f/f`, divided by another."""
    mean, variance = 0.0, 0.0
    for sign, freedoms in ((1, above), (-1, below)):
        for freedom in freedoms:
            centre, spread = log_moments(freedom)
            mean, variance = mean + sign * centre, variance + spread
    return mean, variance


def deviation_from_estimate(
    estimate: float, above: float, in_gram: float, in_noise: float, shared: float = 0.0
) -> float:
    """Return the standard deviation of an excess loss less its estimate, both around the same mean.

    Parameters
    ----------
    estimate : float
        Of the mean.
    above, in_gram : float
        Degrees of freedom of the excess loss itself, an F variate; its variance is infinite up to four below.
    in_noise : float
        Degrees of freedom of the estimate.
    shared : float
        Covariance of both in units of the squared mean.
    """
    if in_gram <= 4:
        return math.inf
    of_loss = (1 + 2 / above) * (1 + 2 / (in_gram - 4)) - 1 if above > 0 else 0.0
    return estimate * math.sqrt(max(of_loss + 2 / (in_noise + 2) - 2 * shared, 0.0))


@lru_cache(maxsize=1024)
def mean_of_inverses(freedom: float, count: int) -> tuple[float, float]:
    """Return f and c such that the mean of `count` independent `1/(χ²_freedom/freedom)` is close to `c/(χ²_f/f)`.

    Sums are built by doubling; each sum of two is taken for one inverse chi-square with the same moments of its
    logarithm.
    """
    power = (freedom, 1.0)
    total: tuple[float, float] | None = None
    remaining = count
    while remaining:
        if remaining & 1:
            total = power if total is None else _sum_of_two(total, power)
        remaining >>= 1
        if remaining:
            power = _sum_of_two(power, power)
    assert total is not None
    return total[0], total[1] / count


def _sum_of_two(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    logarithms, weights = zip(*(_log_inverse(*one) for one in (first, second)), strict=True)
    sums = np.logaddexp(logarithms[0][:, None], logarithms[1][None, :])
    joint = weights[0][:, None] * weights[1][None, :]
    mean = float(np.sum(joint * sums))
    variance = float(np.sum(joint * (sums - mean) ** 2))
    freedom = freedom_of(variance)
    return freedom, math.exp(mean + log_moments(freedom)[0])


def _log_inverse(freedom: float, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return points and weights of `log(scale/(χ²_f/f))`, by the trapezoidal rule on the density of the logarithm."""
    centre, variance = log_moments(freedom)
    spread = math.sqrt(variance)
    # The lower tail of log χ² is like e^(tf/2): 30 of its own lengths, or 10 standard deviations, are left of it.
    points = np.linspace(centre - max(10 * spread, 60 / freedom), centre + 10 * spread, _POINTS)
    half = freedom / 2
    weights = np.exp(half * (points + math.log(half)) - half * np.exp(points) - gammaln(half))
    return math.log(scale) - points, weights / weights.sum()
