"""What an averaged fit may lose, as a distribution: draws of a few scalars from fixed random numbers.

Write g for the gradient of the loss at the averaged fit and ĝ for the same from the sketches; lengths are measured by
the stacked Gram matrix. Given the sketched features, g is μ plus the random part of the fit, and ĝ is g less the error
of the stacked fit; μ is fixed and unknown, and zero when averaging alone costs nothing. Per dimension the variances are
γ for the random part, c for the error, and a their covariance, so that ĝ varies by `q = γ + c − 2a` around μ, and

    g = (1 − β) μ + β ĝ + ζ,    β = (γ − a)/q,    ζ independent of ĝ with variance `z = β²c + (1 − β)²γ + 2β(1 − β)a`.

For alike partitions β is 1: nothing is asked of μ, and g given ĝ is Gaussian. For very unlike ones β is small, and the
length of μ has the confidence distribution of a non-central chi-square. Draws of both, of the scale of the noise and of
what stands for the unknown Gram matrix give the distribution of `gᵀG⁻¹g`, the excess loss of this fit.

When μ may be zero, a draw with μ > 0 can only be too large; so the lower ends take μ = 0 as long as that is not
rejected at about their own level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partsketch.theory.arguments import FloatArray
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution

#: Draws behind an interval: the 0.5% tail of one interval is known to about 16% of itself.
DRAWS = 2**13

_SEED = 20140
# Estimated variances may contradict one another where they are nearly nothing; these floors keep ratios finite.
_FLOOR = 0.02
_LARGEST_SHARE = 1.25


@dataclass(frozen=True, eq=False)
class ExcessScalars:
    """What the distribution of the excess loss is made from; `γ`, `c` and `a` per partition, in units of loss.

    Attributes
    ----------
    length : float
        `ψ = ‖ĝ‖²`.
    rank : int
        Dimensions r.
    fit, error, both : arrays of shape (k,)
        Shares of each partition in `γ`, `c` and `a`, summed over dimensions.
    difference_deviation : float
        Standard deviation of the estimate of `c − a` when the two are equal, as for alike partitions.
    fit_freedom, error_freedom : arrays of shape (k,)
        Degrees of freedom behind the noise in each share.
    own : array of shape (k,)
        What `γ` lacks because a sketch underestimates its own Gram matrix where its fit is far off.
    nearness : float
        Share of the loss that fits have on their own partitions.
    spread_dimensions, error_dimensions : float
        Effective numbers of dimensions of ĝ around μ and of the error.
    along : float
        Variance of the error along ĝ, times r/c.
    gram_freedom : float
        Degrees of freedom with which the stacked Gram matrix stands for the exact one.
    loss_shares : array of shape (k,)
        Shares of each partition in the minimal loss; they sum to one.
    """

    length: float
    rank: int
    fit: FloatArray
    error: FloatArray
    both: FloatArray
    difference_deviation: float
    fit_freedom: FloatArray
    error_freedom: FloatArray
    own: FloatArray
    nearness: float
    spread_dimensions: float
    error_dimensions: float
    along: float
    gram_freedom: float
    loss_shares: FloatArray


def excess_distributions(
    scalars: ExcessScalars, minimal_loss: float
) -> tuple[ConfidenceDistribution, ConfidenceDistribution | None, float]:
    """Return the distribution of the excess loss, of it relative to the minimal loss, and its standard deviation."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    fit, both = float(scalars.fit.sum()), float(scalars.both.sum())
    if fit <= 0 or minimal_loss <= 0:
        known = ConfidenceDistribution("point", (scalars.length,))
        return known, known.scaled(1 / minimal_loss) if minimal_loss > 0 else None, 0.0
    error = max(_error(scalars), _FLOOR * (fit + both))
    spread = max(fit + error - 2 * both, _FLOOR * (fit + error))
    share = float(np.clip((fit - both) / spread, 1 - _LARGEST_SHARE, _LARGEST_SHARE))
    rest = share**2 * error + (1 - share) ** 2 * fit + 2 * share * (1 - share) * both
    rest = max(rest, _FLOOR * min(fit, error))
    freedom, coupling, loss_variance = _noise_freedom(scalars, share, rest)
    noise = freedom / rng.chisquare(freedom, DRAWS)
    above_none, above_all, none = _lengths(scalars, share, spread * noise, rest * noise, rng)
    # The mean of 1/noise is one, that of the noise may be infinite.
    factor = 1 + float(scalars.own.sum()) / max(float(np.mean(above_all / noise)), 1e-300)
    # `own` is a mean, and so the scale must have the mean 1 where the loss is near its own sketch; elsewhere the scale
    # is the confidence distribution of a known fraction, which has another mean.
    factor *= scalars.gram_freedom - 2 * scalars.nearness
    scale = factor / rng.chisquare(scalars.gram_freedom, DRAWS)
    remaining = max(loss_variance - coupling**2 * 2 / freedom, 0.0)
    losses = minimal_loss * noise**coupling * np.exp(np.sqrt(remaining) * rng.standard_normal(DRAWS))
    excess = _table(above_all * scale, above_none * scale, none)
    relative = _table(above_all * scale / losses, above_none * scale / losses, none)
    # The far tail of a scale of few degrees of freedom has no variance; beyond 1 in 2,000 it is left out.
    kept = np.minimum(above_all * scale, excess.quantile(PROBABILITIES[-1]))
    return excess, relative, float(np.std(kept))


def _error(scalars: ExcessScalars) -> float:
    """Return `c`, drawn towards `a` as far as the two do not differ by more than their noise."""
    both = float(scalars.both.sum())
    difference = float(scalars.error.sum()) - both
    if difference == 0:
        return both
    return both + difference * max(0.0, 1 - (scalars.difference_deviation / difference) ** 2)


def _noise_freedom(scalars: ExcessScalars, share: float, rest: float) -> tuple[float, float, float]:
    """Degrees of freedom of the noise in `z`, its regression on that in ℓ̂, and the variance of log ℓ̂."""
    of_error = np.abs(share**2 * scalars.error) / rest
    of_fit = np.abs((1 - share) ** 2 * scalars.fit + 2 * share * (1 - share) * scalars.both) / rest
    error_rate, fit_rate = np.sqrt(2 / scalars.error_freedom), np.sqrt(2 / scalars.fit_freedom)
    noise = of_error * error_rate + of_fit * fit_rate
    losses = scalars.loss_shares * error_rate
    # The square of an estimate with f degrees of freedom is too large by 1 + 2/f, but that of their sum is so as well.
    variance = float(np.sum(noise**2 / (1 + fit_rate**2)) * (1 + noise @ noise))
    loss_variance = float(np.sum(losses**2 / (1 + error_rate**2)) * (1 + losses @ losses))
    variance = float(np.clip(variance, 1e-12, 2 / float(scalars.fit_freedom.min())))
    coupling = float(np.sum(noise * losses / (1 + error_rate**2)) * (1 + noise @ losses)) / variance
    return 2 / variance, min(coupling, 1.5), loss_variance


def _lengths(
    scalars: ExcessScalars, share: float, spread: FloatArray, rest: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, float]:
    """Draws of `‖g‖²` with μ = 0 and with μ drawn, and the share of draws in which μ is zero."""
    length, rank = scalars.length, scalars.rank
    across = max(rank - scalars.along, 0.05)
    along = np.sqrt(scalars.along / rank)
    beside = across / rank * spread * _mean_chi_square(scalars.spread_dimensions - 1, rng)
    left = np.maximum(length - beside, 0.0)
    reach = np.sqrt(left)
    fixed = np.where(left > 0, np.maximum(reach - along * np.sqrt(spread) * rng.standard_normal(DRAWS), 0.0), 0.0)
    centre = (1 - share) ** 2 * fixed**2 + share**2 * length + 2 * share * (1 - share) * fixed * reach
    ahead = along * np.sqrt(rest) * rng.standard_normal(DRAWS)
    aside = across / rank * rest * _mean_chi_square(scalars.error_dimensions - 1, rng)
    with_none = (abs(share) * np.sqrt(length) + ahead) ** 2 + aside
    with_all = (np.sqrt(np.maximum(centre, 0.0)) + ahead) ** 2 + aside
    return with_none, with_all, float(np.mean(fixed == 0))


def _mean_chi_square(freedom: float, rng: np.random.Generator) -> FloatArray | float:
    """Chi-square variates divided by their degrees of freedom; zero where there is no dimension left."""
    return rng.chisquare(freedom, DRAWS) / freedom if freedom > 1e-6 else 0.0


def _table(drawn: FloatArray, drawn_with_none: FloatArray, none: float) -> ConfidenceDistribution:
    values = np.quantile(drawn, PROBABILITIES)
    lowest = np.quantile(drawn_with_none, PROBABILITIES)
    values = np.where(np.asarray(PROBABILITIES) < min(none / 1.5, 0.5), np.minimum(values, lowest), values)
    return ConfidenceDistribution("quantiles", tuple(float(value) for value in np.maximum.accumulate(values)))
