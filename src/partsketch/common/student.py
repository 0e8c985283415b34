"""Student's t distribution without SciPy, whose functions take longer to load than a small fit takes.

A few numbers are computed here, to eleven digits, by the continued fraction of the incomplete beta function; many, or
with degrees of freedom at which the fraction is long and loses digits, by SciPy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Beyond so many values, and so many degrees of freedom, loading SciPy takes less time.
_MANY_VALUES, _MUCH_FREEDOM = 64, 1e5

_EPSILON = 2.0**-53
_TINY = 1e-300


def p_values(t_values: FloatArray, freedom: float) -> FloatArray:
    """Return two-sided p-values of t values."""
    sizes = np.abs(t_values)
    if sizes.size > _MANY_VALUES or not (1 <= freedom <= _MUCH_FREEDOM or freedom == math.inf):
        from scipy.special import stdtr

        return np.asarray(2 * stdtr(freedom, -sizes), dtype=np.float64)
    return np.array([_both_tails(float(size), freedom) for size in sizes.ravel()]).reshape(sizes.shape)


def half_width(level: float, freedom: float) -> float:
    """Return the t that a t variable does not exceed in size with this probability, between 0 and 1."""
    probability = 0.5 + level / 2
    if not 0.01 <= level <= 0.9999 or not 1 <= freedom <= _MUCH_FREEDOM:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, probability))
    # A normal quantile (Abramowitz and Stegun 26.2.23) and the first term of its expansion, then Newton's steps on the
    # logarithm of the tail, which is concave: they cannot run away.
    root = math.sqrt(-2.0 * math.log((1.0 - level) / 2))
    upper, lower = 2.515517 + 0.802853 * root + 0.010328 * root**2, 1 + 1.432788 * root + 0.189269 * root**2
    normal = root - upper / (lower + 0.001308 * root**3)
    value, wanted = normal + (normal**3 + normal) / (4 * freedom), math.log(1.0 - level)
    for _ in range(50):
        tails = _both_tails(value, freedom)
        step = (math.log(tails) - wanted) * tails / (2 * _density(value, freedom))
        value = max(value + step, value / 4)
        if abs(step) <= 4 * _EPSILON * value:
            break
    return value


def _log_ratio(half: float) -> float:
    """Return log Γ(a + ½) − log Γ(a), by its expansion where the difference would cancel."""
    if half < 25:
        return math.lgamma(half + 0.5) - math.lgamma(half)
    square = 1.0 / (half * half)
    series = (1 / 8 - square * (1 / 192 - square * (1 / 640 - square * (17 / 14336 - square * 31 / 18432)))) / half
    return 0.5 * math.log(half) - series


def _density(value: float, freedom: float) -> float:
    half = freedom / 2
    exponent = _log_ratio(half) - 0.5 * math.log(math.pi * freedom)
    return math.exp(exponent - (half + 0.5) * math.log1p(value * value / freedom))


def _both_tails(size: float, freedom: float) -> float:
    """Return the probability that a t variable exceeds a size: the incomplete beta function at ν / (ν + t²)."""
    if math.isnan(size):
        return math.nan
    if freedom == math.inf:
        return math.erfc(size / math.sqrt(2.0))
    if size == 0.0 or math.isinf(size):
        return float(size == 0.0)
    half, share = freedom / 2, size / freedom * size
    if share == 0.0:
        # A square that is no double any more.
        return 1.0
    inside, outside = 1.0 / (1.0 + share), share / (1.0 + share) if share < 1e300 else 1.0
    # xᵃ (1 − x)ᵇ / B(a, b) with b = ½; the logarithm of x without cancellation.
    log_front = -half * math.log1p(share) + 0.5 * math.log(outside) + _log_ratio(half) - 0.5 * math.log(math.pi)
    front = math.exp(log_front)
    if inside < (half + 1.0) / (half + 2.5):
        return front * _fraction(inside, half, 0.5) / half
    return 1.0 - front * _fraction(outside, 0.5, half) / 0.5


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    above, below = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or _TINY)
    value = below
    for m in range(1, 100_000):
        twice = a + 2 * m
        for term in (
            m * (b - m) * x / ((twice - 1.0) * twice),
            -(a + m) * (a + b + m) * x / (twice * (twice + 1.0)),
        ):
            below = 1.0 / (1.0 + term * below or _TINY)
            above = 1.0 + term / above or _TINY
            change = below * above
            value *= change
        if abs(change - 1.0) <= _EPSILON:
            break
    return value
