"""What the stacked fit loses, and how sure its coefficients are, for any partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch.theory.arguments import FloatArray
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.chi_squares import (
    deviation_from_estimate,
    freedom_of,
    log_moments,
    log_moments_of_ratio,
    ratio_confidence,
)
from partsketch.theory.covariance import CoefficientCovariance
from partsketch.theory.gram_pairs import GramPairs
from partsketch.theory.moments import require_full_rank
from partsketch.theory.stacking import StackedFit
from partsketch.theory.turned_grams import parts_of
from partsketch.theory.whole import nothing_lost

_UNWEIGHTED = "no exact theory covers the stacked fit; noise and coefficients of each partition are estimated apart"
_WEIGHTED = (
    "no exact theory covers the stacked fit; partitions are taken to share their coefficients, which the sketches do "
    "not contradict, and the noise of each is "
)


@dataclass(frozen=True)
class ExcessLaw:
    """An excess loss divided by its estimate: degrees of freedom above, moments of the logarithm of the rest.

    And the degrees of freedom behind the Gram matrix and the noise, and what error and estimate have in common.
    """

    above: float
    mean: float
    variance: float
    in_gram: float
    in_noise: float
    shared: float


def certify_stacked(fit: StackedFit) -> CertificateEstimate:
    """Estimate the excess loss of the stacked fit (Extension of Theorem 3.1).

    The error has covariance `A⁻¹KA⁻¹` with `K = Σ v_i A_i + c_i c_iᵀ/m_i` (see `stacking`); its product with the
    unknown G is estimated as by leaving out one sketch row at a time. For one partition it is `ℓ̂ r/(m − r − 1)`, which
    is unbiased. For several, simulated with m from d + 4 to 4d, it is within 4% in the mean for alike partitions,
    unlike coefficients, unlike noise and heavy tails, and within 10% when sizes or scales differ tenfold besides.

    A weighted fit is measured by the unweighted G, and what the noise of the rows makes of the weights is added: with
    `A_w = Σ ω_i A_i` its loss is `Σ σ_i² [ω_i² φ_i tr(G A_w⁻¹A_iA_w⁻¹) − 2 ω_i tr(A_w⁻¹A_i) + tr(G⁻¹G_i)]` over noise
    and sketches, `φ_i = (p_i + m_i + 1)/m_i`, if partitions share their coefficients; they may differ in noise.

    Parameters
    ----------
    fit : StackedFit
        From `stacked_fit`.

    Returns
    -------
    CertificateEstimate
        Marked "approximate"; exactly zero, and marked "exact", when every sketch holds all rows.
    """
    if not fit.sampling.any():
        return nothing_lost(fit.pooled.loss, fit.pooled.rank, fit.row_count, len(fit.sizes))
    loss, prices = fit.minimal_loss, _prices(fit)
    departures = fit.sampling / fit.sizes * np.trace(fit.departures, axis1=1, axis2=2)
    gaps = np.einsum("iab,ba->i", fit.gaps, fit.metric) + np.einsum("iab,ba->i", fit.followed, fit.metric)
    terms = prices * fit.variances + departures + gaps
    excess = max(float(terms.sum()), 0.0)
    law = law_of_excess(fit, prices)
    relative = excess / loss if loss > 0 else math.nan
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=deviation_from_estimate(excess, law.above, law.in_gram, law.in_noise, law.shared),
        relative_excess_loss=relative,
        minimal_loss=loss,
        divergence=float(fit.pooled.rank),
        noise_variance=loss / (fit.row_count - fit.pooled.rank),
        sketch_terms=terms,
        averaging_term=0.0,
        kind="approximate",
        reason=_reason(fit),
        confidence=ratio_confidence(excess, law.above, law.mean, law.variance),
        relative_confidence=ratio_confidence(relative, law.above, law.mean, law.variance) if loss > 0 else None,
    )


def _reason(fit: StackedFit) -> str:
    if not np.ptp(fit.weights):
        return _UNWEIGHTED
    return _WEIGHTED + ("estimated apart" if fit.measured is None else "measured on its rows")


def _prices(fit: StackedFit) -> FloatArray:
    """Return what a unit of each v_i adds to the excess loss: `tr(A⁻¹ĜA⁻¹A_i)`, a row left out of Ĝ at a time."""
    opened = 1 / fit.weights / fit.openness**2
    own = opened * fit.shares**2 / fit.counted
    prices = fit.sampling * fit.sizes / fit.counted * (GramPairs(fit.grams).times(opened) - own)
    return np.asarray(prices * _stepped(fit))


def _stepped(fit: StackedFit) -> FloatArray:
    """Return what the step towards exact least squares leaves of the loss that each partition's sketch adds."""
    before, after = (np.einsum("iab,ba->i", grams, fit.metric) for grams in (fit.grams, fit.errors))
    return np.asarray(np.divide(after, before, out=np.ones(len(before)), where=before > 0))


def law_of_excess(fit: StackedFit, prices: FloatArray) -> ExcessLaw:
    """Return the law of the excess loss divided by its estimate; `prices` are what a unit of each v_i adds to it.

    For one partition it is `(m − r)(m − r − 1)/r · χ²_r/(χ²_{m−r+1} χ²_{m−r})`, exactly. In general degrees of
    freedom are found from variances (Satterthwaite): of the error given A, of A, and of the estimated noise, less twice
    the covariance of error and estimate, which share residuals where other partitions hold the fit.
    """
    freedom, rank = fit.freedom, float(fit.pooled.rank)
    noise = fit.sampling * np.maximum(fit.variances, 0.0)
    lengths = np.einsum("iab,ba->i", fit.errors, fit.metric)
    total = float(noise @ lengths)
    if total <= 0:
        return ExcessLaw(rank, 0.0, 0.0, math.inf, math.inf, 0.0)
    gaps = np.einsum("iab,ba->i", fit.gaps, fit.metric)
    squares, unlike = _directions(fit, noise, total)
    above = min(float(np.square(total + unlike)) / squares, rank)
    parts = noise * lengths + gaps
    # Gaps are measured by the G that they are made of: A and Ĝ vary the rest alone.
    share = total / float(parts.sum())
    # Which share of the length of the error each sketch measures: as much of it varies as A does.
    of_gram = share * pairs_of_rows(fit.grams, fit.sizes, noise) / float(noise @ fit.shares)
    in_gram = 1 + 1 / float(np.sum(of_gram**2 / freedom))
    of_noise = freedom if fit.measured is None else fit.measured
    in_noise = 1 / float(np.sum((parts / parts.sum()) ** 2 / of_noise))
    mean, variance = log_moments_of_ratio((), (in_gram, in_noise))
    above, moved = _with_rows_left_out(above, fit, parts / parts.sum())
    mean += moved
    mean += math.log1p(-2 / in_gram) if in_gram > 2 else 0.0
    # The estimate measures errors by Ĝ, of which sketches have other shares than of A where they are weighted.
    of_metric = fit.shares / fit.weights / float(np.sum(fit.shares / fit.weights))
    more = float(np.sum((of_metric**2 - (fit.shares / rank) ** 2) / freedom))
    shared = _shared(fit, prices, noise) - share**2 / rank * max(more, 0.0)
    return ExcessLaw(above, mean, variance - 2 * shared, in_gram, in_noise, shared)


def _with_rows_left_out(above: float, fit: StackedFit, parts: FloatArray) -> tuple[float, float]:
    """Return degrees of freedom of the error that allow for few rows left out, and what its mean logarithm moves by.

    A rotation of P rows of which m are sketched leaves q = P − m out, and the error is that of those. They hold a share
    of the residuals that is a beta variate of (q, m − h) half degrees of freedom, as a `χ²_f/f` with
    `f = q (P − h + 2)/(m − h)` varies: nothing for m ≪ P, and one χ² of q degrees of freedom at the other end.
    """
    with np.errstate(divide="ignore"):
        rotations = fit.sizes / (1 - fit.sampling)
    few = np.isfinite(rotations) & (fit.sampling > 0)
    freedom = (rotations - fit.sizes) * (rotations - fit.shares + 2) / (fit.sizes - fit.shares)
    varied = float(np.sum(parts[few] ** 2 / freedom[few]))
    if not (varied > 0 and above > 0):
        return above, 0.0
    (centre, spread), (moved, more) = log_moments(above), log_moments(1 / varied)
    fewer = freedom_of(spread + more)
    return fewer, centre + moved - log_moments(fewer)[0]


def _directions(fit: StackedFit, noise: FloatArray, total: float) -> tuple[float, float]:
    """Return the sum of squares of the error's variances in its directions, and what is in their sum besides `total`.

    The length of the error is measured by G. Where weights differ, G is not A, and what Ĝ varies is no part of the
    error. With `A = I`, s and c the mean variance and the mean of Ĝ, the product of both is `sc I + Σ e_i A_i` to first
    order, `e_i = c v_i + s/ω_i − 2sc`; sketching alone adds `h_i² (1 + 1/r)/m_i` to each `tr A_i²`, h_i = tr A_i. The
    gaps lie evenly as G measures them.
    """
    rank = float(fit.pooled.rank)
    if not np.ptp(fit.weights):
        unlike = unlike_covariance(fit)
        spread = np.tensordot(noise, fit.grams, axes=1)
        squares = float(noise @ pairs_of_rows(fit.grams, fit.sizes, noise))
        return squares + float(np.sum(unlike * (2 * spread + unlike))), float(np.trace(unlike))
    scale, lengths = float(np.trace(fit.metric)) / rank, np.trace(fit.errors, axis1=1, axis2=2)
    turned = np.divide(lengths, fit.shares, out=np.ones(len(lengths)), where=fit.shares > 0) * noise
    mean = float(turned @ fit.shares) / rank
    away = scale * turned + mean / fit.weights - 2 * mean * scale
    chance = away**2 @ (fit.sampling * fit.shares**2 * (1 + 1 / rank) / fit.sizes)
    uneven = max(float(away @ GramPairs(fit.grams).times(away)) - float(chance), 0.0) / np.square(mean * scale)
    gaps = float(np.einsum("iab,ba->", fit.gaps, fit.metric))
    return (float(np.square(total + gaps)) + float(np.square(total)) * float(uneven) / rank) / rank, gaps


def pairs_of_rows(grams: FloatArray, sizes: FloatArray, vector: FloatArray) -> FloatArray:
    """`tr(G_i G_j)`, times a vector, in the coordinates of the fit; for i = j see `squares_of_rows`."""
    pairs = GramPairs(grams)
    return np.asarray(pairs.times(vector) + (squares_of_rows(grams, sizes) - pairs.diagonal) * vector)


def squares_of_rows(grams: FloatArray, sizes: FloatArray) -> FloatArray:
    """`tr(G_i²)` in the coordinates of the fit: a sketched Gram matrix has a larger square than that of its rows."""
    shares = np.trace(grams, axis1=1, axis2=2)
    smallest = shares**2 / max(grams.shape[1], 1)
    own = (GramPairs(grams).diagonal - shares**2 / sizes) / (1 + 1 / sizes)
    return np.asarray(np.maximum(own, smallest))


def _shared(fit: StackedFit, prices: FloatArray, noise: FloatArray) -> float:
    """Covariance of the error `e′He` and the estimate `Σ w_i ‖ê_i‖²` given the features, in units of their means.

    Noise that was measured on the rows has none: no residual of the sketch is in it.
    """
    if fit.measured is not None:
        return 0.0
    weights = GramPairs(fit.grams).solve(fit.sizes - 2 * fit.shares, prices)
    spread, weighted, both = (np.tensordot(w, fit.grams, axes=1) for w in (noise, weights, noise * weights))
    lengths = np.einsum("iab,ba->i", fit.grams, fit.metric)
    # The mean of a squared estimate is larger than the square by 2/freedom.
    squares = noise**2 / (1 + 2 / fit.freedom)
    covariance = float(squares * weights @ lengths) - 2 * float(np.sum((fit.metric @ spread) * both))
    covariance += float(np.sum((spread @ fit.metric @ spread) * weighted))
    means = float(prices @ noise) * float(noise @ lengths)
    return 2 * max(covariance, 0.0) / means if means > 0 else 0.0


def unlike_covariance(fit: StackedFit) -> FloatArray:
    """`Σ c_i c_iᵀ/m_i` as a covariance: the main direction of each estimate, of the size of its trace if positive."""
    sizes = np.maximum(np.trace(fit.departures, axis1=1, axis2=2), 0.0) * fit.sampling / fit.sizes
    if not fit.departures.size:  # columns of zeros determine nothing
        return np.zeros((fit.pooled.rank, fit.pooled.rank))
    together = parts_of(len(sizes), fit.departures.shape[-1])
    directions = np.concatenate([np.linalg.eigh(fit.departures[some])[1][:, :, -1] for some in together])
    return np.asarray(np.einsum("i,ia,ib->ab", sizes, directions, directions), dtype=np.float64)


def stacked_covariance(fit: StackedFit, names: Sequence[str] | None = None) -> CoefficientCovariance:
    """Covariance of the stacked coefficients around the true ones (Extension of Theorem 3.1; approximate).

    `A⁻¹ (Σ v_i A_i + c_i c_iᵀ/m_i) A⁻¹ + Ĝ⁻¹ (Σ σ̂_i² Ĝ_i) Ĝ⁻¹`: what sketching adds, and the noise of the rows, a
    sandwich in which every partition has its own variance `σ̂_i² = v_i m_i/(p_i − leverage)`.

    Parameters
    ----------
    fit : StackedFit
        From `stacked_fit`; the stacked sketches must have full rank.
    names : sequence of str, optional
        Column names, for the message about dependent columns.

    Returns
    -------
    CoefficientCovariance
        With the degrees of freedom of Satterthwaite, the fewest of any coefficient.
    """
    require_full_rank(fit.pooled, None, names)
    root, noise = fit.pooled.inverse_root, np.maximum(fit.variances, 0.0)
    # `A⁻¹` is larger than `G⁻¹` in the mean; each Gram matrix is divided by the share that leverage leaves of it.
    openness = fit.openness[:, None, None]
    inverse = np.linalg.inv((fit.grams / openness).sum(axis=0))
    of_rows = noise * fit.sizes / np.maximum(fit.row_counts - fit.shares, 1.0)
    parts = (fit.sampling * noise)[:, None, None] * fit.errors
    parts += fit.followed
    for some in parts_of(len(parts), parts.shape[-1]):
        rows = inverse @ fit.turns[some]
        opened = fit.grams[some] / openness[some]
        parts[some] += of_rows[some, None, None] * (rows @ opened @ rows.transpose(0, 2, 1))
    matrix = root @ (parts.sum(axis=0) + unlike_covariance(fit)) @ root.T
    diagonals = np.einsum("ja,iab,jb->ij", root, parts, root)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = diagonals.sum(axis=0) ** 2 / np.sum(diagonals**2 / fit.noise_freedom[:, None], axis=0)
    return CoefficientCovariance(
        matrix=matrix,
        degrees_of_freedom=float(np.nanmin(freedom)) if np.any(np.isfinite(freedom)) else float("inf"),
        noise_variance=fit.minimal_loss / (fit.row_count - fit.pooled.rank),
    )
