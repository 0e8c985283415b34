"""Joint law of what an averaged fit loses and of what the sketches show of it, given the sketched features.

In coordinates in which the stacked Gram matrix is the identity, let B_i be the Gram matrix of sketch i, P_i its inverse
and s_i the gradient of its residuals, which varies by `v_i B_i`, `v_i = ℓ_i/m_i`, independently of the residuals that
v_i is estimated from. The stacked fit is off by `δ = Σ s_i + η`, η what unlike coefficients add, of covariance E; the
fit by `g = μ + Σ H_i s_i + (1 − s) η`, `H_i = s w_i P_i + (1 − s) I`, s = 1 for an average. So `ĝ = g − δ` is known,
and g and ĝ are jointly Gaussian around μ, what averaging costs by itself, with

    V = Σ v_i H_iB_iH_iᵀ,    C = Σ v_i H_iB_i(H_i − I)ᵀ,    Q = Σ v_i (H_i − I)B_i(H_i − I)ᵀ + E

for the variance of g, its covariance with ĝ and the variance of ĝ (for s = 1). Weights that were made from the same
sketches depend on B_i and on the residuals alone, so all this holds given the weights.

v_i are drawn towards equal noise as far as the estimates do not tell them apart. The size of what ĝ does not tell,
`V − CQ⁻¹Cᵀ = Σ v_i N_iB_iN_iᵀ + …` with `N_i = H_i − CQ⁻¹(H_i − I)`, is as uncertain as the noise of the partitions
that it comes from: where one is noisier than all others together, ĝ tells its error, and what is left is the noise of
the others. E is what the error of the stacked fit shows beyond what the residuals explain. Rows have noise too, so
coefficients of p_i rows differ at least by what it gives them: E and μ are not taken to be less than that. (With
weights by inverse variance μ is not: it is then most of what is lost, and hidden by the error of the stacked fit, so a
lower end must allow for none.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.helpers import shared_map
from partsketch.common.special import digamma, polygamma
from partsketch.theory.arguments import FloatArray
from partsketch.theory.pooled_scatter import PooledScatter
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.turned_grams import parts_of
from partsketch.theory.unlike_coefficients import BEYOND, error_of_rows, unlike_scatter
from partsketch.theory.weights import SketchWeights

#: Smallest variance of ĝ in a direction, in units of that of the fit: a single sketch shows nothing of its own error.
_LEAST = 1e-9
#: Share of the covariance of both estimates that the estimated minimal loss is taken to have with the noise of the fit.
#: The loss also holds the gradients s_i, which are large just when ĝ is: simulated covariances are 0.4 to 0.6 of it
#: where noise differs between partitions, and 1.2 where it does not.
_SHARED = 0.5


@dataclass(frozen=True, eq=False)
class ExcessLaw:
    """What the draws of an excess loss are made from; variances are in units of loss.

    Attributes
    ----------
    distance : array of shape (r,)
        ĝ.
    fit, crossed, spread : arrays of shape (r, r)
        V, C and Q.
    freedom, seen_freedom : float
        Degrees of freedom behind the estimated size of what ĝ does not tell of the fit, and of the noise of ĝ.
    loss_variance, loss_coupling : float
        Relative variance of the estimate of the minimal loss, and its regression on the error of the noise's size.
    own : float
        What the squared length lacks in the mean where sketches underestimate their own Gram matrix.
    told : array of shape (r, r)
        K: given ĝ, `own` is larger by `ĝᵀS⁻¹KS⁻¹ĝ − tr S⁻¹K`, S the variance of ĝ.
    equal_tails : bool
        False where the lower end may make up for what the upper end covers too often.
    """

    distance: FloatArray
    fit: FloatArray
    crossed: FloatArray
    spread: FloatArray
    freedom: float
    seen_freedom: float
    loss_variance: float
    loss_coupling: float
    own: float
    told: FloatArray
    equal_tails: bool


@dataclass(frozen=True, eq=False)
class FitInSketches:
    """A fit as the sketches have it, in the coordinates of `PooledScatter`.

    Attributes
    ----------
    inverses : array of shape (k, r, r)
        P_i.
    distance : array of shape (r,)
        ĝ, from the stacked fit to this one.
    share : float
        s, one for an average, less for a mixture with the stacked fit.
    own : array of shape (k,)
        What sketches underestimate of the fit's loss on their own partitions, in the mean.
    """

    inverses: FloatArray
    distance: FloatArray
    share: float
    own: FloatArray

    def factors(self, weights: SketchWeights, some: slice) -> FloatArray:
        """Return H_i of some partitions."""
        identity = np.eye(len(self.distance))
        shares = self.share * weights.values[some, None, None]
        return np.asarray(shares * self.inverses[some] + (1 - self.share) * identity)


def excess_law(moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, fit: FitInSketches) -> ExcessLaw:
    """Return the law; refuse where doubles do not hold it."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        law = _law(moments, weights, scatter, fit)
    numbers = (law.freedom, law.seen_freedom, law.loss_variance, law.loss_coupling, law.own, law.told)
    if not all(np.isfinite(value).all() for value in (law.fit, law.crossed, law.spread, *numbers)):
        raise InputError(BEYOND)
    return law


def _law(moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, fit: FitInSketches) -> ExcessLaw:
    rank = len(fit.distance)
    estimates = _variances(moments, weights)
    parts = parts_of(len(estimates), rank)
    traces = np.concatenate(shared_map(partial(_traces, fit, weights, scatter), parts))
    free = moments.sizes - moments.ranks
    # Noise is alike per row, not per sketch row.
    rows = np.maximum(moments.row_counts - moments.ranks, 1.0) / moments.sizes
    variances = shared_noise(estimates / rows, free) * rows
    variances *= float(traces @ estimates) / float(variances @ traces)
    spread, crossed, of_fit = _products(fit, weights, scatter, variances)
    unlike = unlike_scatter(moments, scatter)
    least, cost = error_of_rows(moments, weights, scatter, fit.inverses, variances)
    found, needed = float(np.trace(unlike)), float(np.trace(least))
    unlike = unlike + max(1 - found / max(needed, 1e-300), 0.0) * least
    own = fit.share**2 * cost * np.eye(rank)
    spread += fit.share**2 * unlike + own
    crossed += own - fit.share * (1 - fit.share) * unlike
    of_fit += own + (1 - fit.share) ** 2 * unlike
    if not (np.isfinite(spread).all() and np.isfinite(crossed).all() and np.isfinite(of_fit).all()):
        raise InputError(BEYOND)
    told = sum(shared_map(partial(told_by_distance, fit, weights, scatter, variances), parts))
    tells = told_error(spread, crossed, of_fit)
    sources = shared_map(partial(_sources, fit, weights, scatter, tells), parts)
    left, seen = (estimates * np.concatenate(traces) for traces in zip(*sources, strict=True))
    freedom = _freedom(left, free)
    loss_variance, shared = _loss_errors(moments, scatter, left)
    return ExcessLaw(
        distance=fit.distance,
        fit=of_fit,
        crossed=crossed,
        spread=spread,
        freedom=freedom,
        seen_freedom=_freedom(seen, free),
        loss_variance=loss_variance,
        loss_coupling=_SHARED * min(shared * freedom / 2, 1.5),
        own=float(fit.own.sum()),
        told=np.asarray(told),
        equal_tails=weights.estimated,
    )


def directions_of(spread: FloatArray, fit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variances of ĝ in their principal directions, and these; none is taken for nothing."""
    variances, turns = np.linalg.eigh((spread + spread.T) / 2)
    return np.maximum(variances, max(_LEAST * float(np.trace(fit)) / len(fit), 1e-300)), turns


def told_error(spread: FloatArray, crossed: FloatArray, fit: FloatArray) -> FloatArray:
    """Return `CQ⁻¹`, which makes of ĝ what it tells of g."""
    variances, turns = directions_of(spread, fit)
    return np.asarray((crossed @ turns / variances) @ turns.T)


def _sources(
    fit: FitInSketches, weights: SketchWeights, scatter: PooledScatter, tells: FloatArray, some: slice
) -> tuple[FloatArray, FloatArray]:
    """Return the traces of `N_iB_iN_iᵀ` and of `(H_i − I)B_i(H_i − I)ᵀ`: where noise comes from, per unit of v_i."""
    factors = fit.factors(weights, some)
    seen = factors - np.eye(len(fit.distance))
    left = factors - tells @ seen
    return _sandwiched(left, scatter.grams[some]), _sandwiched(seen, scatter.grams[some])


def _sandwiched(factors: FloatArray, grams: FloatArray) -> FloatArray:
    return np.asarray(np.sum((factors @ grams) * factors, axis=(1, 2)))


def _variances(moments: SketchMoments, weights: SketchWeights) -> FloatArray:
    """Estimate v_i; where a small estimate gave a fit its large weight it is too small, by a known factor."""
    found = moments.losses * moments.noise_factors * moments.inverse_scales
    if weights.estimated:
        found = found * weights.squared_loss_products / (moments.losses * weights.values**2)
    return np.asarray(found)


def _traces(fit: FitInSketches, weights: SketchWeights, scatter: PooledScatter, some: slice) -> FloatArray:
    """Return the traces of `H_iB_iH_iᵀ`."""
    return _sandwiched(fit.factors(weights, some), scatter.grams[some])


def _freedom(parts: FloatArray, free: FloatArray) -> float:
    """Degrees of freedom of a sum of these estimates (Satterthwaite).

    The square of an estimate with f degrees of freedom is too large by 1 + 2/f, but so is that of their sum.
    """
    rates = 2 / free
    parts = parts / max(float(parts.sum()), 1e-300)
    variance = float(np.sum(parts**2 * rates / (1 + rates)) * (1 + np.sum(parts**2 * rates)))
    return max(2 / max(variance, 1e-12), float(free.min()))


def shared_noise(estimates: FloatArray, free: FloatArray) -> FloatArray:
    """Return v_i, but for their sum: logarithms are drawn towards their mean as far as chance explains them."""
    errors = polygamma(1, free / 2)
    some = estimates > 0
    logs = np.log(np.where(some, estimates, 1.0)) - (digamma(free / 2) - np.log(free / 2))
    between = max(float(np.var(logs[some], ddof=1) - errors[some].mean()), 0.0) if some.sum() > 1 else 0.0
    kept, rates = between / (between + errors), some / (between + errors)
    centre = float(rates @ logs / rates.sum())
    return np.where(some, np.exp(centre + kept * (logs - centre)), 0.0)


def _products(
    fit: FitInSketches, weights: SketchWeights, scatter: PooledScatter, variances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sums over partitions in Q, C and V."""

    def of_some(some: slice) -> tuple[FloatArray, ...]:
        grams, factors = scatter.grams[some], fit.factors(weights, some)
        mixed = factors @ grams
        squared = mixed @ np.swapaxes(factors, 1, 2)
        crossed = squared - mixed
        terms = (crossed - np.swapaxes(mixed, 1, 2) + grams, crossed, squared)
        return tuple(np.tensordot(variances[some], term, axes=1) for term in terms)

    found = shared_map(of_some, parts_of(len(variances), len(fit.distance)))
    spread, crossed, of_fit = (np.sum(terms, axis=0) for terms in zip(*found, strict=True))
    return spread, crossed, of_fit


def told_by_distance(
    fit: FitInSketches, weights: SketchWeights, scatter: PooledScatter, variances: FloatArray, some: slice
) -> FloatArray:
    """Return what ĝ tells of `Σ own_i s_iᵀP_is_i/E[s_iᵀP_is_i]`, for some partitions.

    The mean of `s_iᵀP_is_i` given ĝ is `tr P_i Var(s_i) + ĝᵀS⁻¹C_iᵀP_iC_iS⁻¹ĝ − tr S⁻¹C_iᵀP_iC_i`, with C_i the
    covariance of s_i and ĝ.
    """
    grams, noise, inverses = scatter.grams[some], variances[some], fit.inverses[some]
    crossed = noise[:, None, None] * (grams @ np.swapaxes(fit.factors(weights, some), 1, 2) - grams)
    squared = np.swapaxes(crossed, 1, 2) @ inverses @ crossed
    mean = noise * np.einsum("kab,kba->k", inverses, grams)
    shares = np.where(mean > 0, fit.own[some] / np.where(mean > 0, mean, 1.0), 0.0)
    return np.asarray(np.tensordot(shares, squared, axes=1))


def _loss_errors(moments: SketchMoments, scatter: PooledScatter, parts: FloatArray) -> tuple[float, float]:
    """Return the relative variance of the estimated minimal loss, and its covariance with a sum of these estimates."""
    parts = parts / max(float(parts.sum()), 1e-300)
    rates = 2 / (moments.sizes - scatter.leverages)
    shares = scatter.losses / float(scatter.losses.sum())
    variance = float(np.sum(shares**2 * rates / (1 + rates)) * (1 + np.sum(shares**2 * rates)))
    return variance, float(np.sum(np.abs(parts * shares) * rates / (1 + rates)))
