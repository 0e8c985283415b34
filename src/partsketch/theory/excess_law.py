"""Joint law of what an averaged fit loses and of what the sketches show of it, given the sketched features.

In coordinates in which the stacked Gram matrix is the identity, let B_i be the Gram matrix of sketch i, P_i its inverse
and s_i the gradient of its residuals, which varies by `v_i B_i`, `v_i = ℓ_i/m_i`, independently of the residuals that
v_i is estimated from. The stacked fit is off by `δ = Σ s_i + η`, η what unlike coefficients add, of covariance E; the
fit by `g = μ + Σ H_i s_i + (1 − s) η`, `H_i = s w_i P_i + (1 − s) I`, s = 1 for an average. So `ĝ = g − δ` is known,
and g and ĝ are jointly Gaussian around μ, what averaging costs by itself, with

    V = Σ v_i H_iB_iH_iᵀ,    C = Σ v_i H_iB_i(H_i − I)ᵀ,    Q = Σ v_i (H_i − I)B_i(H_i − I)ᵀ + E

for the variance of g, its covariance with ĝ and the variance of ĝ (for s = 1). Weights that were made from the same
sketches depend on B_i and on the residuals alone, so all this holds given the weights.

What is not known of v_i and E is drawn: a few scenarios of how noise is shared between partitions, drawn towards equal
noise as far as the estimates do not tell it apart, and of the amount of E, which the error of the stacked fit shows
as far as it is more than the residuals explain. Rows have noise too, so coefficients of p_i rows differ at least by
what it gives them: E and μ are not taken to be less than that. (With weights by inverse variance μ is not: it is then
most of what is lost, and hidden by the error of the stacked fit, so a lower end must allow for none.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.special import digamma, ndtri, polygamma
from partsketch.theory.arguments import FloatArray
from partsketch.theory.pooled_scatter import PooledScatter
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.turned_grams import parts_of
from partsketch.theory.weights import SketchWeights

_SEED = 20141
#: Scenarios, and the most numbers that their matrices may have together.
_SCENARIOS, _LARGEST = 16, 4_000_000
BEYOND = (
    "a sketch is so nearly dependent in directions that others decide that the error cannot be reckoned: use "
    "method='stack', or leave columns out."
)


@dataclass(frozen=True, eq=False)
class ExcessLaw:
    """What the draws of an excess loss are made from; variances are in units of loss.

    Attributes
    ----------
    distance : array of shape (r,)
        ĝ.
    fit, crossed, spread : arrays of shape (scenarios, r, r)
        V, C and Q.
    freedom : float
        Degrees of freedom behind the estimated size of the noise of the fit.
    loss_variance, loss_coupling : float
        Relative variance of the estimate of the minimal loss, and its regression on the error of the noise's size.
    own : float
        What the squared length lacks in the mean where sketches underestimate their own Gram matrix.
    told : array of shape (2, r, r)
        K: given ĝ, `own` is larger by `ĝᵀS⁻¹KS⁻¹ĝ − tr S⁻¹K`, S the variance of ĝ; and so is the relative error of the
        estimated minimal loss, with the second matrix.
    equal_tails : bool
        False where the lower end may make up for what the upper end covers too often.
    """

    distance: FloatArray
    fit: FloatArray
    crossed: FloatArray
    spread: FloatArray
    freedom: float
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
    numbers = (law.freedom, law.loss_variance, law.loss_coupling, law.own, law.told)
    if not all(np.isfinite(value).all() for value in (law.fit, law.crossed, law.spread, *numbers)):
        raise InputError(BEYOND)
    return law


def scenario_count(rank: int) -> int:
    """Return how many scenarios are drawn: fewer where their matrices would be large."""
    return int(np.clip(_LARGEST // rank**2, 4, _SCENARIOS))


def _law(moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, fit: FitInSketches) -> ExcessLaw:
    rank = len(fit.distance)
    rng = np.random.Generator(np.random.PCG64(_SEED))
    estimates = _variances(moments, weights)
    traces = np.concatenate([_traces(fit, weights, scatter, some) for some in parts_of(len(estimates))])
    parts = traces * estimates
    total = float(parts.sum())
    free = moments.sizes - moments.ranks
    freedom = _freedom(parts / total, free)
    # Noise is alike per row, not per sketch row.
    rows = np.maximum(moments.row_counts - moments.ranks, 1.0) / moments.sizes
    variances = shared_noise(estimates / rows, free, scenario_count(rank), rng) * rows
    variances *= (total / (variances @ traces))[:, None]
    spread, crossed, of_fit = _products(fit, weights, scatter, variances)
    amounts = unlike_scatter(moments, scatter, len(variances), rng)
    least, costs = error_of_rows(moments, weights, scatter, fit, variances)
    found, needed = (np.trace(some, axis1=1, axis2=2) for some in (amounts, least))
    unlike = amounts + np.maximum(1 - found / np.maximum(needed, 1e-300), 0.0)[:, None, None] * least
    own = costs[:, None, None] * np.eye(rank)
    spread += fit.share**2 * unlike + own
    crossed += own - fit.share * (1 - fit.share) * unlike
    of_fit += own + (1 - fit.share) ** 2 * unlike
    if not np.isfinite(spread).all():
        raise InputError(BEYOND)
    middle = variances.mean(axis=0)
    # What the stacked fit leaves of a partition beyond its own residuals is a part of the estimated minimal loss.
    # With weights by variance ĝ is the noise of other partitions than those whose noise is drawn: it tells nothing.
    of_loss = (not weights.estimated) * middle * (moments.ranks - scatter.leverages) / scatter.minimal_loss
    parts_told = np.stack([fit.own, of_loss])
    told = sum(told_by_distance(fit, weights, scatter, middle, parts_told, some) for some in parts_of(len(middle)))
    loss_variance, shared = _loss_errors(moments, scatter, parts / total)
    return ExcessLaw(
        distance=fit.distance,
        fit=of_fit,
        crossed=crossed,
        spread=spread,
        freedom=freedom,
        loss_variance=loss_variance,
        loss_coupling=min(shared * freedom / 2, 1.5),
        own=float(fit.own.sum()),
        told=np.asarray(told),
        equal_tails=weights.estimated,
    )


def _variances(moments: SketchMoments, weights: SketchWeights) -> FloatArray:
    """Estimate v_i; where a small estimate gave a fit its large weight it is too small, by a known factor."""
    found = moments.losses * moments.noise_factors * moments.inverse_scales
    if weights.estimated:
        found = found * weights.squared_loss_products / (moments.losses * weights.values**2)
    return np.asarray(found)


def _traces(fit: FitInSketches, weights: SketchWeights, scatter: PooledScatter, some: slice) -> FloatArray:
    """Return the traces of `H_iB_iH_iᵀ`."""
    factors = fit.factors(weights, some)
    return np.asarray(np.sum((factors @ scatter.grams[some]) * factors, axis=(1, 2)))


def _freedom(parts: FloatArray, free: FloatArray) -> float:
    """Degrees of freedom of a sum of estimates, of which each is such a part of it (Satterthwaite).

    The square of an estimate with f degrees of freedom is too large by 1 + 2/f, but so is that of their sum.
    """
    rates = 2 / free
    variance = float(np.sum(parts**2 * rates / (1 + rates)) * (1 + np.sum(parts**2 * rates)))
    return max(2 / max(variance, 1e-12), float(free.min()))


def shared_noise(estimates: FloatArray, free: FloatArray, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw v_i, but for their sum: normal logarithms, drawn towards their mean as far as chance explains them."""
    errors = polygamma(1, free / 2)
    some = estimates > 0
    logs = np.log(np.where(some, estimates, 1.0)) - (digamma(free / 2) - np.log(free / 2))
    between = max(float(np.var(logs[some], ddof=1) - errors[some].mean()), 0.0) if some.sum() > 1 else 0.0
    kept, rates = between / (between + errors), some / (between + errors)
    centre = float(rates @ logs / rates.sum())
    drawn = centre + kept * (logs - centre) + np.sqrt(kept * errors) * rng.standard_normal((count, len(logs)))
    return np.where(some, np.exp(drawn), 0.0)


def _products(
    fit: FitInSketches, weights: SketchWeights, scatter: PooledScatter, variances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sums over partitions in Q, C and V."""
    shape = (len(variances), *scatter.grams.shape[1:])
    sums = [np.zeros(shape) for _ in range(3)]
    for some in parts_of(variances.shape[1]):
        grams, factors = scatter.grams[some], fit.factors(weights, some)
        mixed = factors @ grams
        squared = mixed @ np.swapaxes(factors, 1, 2)
        crossed = squared - mixed
        terms = (crossed - np.swapaxes(mixed, 1, 2) + grams, crossed, squared)
        for number, term in enumerate(terms):
            sums[number] += np.tensordot(variances[:, some], term, axes=1)
    return sums[0], sums[1], sums[2]


def unlike_scatter(moments: SketchMoments, scatter: PooledScatter, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw E: the traces of the error of the stacked fit by both estimates of v_i differ by tr E and by noise.

    The noise has variance `Σ 2 (v_i t_i)² (r_i − t_i)/((m_i − t_i)(m_i − r_i))`.
    """
    own = moments.losses * moments.noise_factors * moments.inverse_scales
    free, freedom = moments.sizes - moments.ranks, moments.sizes - scatter.leverages
    unlike = scatter.scatter.sum(axis=0) - np.tensordot(own, scatter.grams, axes=1)
    if not np.isfinite(unlike).all():
        raise InputError(BEYOND)
    squares = 2 * (scatter.leverages * own) ** 2 / (1 + 2 / free)
    doubt = float(np.sum(squares * np.maximum(moments.ranks - scatter.leverages, 0.0) / freedom / free))
    values, turns = np.linalg.eigh((unlike + unlike.T) / 2)
    values = np.maximum(values, 0.0)
    shape = (turns * (values / max(float(values.sum()), 1e-300))) @ turns.T
    levels = rng.permutation(ndtri((np.arange(count) + 0.5) / count))
    amounts = np.maximum(float(np.trace(unlike)) + levels * math.sqrt(doubt), 0.0)
    return np.asarray(amounts[:, None, None] * shape)


def error_of_rows(
    moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, fit: FitInSketches, variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return E and the variance of μ per direction that the noise of the rows gives to shared coefficients.

    Coefficients of p rows then differ by `P_it_i`, t_i of covariance `v_i B_i m_i/(p_i − r_i)`. One of each for every
    row of `variances`.
    """
    noise = variances * moments.sizes / np.maximum(moments.row_counts - moments.ranks, 1.0)
    grams, ranks, leverages = scatter.grams, moments.ranks, scatter.leverages
    together = np.tensordot(noise, grams, axes=1)
    energies = noise * (ranks - 2 * leverages) + np.tensordot(together, grams, axes=((1, 2), (1, 2)))
    unlike = np.tensordot((energies + noise) / moments.sizes, grams, axes=1)
    rank = len(fit.distance)
    for some in parts_of(len(grams)):
        divided = grams[some] / moments.sizes[some, None, None]
        unlike -= np.tensordot(2 * noise[:, some], divided @ grams[some], axes=1)
        # Σ B_iTB_i/m_i as one product of matrices below one another.
        for found, one in zip(unlike, together, strict=True):
            found += (one @ grams[some]).reshape(-1, rank).T @ divided.reshape(-1, rank)
    if weights.estimated:
        return unlike, np.zeros(len(noise))
    inverse_traces = moments.inverse_scales * np.trace(fit.inverses, axis1=1, axis2=2)
    costs = weights.values**2 * inverse_traces - 2 * weights.values * ranks + leverages
    return unlike, fit.share**2 * np.maximum(noise @ costs, 0.0) / rank


def told_by_distance(
    fit: FitInSketches,
    weights: SketchWeights,
    scatter: PooledScatter,
    variances: FloatArray,
    parts: FloatArray,
    some: slice,
) -> FloatArray:
    """Return what ĝ tells of sums of `parts_i s_iᵀP_is_i/E[s_iᵀP_is_i]`, for some partitions.

    The mean of `s_iᵀP_is_i` given ĝ is `tr P_i Var(s_i) + ĝᵀS⁻¹C_iᵀP_iC_iS⁻¹ĝ − tr S⁻¹C_iᵀP_iC_i`, with C_i the
    covariance of s_i and ĝ.
    """
    grams, noise, inverses = scatter.grams[some], variances[some], fit.inverses[some]
    crossed = noise[:, None, None] * (grams @ np.swapaxes(fit.factors(weights, some), 1, 2) - grams)
    squared = np.swapaxes(crossed, 1, 2) @ inverses @ crossed
    mean = noise * np.einsum("kab,kba->k", inverses, grams)
    shares = np.where(mean > 0, parts[:, some] / np.where(mean > 0, mean, 1.0), 0.0)
    return np.tensordot(shares, squared, axes=1)


def _loss_errors(moments: SketchMoments, scatter: PooledScatter, parts: FloatArray) -> tuple[float, float]:
    """Return the relative variance of the estimated minimal loss, and its covariance with the noise of the fit."""
    rates = 2 / (moments.sizes - scatter.leverages)
    shares = scatter.losses / float(scatter.losses.sum())
    variance = float(np.sum(shares**2 * rates / (1 + rates)) * (1 + np.sum(shares**2 * rates)))
    return variance, float(np.sum(np.abs(parts * shares) * rates / (1 + rates)))
