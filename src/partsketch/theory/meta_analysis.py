"""Meta-analysis of one coefficient: several estimates with their variances, pooled.

Estimates are y_i ~ N(μ_i, v_i) with μ_i = μ (fixed effect) or μ_i ~ N(μ, τ²) (random effects); the variances v_i count
as known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

FloatArray = NDArray[np.float64]

TAU_METHODS = ("REML", "DL", "PM")
#: Spreads of the truth that are looked at, in units of the largest variance and squared distance.
_GRID = np.concatenate([[0.0], np.logspace(-10, 1, 111)])


@dataclass(frozen=True)
class PooledEffect:
    """A pooled value, its standard error, p-value and interval; degrees of freedom are None for the normal law."""

    value: float
    standard_error: float
    df: int | None
    p_value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class PooledCoefficient:
    """One coefficient of several sites.

    Attributes
    ----------
    fixed, random
        Pooled with one true value for all sites, and with true values that vary.
    q, q_df, q_p_value
        Cochran's test that all sites have one true value.
    i_squared
        Share of Q above what is expected of one true value: (Q − df)/Q, at least 0.
    tau_squared, tau_method
        Variance of the true values, and by which method: "REML", "DL" (DerSimonian and Laird) or "PM" (Paule, Mandel).
    tau_squared_interval
        For that variance, by profile of Q.
    prediction
        Where the true value of another site lies, by t with k − 2 degrees of freedom; None for two sites.
    level
        Of all intervals.
    """

    fixed: PooledEffect
    random: PooledEffect
    q: float
    q_df: int
    q_p_value: float
    i_squared: float
    tau_squared: float
    tau_method: str
    tau_squared_interval: tuple[float, float]
    prediction: tuple[float, float] | None
    level: float


def pool(
    values: FloatArray,
    variances: FloatArray,
    method: str = "REML",
    level: float = 0.95,
    hartung_knapp: bool = True,
) -> PooledCoefficient:
    """Pool estimates with known variances.

    Parameters
    ----------
    values, variances
        Of at least two sites; variances above zero.
    method
        How the variance of true values is estimated: "REML", "DL" or "PM".
    level
        Coverage of the intervals.
    hartung_knapp
        Whether the random-effects interval is by Hartung and Knapp: t with k − 1 degrees of freedom and a standard
        error from the weighted spread of the sites. Otherwise it is normal.
    """
    from scipy.special import chdtrc, stdtrit

    if method not in TAU_METHODS:
        raise InputError(f"method is {method!r}: choose among {', '.join(TAU_METHODS)}.")
    values, variances = np.asarray(values, dtype=float), np.asarray(variances, dtype=float)
    if len(values) < 2 or values.shape != variances.shape or not (variances > 0).all():
        raise InputError("Pooling needs at least two estimates, each with a variance above zero.")
    # In units of the least error nothing overflows, and searches have one scale.
    unit = float(np.sqrt(variances.min()))
    y, v = (values - values[0]) / unit, variances / unit**2
    count = len(y)
    q = _q(y, v, 0.0)
    tau = _TAU[method](y, v)
    fixed = _pooled(y, v, 0.0, level, False)
    random = _pooled(y, v, tau, level, hartung_knapp)
    prediction = None
    if count > 2:
        # The error of the mean by its own law, whatever the interval is made by.
        error = 1 / np.sqrt(np.sum(1 / (v + tau)))
        reach = float(stdtrit(count - 2, 0.5 + level / 2)) * np.sqrt(tau + error**2)
        ends = (random.value - reach, random.value + reach)
        prediction = (float(values[0] + unit * ends[0]), float(values[0] + unit * ends[1]))
    low, high = (unit**2 * end for end in _tau_interval(y, v, level))
    return PooledCoefficient(
        fixed=_moved(fixed, float(values[0]), unit, count, False),
        random=_moved(random, float(values[0]), unit, count, hartung_knapp),
        q=q,
        q_df=count - 1,
        q_p_value=float(chdtrc(count - 1, q)),
        i_squared=max(0.0, 1 - (count - 1) / q) if q > 0 else 0.0,
        tau_squared=float(unit**2 * tau),
        tau_method=method,
        tau_squared_interval=(low, high),
        prediction=prediction,
        level=level,
    )


def _mean(y: FloatArray, v: FloatArray, tau: float) -> tuple[float, FloatArray]:
    weights = 1 / (v + tau)
    return float(weights @ y / weights.sum()), weights


def _q(y: FloatArray, v: FloatArray, tau: float) -> float:
    """Return Cochran's Q with true values of variance τ²."""
    mean, weights = _mean(y, v, tau)
    return float(weights @ (y - mean) ** 2)


def _pooled(y: FloatArray, v: FloatArray, tau: float, level: float, hartung_knapp: bool) -> PooledEffect:
    from scipy.special import ndtri, stdtrit

    mean, weights = _mean(y, v, tau)
    error = 1 / np.sqrt(weights.sum())
    freedom = len(y) - 1 if hartung_knapp else None
    if hartung_knapp:
        error *= np.sqrt(weights @ (y - mean) ** 2 / (len(y) - 1))
    quantile = ndtri(0.5 + level / 2) if freedom is None else stdtrit(freedom, 0.5 + level / 2)
    return PooledEffect(mean, float(error), freedom, np.nan, mean - quantile * error, mean + quantile * error)


def _moved(effect: PooledEffect, place: float, unit: float, count: int, hartung_knapp: bool) -> PooledEffect:
    """Return an effect as it is, with the p-value of its being zero."""
    from scipy.special import ndtr, stdtr

    value, error = place + unit * effect.value, unit * effect.standard_error
    ratio = abs(value) / error if error > 0 else np.inf
    p_value = 2 * stdtr(count - 1, -ratio) if hartung_knapp else 2 * ndtr(-ratio)
    ends = (float(place + unit * effect.lower), float(place + unit * effect.upper))
    return PooledEffect(float(value), float(error), effect.df, float(p_value), *ends)


def _by_moments(y: FloatArray, v: FloatArray) -> float:
    weights = 1 / v
    spare = weights.sum() - (weights**2).sum() / weights.sum()
    return max(0.0, (_q(y, v, 0.0) - (len(y) - 1)) / float(spare))


def _by_restricted_likelihood(y: FloatArray, v: FloatArray) -> float:
    def deviance(tau: float) -> float:
        _, weights = _mean(y, v, tau)
        return float(-np.log(weights).sum() + np.log(weights.sum()) + _q(y, v, tau))

    def slope(tau: float) -> float:
        mean, weights = _mean(y, v, tau)
        return float(weights.sum() - (weights**2).sum() / weights.sum() - (weights**2) @ (y - mean) ** 2)

    grid = _GRID * (float(v.max()) + float(np.ptp(y)) ** 2)
    best = int(np.argmin([deviance(tau) for tau in grid]))
    if best == 0:
        return 0.0 if slope(0.0) >= 0 else _root(slope, 0.0, float(grid[1]))
    low, high = float(grid[best - 1]), float(grid[min(best + 1, len(grid) - 1)])
    return _root(slope, low, high) if slope(low) < 0 else 0.0


def _by_q(y: FloatArray, v: FloatArray, wanted: float | None = None) -> float:
    """Return τ² at which Q is what is wanted of it, by default k − 1 (Paule and Mandel); 0 where it is below."""
    level = float(len(y) - 1) if wanted is None else wanted
    if _q(y, v, 0.0) <= level:
        return 0.0
    high = float(v.max()) + float(np.ptp(y)) ** 2
    while _q(y, v, high) > level:
        high *= 4
    return _root(lambda tau: _q(y, v, tau) - level, 0.0, high)


def _tau_interval(y: FloatArray, v: FloatArray, level: float) -> tuple[float, float]:
    from scipy.special import chdtri

    tail = (1 - level) / 2
    low, high = (float(chdtri(len(y) - 1, share)) for share in (tail, 1 - tail))
    return _by_q(y, v, low), _by_q(y, v, high)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))


_TAU: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "REML": _by_restricted_likelihood,
    "DL": _by_moments,
    "PM": _by_q,
}
