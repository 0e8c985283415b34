"""Joint law of what an averaged fit loses and of what the sketches show of it, given the sketched features.

In coordinates in which the stacked Gram matrix is the identity, let B_i be the Gram matrix of sketch i, P_i its inverse
and s_i the gradient of its residuals, which varies by `v_i B_i`, `v_i = ℓ_i/m_i`. The stacked fit is off by
`δ = Σ s_i + η`, η what unlike coefficients add, of covariance E; the fit by `g = μ + Σ H_i s_i + (1 − s) η`,
`H_i = s w_i P_i + (1 − s) I`, s = 1 for an average. So `ĝ = g − δ` is known, and

    g = (I − β) μ + β ĝ + ζ,    β = Cov(g, ĝ) Q⁻¹,    Q = Var ĝ,    ζ independent of ĝ with variance Z.

β is a matrix: where noise differs between partitions ĝ tells most of g in the directions in which a noisy sketch is
short of features. Variances that are estimated from the stacked fit depend on ζ, because its residuals hold the s_i.
Those from the fits alone do not, but have fewer degrees of freedom. The difference of both shows E, as far as it is
more than noise; what it may be is taken at three levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray
from partsketch.theory.pooled_scatter import LARGEST_SYSTEM, PooledScatter
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.turned_grams import parts_of, turned_of, weighted_of
from partsketch.theory.weights import SketchWeights

#: Normal quantiles at 1/6, 1/2 and 5/6: levels of what unlike coefficients add to the error of the stacked fit.
LEVELS = (-0.9674215661017014, 0.0, 0.9674215661017014)

# Estimated variances may contradict one another where they are nearly nothing; these floors keep ratios finite.
_FLOOR = 0.02
_LEAST_VARIANCE = 0.05
_BEYOND = (
    "a sketch is so nearly dependent in directions that others decide that the error cannot be reckoned: use "
    "method='stack', or leave columns out."
)


@dataclass(frozen=True)
class ExcessLaw:
    """Numbers that the draws of one level are made from; variances are sums over directions, in units of loss.

    Attributes
    ----------
    length : float
        `ψ = ‖ĝ‖²`.
    away, across, along : float
        `‖(I − β)ĝ‖²/ψ`, `ĝᵀ(I − β)ᵀβĝ/ψ` and `‖βĝ‖²/ψ`.
    spread, spread_dimensions, reach : float
        Of ĝ around μ: trace of Q, its effective number of dimensions, variance along ĝ.
    rest, ahead, rest_dimensions : float
        Of ζ: trace of Z, variance along the centre of g, effective number of dimensions across it.
    noise, loss, both : float
        Relative variances of the estimates of Z and of the minimal loss, and their covariance.
    noise_with_rest, loss_with_rest : float
        Their covariances with `‖ζ‖²`, relative to the means.
    own : float
        What the squared length lacks where sketches underestimate their own Gram matrix, given ĝ.
    """

    length: float
    away: float
    across: float
    along: float
    spread: float
    spread_dimensions: float
    reach: float
    rest: float
    ahead: float
    rest_dimensions: float
    noise: float
    loss: float
    both: float
    noise_with_rest: float
    loss_with_rest: float
    own: float


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
    gram_variance : float
        Variance along ĝ that the noise of the Gram matrix adds.
    """

    inverses: FloatArray
    distance: FloatArray
    share: float
    own: FloatArray
    gram_variance: float


@dataclass(frozen=True, eq=False)
class _Variances:
    """v_i with their degrees of freedom, E, and how far v_i rests on the residuals of the stacked fit."""

    values: FloatArray
    freedom: FloatArray
    unlike: FloatArray
    pooled_share: float


def excess_laws(
    moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, fit: FitInSketches
) -> Iterator[ExcessLaw]:
    """Yield the law at every level of E; refuse where doubles do not hold it."""
    for level in LEVELS:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            law = _law(moments, weights, scatter, fit, _variances(moments, scatter, level))
        if not all(map(math.isfinite, vars(law).values())):
            raise InputError(_BEYOND)
        yield law


def _variances(moments: SketchMoments, scatter: PooledScatter, level: float) -> _Variances:
    """Estimate v_i from the fits alone, or from the stacked fit where it shows nothing of E.

    The traces of the error of the stacked fit by both differ by tr E and by noise of variance
    `Σ 2 (v_i t_i)² (r_i − t_i)/((m_i − t_i)(m_i − r_i))`.
    """
    own = moments.losses * moments.noise_factors * moments.inverse_scales
    pooled = scatter.losses * moments.sampling / moments.sizes
    free, freedom = moments.sizes - moments.ranks, moments.sizes - scatter.leverages
    unlike = scatter.scatter.sum(axis=0) - np.tensordot(own, scatter.grams, axes=1)
    difference = float(np.trace(unlike))
    squares = 2 * (scatter.leverages * own) ** 2 / (1 + 2 / free)
    doubt = float(np.sum(squares * np.maximum(moments.ranks - scatter.leverages, 0.0) / freedom / free))
    seen = difference > 1e-9 * float(scatter.overfit.sum())
    share = min(1.0, doubt / difference**2) if seen else 1.0
    values, turns = np.linalg.eigh((unlike + unlike.T) / 2)
    values = np.maximum(values, 0.0)
    amount = max(difference + level * math.sqrt(doubt), 0.0)
    values *= amount / float(values.sum()) if values.sum() > 0 else 0.0
    mixed = np.maximum(own + share * (pooled - own), _LEAST_VARIANCE * own)
    return _Variances(mixed, 1 / (share / freedom + (1 - share) / free), (turns * values) @ turns.T, share)


def _law(
    moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, fit: FitInSketches, found: _Variances
) -> ExcessLaw:
    grams, variances, unlike = scatter.grams, found.values, found.unlike
    identity, share = np.eye(grams.shape[1]), fit.share
    # Weights made from the same sketches have means with the losses of their own.
    losses = np.where(moments.losses > 0, moments.losses, 1.0)
    first = (share * weights.loss_products / losses)[:, None, None] * fit.inverses + (1 - share) * identity
    squared = share**2 * weights.squared_loss_products / losses - (share * weights.loss_products / losses) ** 2
    with_error = (1 - share) * unlike
    of_fit = np.tensordot(squared * variances, fit.inverses, axes=1) + (1 - share) ** 2 * unlike
    for some in parts_of(len(grams)):
        shifts = variances[some, None, None] * (first[some] @ grams[some])
        with_error = with_error + shifts.sum(axis=0)
        of_fit = of_fit + (shifts @ np.swapaxes(first[some], 1, 2)).sum(axis=0)
    of_error = np.tensordot(variances, grams, axes=1) + unlike
    crossed = of_fit - with_error
    size = float(np.trace(of_fit) + np.trace(of_error)) / len(identity)
    spread, inverse = _floored(crossed - with_error.T + of_error, _FLOOR * size)
    slope = crossed @ inverse
    least = min(float(np.trace(of_fit)), float(np.trace(of_error))) / len(identity)
    rest = _floored(of_fit - slope @ crossed.T, _FLOOR * least)[0]
    near = np.concatenate([_near(fit, grams, variances, first, inverse, some) for some in parts_of(len(grams))])
    return ExcessLaw(
        **_directions(fit, slope, spread, rest, of_error),
        **_estimates(moments, scatter, found, first, slope),
        own=float(fit.own @ near),
    )


def _floored(matrix: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Return a symmetric matrix with no eigenvalue below a floor, and its inverse."""
    if not np.isfinite(matrix).all():
        raise InputError(_BEYOND)
    values, turns = np.linalg.eigh((matrix + matrix.T) / 2)
    values = np.maximum(values, max(least, 1e-300))
    return (turns * values) @ turns.T, (turns / values) @ turns.T


def _directions(
    fit: FitInSketches, slope: FloatArray, spread: FloatArray, rest: FloatArray, of_error: FloatArray
) -> dict[str, float]:
    """Lengths and variances along ĝ and along the centre of g, and effective dimensions across."""
    distance, rank = fit.distance, len(rest)
    length = float(distance @ distance)
    scale = length if length > 0 else 1.0
    known = slope @ distance
    other = distance - known
    trace, total = float(np.trace(spread)), float(np.trace(rest))
    # As far as the distance is no longer than noise makes it, the centre is that for μ = 0.
    trust = max(0.0, 1 - trace / length) if length > 0 else 0.0
    centre = known + trust * other
    norm = float(np.linalg.norm(centre))
    centre = centre / norm if norm > 0 else np.eye(rank)[0]
    turned = rest @ centre
    ahead = float(centre @ turned)
    squares = float(np.sum(rest * rest)) - 2 * float(turned @ turned) + ahead**2
    left = max(total - ahead, 0.0)
    away = float(other @ other) / scale
    # For very unlike partitions the error of the stacked fit along ĝ is all that is not known of the length.
    unknown = float(distance @ of_error @ distance) / scale + fit.gram_variance - ahead
    certain = min(max(unknown, 0.05 * trace / rank) / max(away, 1e-6), trace)
    return {
        "length": length,
        "away": away,
        "across": float(known @ other) / scale,
        "along": float(known @ known) / scale,
        "spread": trace,
        "spread_dimensions": trace**2 / float(np.sum(spread * spread)),
        "reach": (1 - trust) * trace / rank + trust * certain,
        "rest": total,
        "ahead": ahead,
        "rest_dimensions": min(left**2 / squares, rank - 1.0) if left > 0 and squares > 0 else 0.0,
    }


def _near(
    fit: FitInSketches, grams: FloatArray, variances: FloatArray, first: FloatArray, inverse: FloatArray, some: slice
) -> FloatArray:
    """Return the mean of `s_iᵀP_is_i` given ĝ (for μ = 0), in units of its mean, for some partitions."""
    grams, variances, inverses = grams[some], variances[some], fit.inverses[some]
    crossed = variances[:, None, None] * (grams @ np.swapaxes(first[some], 1, 2) - grams)
    slopes = crossed @ inverse
    shown = slopes @ fit.distance
    mean = variances * np.einsum("kab,kba->k", inverses, grams)
    found = np.einsum("ka,kab,kb->k", shown, inverses, shown)
    found -= np.sum((inverses @ slopes) * crossed, axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(mean > 0, np.maximum(1 + found / mean, 0.0), 1.0)


def _estimates(
    moments: SketchMoments, scatter: PooledScatter, found: _Variances, first: FloatArray, slope: FloatArray
) -> dict[str, float]:
    """Relative variances of the estimated Z and minimal loss, and their covariances with each other and with `‖ζ‖²`.

    ζ is `Σ M_i s_i`, and the residuals of the stacked fit in sketch j hold `s_j − B_j Σ s_i`. Both are Gaussian, so
    their squares have the covariance `2 F_j`, `F_j = tr[(v_j M_j − K) B_j (v_j M_j − K)ᵀ]`, `K = Σ v_i M_i B_i`: zero
    if noise is the same everywhere.
    """
    grams, variances, freedom = scatter.grams, found.values, found.freedom
    error_freedom = moments.sizes - scatter.leverages
    together, own = turned_of(grams, variances, first, slope)
    unlike = float(np.sum((slope @ found.unlike) * slope))
    total = float(own.sum()) + unlike
    # The square of an estimate is larger than that of what it estimates.
    products = own * variances * freedom / (freedom + 2)
    for some in parts_of(len(grams)):
        weighted = weighted_of(grams, variances, first, slope, some)[0]
        products[some] += np.sum((together @ grams[some] - 2 * weighted) * together, axis=(1, 2))
    by_loss, by_rest = _sensitivities(moments, scatter, own / np.maximum(variances, 1e-300) * found.pooled_share)
    minimal_loss = scatter.minimal_loss
    rates, error_rates = np.sqrt(2 / freedom), np.sqrt(2 / error_freedom)
    parts = own / total + scatter.overfit / max(float(scatter.overfit.sum()), 1e-300) * unlike / total
    noise = np.abs(parts) * rates
    losses = scatter.losses / float(scatter.losses.sum()) * error_rates
    products_of_both = np.abs(parts) * error_rates * losses
    return {
        # The square of an estimate with f degrees of freedom is too large by 1 + 2/f, but so is that of their sum.
        "noise": float(
            np.clip(
                np.sum(noise**2 / (1 + rates**2)) * (1 + noise @ noise),
                1e-12,
                2 / float(np.min(moments.sizes - moments.ranks)),
            )
        ),
        "loss": float(np.sum(losses**2 / (1 + error_rates**2)) * (1 + losses @ losses)),
        "both": float(np.sum(products_of_both / (1 + error_rates**2)) * (1 + products_of_both.sum())),
        "noise_with_rest": 2 * max(float(by_rest @ products), 0.0) / total**2,
        "loss_with_rest": 2 * max(float(by_loss @ products), 0.0) / (total * minimal_loss),
    }


def _sensitivities(moments: SketchMoments, scatter: PooledScatter, parts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what a unit of the squared residuals of each sketch adds to ℓ̂, and to a sum of `parts` per v_i."""
    rates = moments.sampling / moments.sizes
    if len(rates) > LARGEST_SYSTEM:
        scale = 1 / (1 - rates * scatter.leverages)
        return scale, scale * parts * rates
    flat = scatter.grams.reshape(len(rates), -1)
    system = np.diag(1 - 2 * rates * scatter.leverages) + flat @ (flat * rates[:, None]).T
    columns = np.stack([np.ones(len(rates)), parts * rates], axis=1)
    solved = np.asarray(np.linalg.solve(system.T, columns), dtype=np.float64)
    return solved[:, 0], solved[:, 1]
