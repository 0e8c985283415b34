"""What an averaged fit may lose, as a distribution: draws of a few scalars from fixed random numbers.

Write g for the gradient of the loss at the averaged fit and ĝ for the same from the sketches; lengths are measured by
the stacked Gram matrix. Given the sketched features, `g = (I − β) μ + β ĝ + ζ` (see `excess_law`): ĝ is known, ζ is
noise that is independent of ĝ, and μ is fixed and unknown, and zero when averaging alone costs nothing.

For alike partitions β is 1: nothing is asked of μ, and g given ĝ is Gaussian. For very unlike ones β is small, and the
length of μ has the confidence distribution of a non-central chi-square. Draws of both, of the scale of the noise and of
what stands for the unknown Gram matrix give the distribution of `gᵀG⁻¹g`, the excess loss of this fit.

When μ may be zero, a draw with μ > 0 can only be too large; so the lower ends take μ = 0 as long as that is not
rejected at about their own level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch.theory.arguments import FloatArray
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution
from partsketch.theory.excess_law import LEVELS, ExcessLaw

#: Draws behind an interval: the 0.5% tail of one interval is known to about 16% of itself.
DRAWS = len(LEVELS) * 2730

_SEED = 20140


@dataclass(frozen=True)
class GramNoise:
    """How the stacked Gram matrix stands for the exact one.

    Attributes
    ----------
    freedom : float
        Degrees of freedom.
    nearness : float
        Share of the loss that fits have on their own partitions.
    """

    freedom: float
    nearness: float


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws of `‖g‖²` with μ drawn and with μ = 0, whether μ is zero, the noise, and ℓ over its estimate."""

    lengths: FloatArray
    lengths_without: FloatArray
    none: FloatArray
    noise: FloatArray
    losses: FloatArray


def excess_distributions(
    laws: Sequence[ExcessLaw], gram: GramNoise, minimal_loss: float
) -> tuple[ConfidenceDistribution, ConfidenceDistribution | None, float]:
    """Return the distribution of the excess loss, of it relative to the minimal loss, and its standard deviation."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    scales, lengths, without, none, losses = [], [], [], [], []
    for law in laws:
        found = _draws(law, DRAWS // len(laws), rng)
        # The mean of 1/noise is one, that of the noise may be infinite.
        scales.append(1 + law.own / max(float(np.mean(found.lengths / found.noise)), 1e-300))
        lengths.append(found.lengths * scales[-1])
        without.append(found.lengths_without * scales[-1])
        none.append(found.none)
        losses.append(found.losses)
    # `own` is a mean, and so the scale must have the mean 1 where the loss is near its own sketch; elsewhere the scale
    # is the confidence distribution of a known fraction, which has another mean.
    drawn = np.concatenate(lengths)
    scale = (gram.freedom - 2 * gram.nearness) / rng.chisquare(gram.freedom, len(drawn))
    drawn, drawn_without = drawn * scale, np.concatenate(without) * scale
    share, minimal = float(np.mean(np.concatenate(none))), minimal_loss * np.concatenate(losses)
    excess = _table(drawn, drawn_without, share)
    relative = _table(drawn / minimal, drawn_without / minimal, share)
    # The far tail of a scale of few degrees of freedom has no variance; beyond 1 in 2,000 it is left out.
    kept = np.minimum(drawn, excess.quantile(PROBABILITIES[-1]))
    return excess, relative, float(np.std(kept))


def _draws(law: ExcessLaw, count: int, rng: np.random.Generator) -> _Draws:
    ahead = np.sqrt(law.ahead) * rng.standard_normal(count)
    aside = max(law.rest - law.ahead, 0.0) * _mean_chi_square(law.rest_dimensions, count, rng)
    noise, losses = _noise(law, (ahead**2 + aside) / law.rest, rng)
    ahead, aside = ahead * np.sqrt(noise), aside * noise
    beside = max(law.spread - law.reach, 0.0) * noise * _mean_chi_square(law.spread_dimensions - 1, count, rng)
    left = np.maximum(law.length - beside, 0.0)
    reach = np.sqrt(left)
    fixed = np.where(left > 0, np.maximum(reach - np.sqrt(law.reach * noise) * rng.standard_normal(count), 0.0), 0.0)
    centre = law.away * fixed**2 + law.along * law.length + 2 * law.across * fixed * reach
    return _Draws(
        lengths=(np.sqrt(np.maximum(centre, 0.0)) + ahead) ** 2 + aside,
        lengths_without=(np.sqrt(law.along * law.length) + ahead) ** 2 + aside,
        none=fixed == 0,
        noise=noise,
        losses=losses,
    )


def _noise(law: ExcessLaw, rest: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw Z and ℓ over their estimates, given `‖ζ‖²` in units of its mean.

    An estimate over its mean is `λ ‖ζ‖² + (1 − λ) w`: part of it is the error itself, and w is independent of that.
    """
    across = max(law.rest - law.ahead, 0.0)
    variance = 2 * (law.ahead**2 + (across**2 / law.rest_dimensions if across > 0 else 0.0)) / law.rest**2
    shared = min(law.noise_with_rest / variance, 0.9, 0.95 * np.sqrt(law.noise / variance))
    shared_loss = min(law.loss_with_rest / variance, 0.9, 0.95 * np.sqrt(law.loss / variance))
    own = (law.noise - shared**2 * variance) / (1 - shared) ** 2
    covariance = (law.both - shared * shared_loss * variance) / ((1 - shared) * (1 - shared_loss))
    coupling = float(np.clip(covariance / own, 0.0, 1.5))
    remaining = max((law.loss - shared_loss**2 * variance) / (1 - shared_loss) ** 2 - coupling**2 * own, 0.0)
    independent = np.asarray(_mean_chi_square(2 / own, len(rest), rng))
    of_loss = independent**coupling * np.exp(np.sqrt(remaining) * rng.standard_normal(len(rest)))
    return (
        np.asarray(1 / (shared * rest + (1 - shared) * independent)),
        np.asarray(1 / (shared_loss * rest + (1 - shared_loss) * of_loss)),
    )


def _mean_chi_square(freedom: float, count: int, rng: np.random.Generator) -> FloatArray | float:
    """Chi-square variates divided by their degrees of freedom; zero where there is no dimension left."""
    return rng.chisquare(freedom, count) / freedom if freedom > 1e-6 else 0.0


def _table(drawn: FloatArray, drawn_with_none: FloatArray, none: float) -> ConfidenceDistribution:
    values = np.quantile(drawn, PROBABILITIES)
    lowest = np.quantile(drawn_with_none, PROBABILITIES)
    values = np.where(np.asarray(PROBABILITIES) < min(none / 1.5, 0.5), np.minimum(values, lowest), values)
    return ConfidenceDistribution("quantiles", tuple(float(value) for value in np.maximum.accumulate(values)))
