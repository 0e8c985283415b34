"""What an averaged fit loses, from the sketches alone, whatever the partitions are.

With `b = θ̄ − a_s` the distance to the stacked fit and A the stacked Gram matrix, the residuals of θ̄ on the sketches
together are `ρ_s + bᵀAb`. They are too small by what θ̄ owes to the same sketches, and so are those of the stacked fit,
ρ_s, by its overfit c. Both are known (for Gaussian sketches the first exactly); their difference is the excess loss:

    Δ̂ = bᵀAb + 2a − c + o,    a = Σ w_i ℓ_i r_i/m_i,    o = Σ w_i² ℓ_i r_i (r_i + 1)/(m_i (m_i − r_i − 1)).

Nothing is assumed of coefficients or noise, and no inverse of a single sketch enters, which is what makes the other
unbiased estimate, `Σ w_i² T̂_i ℓ̂_i/(m_i − r_i − 1) + …`, so variable when m is near r.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.linalg.helpers import shared_map
from partsketch.theory.arguments import FloatArray
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.excess_draws import GramNoise, OwnPart, excess_distributions
from partsketch.theory.excess_law import FitInSketches, excess_law
from partsketch.theory.pooled_scatter import PooledScatter, pooled_scatter
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.turned_grams import parts_of
from partsketch.theory.weights import SketchWeights, given_weights

_REASON = "unbiased over the sketches, whatever the partitions are"


def certify_partition(
    moments: SketchMoments, weights: ArrayLike | SketchWeights | None = None, share: float = 1.0
) -> CertificateEstimate:
    """Estimate the excess loss of θ̄ from one sketch of each partition (Extension of Theorem 3.3).

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank, any coefficients, any noise.
    weights : array of shape (k,) or SketchWeights, optional
        Averaging weights that sum to one; equal by default. Weights that were made from the same sketches come as
        `sketch_weights` returns them, which says how they depend on the sketches.
    share : float
        Less than one for the mixture `(1 − s) a_s + s θ̄` of the average with the stacked fit.

    Returns
    -------
    CertificateEstimate
        With distributions for intervals of the excess loss of this very fit.
    """
    chosen = weights if isinstance(weights, SketchWeights) else given_weights(moments, weights)
    pooled = pooled_scatter(moments)
    scalars = excess_scalars(moments, chosen, pooled, share)
    minimal_loss = pooled.minimal_loss
    excess = scalars.length + float(np.sum(2 * scalars.both - scalars.error + scalars.own))
    excess += _optimism(scalars, moments.sampling / moments.sizes, share) if 0 < share < 1 else 0.0
    terms = scalars.fit + scalars.own
    kind, reason = "estimated", _REASON
    if not moments.law.is_exact:
        kind, reason = "approximate", moments.law.reason
    elif chosen.estimated:
        kind, reason = "approximate", "weights were made from the same sketches, which is allowed for approximately"
    if share < 1:
        kind, reason = "approximate", "the share of the average was found from the same sketches"
    confidence, relative_confidence, deviation = _distributions(moments, chosen, pooled, scalars, share)
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=deviation,
        relative_excess_loss=excess / minimal_loss if minimal_loss > 0 else math.nan,
        minimal_loss=minimal_loss,
        divergence=float(chosen.values**2 @ moments.traces),
        noise_variance=moments.noise_variance,
        sketch_terms=terms,
        averaging_term=excess - float(terms.sum()),
        kind=kind,
        reason=reason,
        confidence=confidence,
        relative_confidence=relative_confidence,
    )


def mixture_share(moments: SketchMoments) -> float:
    """Return the share s of `Σ (p_i/n) θ_i` with which its mixture with the stacked fit loses least, by the sketches.

    The mixture loses `(1 − s)² c + s² Δ + 2 s (1 − s) a`, with c and Δ what the stack and the average lose and a what
    their errors have in common: least at `s = (c − a)/q`, q the squared distance of both fits. As long as that is no
    larger than noise makes it, its mean over the noise is taken instead: the distance itself is large just when the
    stack is far off, and a share that falls with it keeps too much of the stack.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank, any coefficients, any noise.
    """
    scatter = pooled_scatter(moments)
    scalars = excess_scalars(moments, given_weights(moments, row_shares(moments)), scatter)
    gain = float(np.sum(scalars.error - scalars.both))
    away = _noise_distance(scalars) if _is_noise(scalars) else _distance(scalars)
    return float(np.clip(gain / away, 0.0, 1.0)) if away > 0 else 0.0


def _distance(scalars: ExcessScalars) -> float:
    """Squared distance between the stack and the fit, what sketches underestimate of it included."""
    return scalars.length + float(scalars.own.sum())


def _noise_distance(scalars: ExcessScalars) -> float:
    """Return the mean of that distance if averaging costs nothing by itself."""
    return float(np.sum(scalars.fit + scalars.error - 2 * scalars.both + scalars.own))


def _is_noise(scalars: ExcessScalars) -> bool:
    """Tell whether the distance is within one and a half standard deviations of what noise makes it."""
    most = 1 + 1.5 * math.sqrt(2 / max(scalars.rank, 1))
    return 0 < _distance(scalars) <= most * _noise_distance(scalars)


def _optimism(scalars: ExcessScalars, rates: FloatArray, share: float) -> float:
    """Return what the estimate lacks because the share of the average was made from the same sketches.

    A share h/q that falls with the distance q between both fits is small just when the stack is far off: Stein's lemma
    gives `4 s h/r` for that. And h itself is an estimate, which chance makes too large where it is taken. How much it
    varies its parts show, unless they are few, for gradients sum to zero: it is at least what each sketch gives to the
    squares `‖S_ju_j‖²` that are in error and gain, `2 (error² − both²)/m_j`.
    """
    gains = scalars.error - scalars.both
    variance = len(gains) * float(np.var(gains, ddof=1)) if len(gains) > 1 else 0.0
    # Times the share, as gains are: the sum of the parts of stack and average.
    sums = (2 * share - 1) * scalars.error + scalars.both
    variance = max(variance, 2 * float(rates @ (np.maximum(gains, 0.0) * sums)))
    is_noise = _is_noise(scalars)
    away = _noise_distance(scalars) if is_noise else _distance(scalars)
    stein = 0.0 if is_noise else 4 * float(gains.sum()) / max(scalars.rank, 1)
    return max(stein + (2 * variance / away if away > 0 else 0.0), 0.0)


def row_shares(moments: SketchMoments) -> FloatArray:
    """Return the share of each partition in all rows."""
    return np.asarray(moments.row_counts / moments.row_counts.sum())


@dataclass(frozen=True, eq=False)
class ExcessScalars:
    """What the excess loss is made from: variances of the random part of the fit, and of the error of the stacked fit.

    Attributes
    ----------
    length : float
        `‖ĝ‖²`, the squared distance to the stacked fit by the sketches.
    rank : int
        Dimensions r.
    fit, error, both : arrays of shape (k,)
        Shares of each partition in the variance of the fit, in that of the stacked fit, and in their covariance, summed
        over dimensions, in units of loss.
    own : array of shape (k,)
        What `fit` lacks because a sketch underestimates its own Gram matrix where its fit is far off.
    distance : array of shape (r,)
        ĝ.
    inverses : array of shape (k, r, r)
        Inverse Gram matrices of the sketches, in coordinates in which the stacked Gram matrix is the identity.
    """

    length: float
    rank: int
    fit: FloatArray
    error: FloatArray
    both: FloatArray
    own: FloatArray
    distance: FloatArray
    inverses: FloatArray


def excess_scalars(
    moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, share: float = 1.0
) -> ExcessScalars:
    """Return what the excess loss of an average, or of its mixture with the stacked fit, is made from."""
    pooled = scatter.pooled
    # Noise of a fit per unit of loss and of its inverse Gram matrix: 1/m for a Gaussian sketch.
    rates = moments.noise_factors * moments.inverse_scales
    whitening = pooled.root @ pooled.inverse_root
    inverses, traces = np.empty_like(scatter.grams), np.empty(len(moments.sketches))

    def turn(some: slice) -> None:
        for i in range(len(inverses))[some]:
            root = pooled.root @ moments.sketches[i].inverse_root
            turned = whitening.T @ root
            inverses[i], traces[i] = turned @ turned.T, np.sum(root**2)

    shared_map(turn, parts_of(len(inverses), pooled.rank))
    fit = weights.squared_loss_products * rates * traces
    own = share**2 * (weights.squared_loss_products * moments.noise_factors * moments.traces - fit)
    both = weights.loss_products * rates * moments.ranks
    # The random part of a mixture is that of the average and that of the stack, in their shares.
    of_stack = scatter.overfit
    fit = share**2 * fit + (1 - share) ** 2 * of_stack + 2 * share * (1 - share) * both
    away = share * (whitening.T @ (pooled.root @ (weights.values @ moments.coefficients - pooled.solution)))
    return ExcessScalars(
        length=float(away @ away),
        rank=pooled.rank,
        fit=fit,
        error=of_stack,
        both=share * both + (1 - share) * of_stack,
        own=own,
        distance=away,
        inverses=inverses,
    )


def _distributions(
    moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, scalars: ExcessScalars, share: float
) -> tuple[ConfidenceDistribution, ConfidenceDistribution | None, float]:
    """Return distributions of the excess loss, absolute and relative, and its standard deviation."""
    minimal_loss = scatter.minimal_loss
    if float(scalars.fit.sum()) <= 0 or minimal_loss <= 0:
        known = ConfidenceDistribution("point", (scalars.length,))
        return known, known.scaled(1 / minimal_loss) if minimal_loss > 0 else None, 0.0
    near = share**2 * weights.squared_loss_products * moments.noise_factors * moments.inverse_scales * moments.ranks
    fit = FitInSketches(scalars.inverses, scalars.distance, share, scalars.own)
    law = excess_law(moments, weights, scatter, fit)
    return excess_distributions(law, _gram_noise(moments, scatter, scalars, near), minimal_loss)


def _gram_noise(moments: SketchMoments, scatter: PooledScatter, scalars: ExcessScalars, near: FloatArray) -> GramNoise:
    """Noise of the Gram matrix where the fit is off.

    The same rows estimate both: the estimated length has the variance
    `Σ [2 P_j² + 8 P_j κ_j + 4 κ_j² + 4 P_j ‖u_j‖²]/m_j`, with `P_j = ‖X_jb‖²` and `κ_j` the product of `X_jb` with the
    residuals; the first two terms are given to the Gram matrix. What the error ε of a fit loses on its own partition,
    `near`, is `m/χ²` times `‖S_iX_i ε‖²`, and that chi-square has m − r + 1 degrees of freedom.
    """
    rates, away, length = moments.sampling / moments.sizes, scalars.distance, scalars.length
    error = scatter.scatter.sum(axis=0)
    noise = float(np.sum(scalars.fit + scalars.error - 2 * scalars.both))
    trust = max(0.0, 1 - noise / length) if length > 0 else 0.0
    energy = np.einsum("i,kij,j->k", away, scatter.grams, away)
    total = energy + np.einsum("ij,kji->k", error, scatter.grams)
    plain = float(np.sum(2 * rates * total**2))
    crossed = -trust * float(np.sum(8 * rates * energy * (scatter.gradients @ away)))
    given = max(plain + crossed, 0.25 * plain)
    freedom = 2 * float(np.square(total.sum())) / given if given > 0 else 1e9
    nearness = min(1.0, float(near.sum() / total.sum())) if total.sum() > 0 else 0.0
    own = zip(scalars.own.tolist(), moments.sizes, moments.ranks, moments.sampling.tolist(), strict=True)
    return GramNoise(freedom, nearness, tuple(OwnPart(mean, int(m), int(r), share) for mean, m, r, share in own))
