"""Which weights stacked sketches get: by rows, by information, or a mixture of the stack with an average.

With a fixed design, shared coefficients and noise of variance σ_i² in partition i, a sketched target has the covariance
`σ_i² S_iS_iᵀ`. For an orthogonal sketch that is `σ_i² (p_i/m_i) I`, and generalised least squares, the best linear
unbiased estimator from the sketches, weights sketch i by `m_i/(p_i σ_i²)`: its information. For a Gaussian sketch it is
nearly so, and one number per sketch is best near `1/(φ_i σ_i²)`, `φ_i = p_i/m_i + 1`.

Equal weights make the stack aim at exact least squares whatever the partitions are; others do so only where partitions
share their coefficients. Where they do not, part of the way from the stack to the average `Σ (p_i/n) θ_i` is gone
instead, as far as the sketches say that it pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import SketchLaw
from partsketch.common.special import digamma, polygamma
from partsketch.common.units import p_value_phrase
from partsketch.theory.approximations import rotation_rows
from partsketch.theory.arguments import FloatArray
from partsketch.theory.heterogeneity import Heterogeneity, constant_noise_heterogeneity
from partsketch.theory.measured_noise import MeasuredNoise
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.partition_certificate import mixture_share
from partsketch.theory.sketch_moments import SketchMoments

#: Weights of stacked sketches that may be asked for.
WEIGHTINGS = ("auto", "rows", "information")

#: Where weights are asked for, coefficients count as shared unless a test rejects it at this level.
LEAST_AGREEMENT = 0.0005

#: "auto" gives so much of the loss, on average, for false alarms, at levels in this range: one gives away what weights
#: gain, which is nothing where all sketches carry alike and a factor of twenty where noise differs much.
_ALARM_PRICE, _LEVELS = 0.001, (0.0001, 0.002)

#: How often noise is found from the residuals of the weighted fit; noise that differs by a factor of 20 takes three.
_NOISE_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class StackChoice:
    """How sketches are stacked, and why.

    Attributes
    ----------
    taken : str
        "rows" (equal weights), "information", or "mixture" with an average.
    weights : array of shape (k,)
        Weights ω_i of the sketches, of mean one.
    share : float
        Share of the average in a mixture; zero otherwise.
    reason : str
        Why, in words.
    agreement : Heterogeneity or None
        Test of shared coefficients that decided; None where none was made.
    following : array of shape (k,) or None
        How far the weights follow the noise of each sketch, from zero to one; None where they do not.
    measured : MeasuredNoise or None
        The noise that they follow, if it was measured on the rows.
    """

    taken: str
    weights: FloatArray
    share: float
    reason: str
    agreement: Heterogeneity | None = None
    following: FloatArray | None = None
    measured: MeasuredNoise | None = None


def information_weights(moments: SketchMoments, measured: MeasuredNoise | None = None) -> FloatArray:
    """Weights `1/(φ_i σ̂_i²)` of stacked sketches, the noise drawn towards its mean (Extension of Theorem 3.1).

    Noise is estimated from few rows each. Its logarithms are drawn to their mean by `τ²/(τ² + e_i)`, e_i the variance
    that estimating gives them, and τ² by how much they vary more than that and two standard errors of it (as
    DerSimonian and Laird have it). For alike partitions nothing is left of the differences in nearly all cases. Noise
    is that of the residuals of the weighted fit itself, found again as its weights change: they have `m_i − h_i`
    degrees of freedom, h_i the leverage of the sketch in that fit, more than the `m_i − r_i` of a fit of its own.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank.
    measured : MeasuredNoise, optional
        Noise as exact fits to the rows of each partition leave it; it is taken in place of estimates from sketches, and
        drawn to its mean likewise.

    Returns
    -------
    array of shape (k,)
        Weights of mean one; exactly ones where all sketches carry the same.
    """
    return followed_weights(moments, measured)[0]


def followed_weights(moments: SketchMoments, measured: MeasuredNoise | None = None) -> tuple[FloatArray, FloatArray]:
    """Return `information_weights`, and the `τ²/(τ² + e_i)` by which they follow the noise of each sketch."""
    if measured is not None:
        return measured_weights(moments.sizes, moments.row_counts, moments.law, measured)
    noise = noise_of_rows(moments.sizes, moments.row_counts, moments.law)
    if len(noise) < 2 or np.any(moments.row_counts <= moments.ranks) or np.any(moments.losses <= 0):
        return _of_mean_one(1 / noise), np.zeros(len(noise))
    rows, spread = moments.row_counts - moments.ranks, moments.row_counts / moments.sizes
    drawn, following = np.zeros(len(noise)), np.zeros(len(noise))
    for _ in range(_NOISE_ROUNDS):
        losses, freedom = _residuals(moments, np.exp(-drawn) / noise)
        # A sketch row sums p_i/m_i rows of noise.
        drawn, following = _drawn(*_logarithms(losses / (spread * freedom), freedom, moments.sampling, rows))
        if not drawn.any():
            break
    return _of_mean_one(np.exp(-drawn) / noise), following


def measured_weights(
    sizes: ArrayLike, row_counts: ArrayLike, law: SketchLaw, measured: MeasuredNoise
) -> tuple[FloatArray, FloatArray]:
    """Return weights from measured noise, and how far they follow it; sketches may have fewer rows than columns."""
    noise, freedom = noise_of_rows(sizes, row_counts, law), measured.freedom
    if len(noise) < 2:
        return _of_mean_one(1 / noise), np.zeros(len(noise))
    logs = np.log(measured.variances) - digamma(freedom / 2) + np.log(freedom / 2)
    drawn, following = _drawn(np.asarray(logs), np.asarray(polygamma(1, freedom / 2)))
    return _of_mean_one(np.exp(-drawn) / noise), following


def _of_mean_one(weights: FloatArray) -> FloatArray:
    """Return weights of mean one; exactly ones where they differ by rounding only."""
    even = np.ptp(weights) <= 1e-12 * weights.max()
    return np.ones(len(weights)) if even else np.asarray(weights / weights.mean())


def noise_of_rows(sizes: ArrayLike, row_counts: ArrayLike, law: SketchLaw) -> FloatArray:
    """Return φ_i, the variance of a sketch row per unit of noise in the rows: `p/m + 1`, or `p/m` if S is orthogonal.

    Without the one it is `S_iS_iᵀ` across the features; along them it is larger, by the fluctuations of the sketch.
    """
    counts = np.asarray(row_counts, dtype=np.float64)
    rotations = np.array([rotation_rows(law, int(count)) for count in counts])
    return np.asarray(1 + np.maximum(counts / np.asarray(sizes, dtype=np.float64) - counts / rotations, 0.0))


def weights_by_counts(sizes: ArrayLike, row_counts: ArrayLike, law: SketchLaw) -> FloatArray:
    """Weights `1/φ_i` of stacked sketches, for one noise variance in all partitions: they need counts of rows only."""
    return _of_mean_one(1 / noise_of_rows(sizes, row_counts, law))


def _logarithms(
    estimates: FloatArray, freedom: FloatArray, sampling: FloatArray, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return unbiased logarithms of noise variances, and the variances that estimating gives them."""
    # Rows of noise have a chi-square of their own; sketching adds another one, or a part of it.
    variances = sampling * polygamma(1, freedom / 2) + polygamma(1, rows / 2)
    bias = sampling * (digamma(freedom / 2) - np.log(freedom / 2)) + digamma(rows / 2) - np.log(rows / 2)
    return np.log(estimates) - bias, variances


def _drawn(logs: FloatArray, variances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms drawn to their mean, less that mean, and what was left of each difference."""
    precision, count = 1 / variances, len(logs)
    centre = float(precision @ logs / precision.sum())
    seen = float(precision @ (logs - centre) ** 2)
    chance = count - 1 + 2 * math.sqrt(2 * (count - 1))
    beyond = max(seen - chance, 0.0) / (float(precision.sum()) - float(precision @ precision / precision.sum()))
    following = beyond / (beyond + variances)
    drawn = following * (logs - centre)
    return np.asarray(drawn - drawn.mean()), np.asarray(following)


def _residuals(moments: SketchMoments, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the residual sum of squares of each sketch under the weighted fit, and its degrees of freedom."""
    scales, parts = np.sqrt(weights), moments.sketches
    factors = [scale * part.factor for scale, part in zip(scales, parts, strict=True)]
    stacked = np.vstack(factors)
    pooled = PartitionMoments(stacked, len(stacked), parts[0].free_columns, int(moments.row_counts.sum()))
    shares = [float(np.sum((factor[:, :-1] @ pooled.inverse_root) ** 2)) for factor in factors]
    residuals = [part.factor[:, -1] - part.factor[:, :-1] @ pooled.solution for part in parts]
    return np.array([float(residual @ residual) for residual in residuals]), moments.sizes - np.array(shares)


def choose_stack(moments: SketchMoments, weighting: str = "auto", measured: MeasuredNoise | None = None) -> StackChoice:
    """Choose how to stack from the sketches alone.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`.
    weighting : str
        "rows": equal weights. "information": `information_weights`. "auto": those if a test of shared coefficients does
        not reject at a level of 0.2% (where they are equal) to 0.01% (where they gain a factor of eleven), otherwise
        a mixture of the equally weighted stack and `Σ (p_i/n) θ_i`.
    measured : MeasuredNoise, optional
        As in `information_weights`.

    Returns
    -------
    StackChoice
        What was taken and why.
    """
    if weighting not in WEIGHTINGS:
        raise InputError(f"weighting is {weighting!r}: choose 'auto', 'rows' or 'information'.")
    count = len(moments.sketches)
    ones = np.ones(count)
    if weighting == "rows":
        return StackChoice("rows", ones, 0.0, "as asked")
    if count < 2:
        return StackChoice("rows", ones, 0.0, "there is one partition only")
    weights, following = followed_weights(moments, measured)
    agreement = constant_noise_heterogeneity(moments)
    if weighting == "information":
        return StackChoice(
            "information", weights, 0.0, f"as asked{_of_noise(measured)}", agreement, following, measured
        )
    if agreement.p_value is None:
        return _untested(moments, agreement)
    # The certificate's test assumes less, and has another p-value.
    told = f"({p_value_phrase(agreement.p_value)} if noise is constant within each)"
    even = bool(np.ptp(weights) == 0)
    if agreement.p_value < _LEVELS[1] and agreement.p_value < agreement_level(moments, weights):
        return _unlike(moments, agreement, f"partitions do not share their coefficients {told}, so that weights would ")
    if even:
        reason = f"partitions share their coefficients as far as the sketches show {told}, and all sketches carry alike"
        return StackChoice("rows", ones, 0.0, reason, agreement)
    reason = f"partitions share their coefficients as far as the sketches show {told}{_of_noise(measured)}"
    return StackChoice("information", weights, 0.0, reason, agreement, following, measured)


def _of_noise(measured: MeasuredNoise | None) -> str:
    how = "estimated from the sketches" if measured is None else "measured on the rows"
    return f"; the noise of each was {how}"


def agreement_level(moments: SketchMoments, weights: FloatArray) -> float:
    """Return the level of the test of shared coefficients: its false alarms cost as much whatever weights gain.

    Equal weights make the variance of the fit R times that of weights ω_i in inverse proportion to the noise, and a
    false alarm R − 1 times the loss.
    """
    parts = moments.sketches
    stacked = np.vstack([part.factor for part in parts])
    pooled = PartitionMoments(stacked, len(stacked), parts[0].free_columns, int(moments.row_counts.sum()))
    turned = [part.factor[:, :-1] @ pooled.inverse_root for part in parts]
    weighted = np.sum([weight * rows.T @ rows for weight, rows in zip(weights, turned, strict=True)], axis=0)
    equal = sum(float(np.sum(rows**2)) / weight for weight, rows in zip(weights, turned, strict=True))
    gain = equal / float(np.trace(np.linalg.inv(weighted))) - 1
    least, most = _LEVELS
    return most if gain * most <= _ALARM_PRICE else max(least, _ALARM_PRICE / gain)


def _unlike(moments: SketchMoments, agreement: Heterogeneity, why: str) -> StackChoice:
    """Mix the stack with the average, as far as that pays; equal weights aim at exact least squares in both."""
    try:
        share = mixture_share(moments)
        mixed = f"{share:.0%} of the fit is the average of the partitions' fits by rows"
    except InputError as error:
        share, mixed = 0.0, f"no part of the average is taken, because {str(error).rstrip('.')}"
    reason = f"{why}change what is estimated; {mixed}"
    ones = np.ones(len(moments.sketches))
    return StackChoice("mixture" if share > 0 else "rows", ones, share, reason, agreement)


def _untested(moments: SketchMoments, agreement: Heterogeneity) -> StackChoice:
    """Equal weights where shared coefficients cannot be tested: they are right whatever the partitions are."""
    rates = moments.sizes / moments.row_counts
    advice = "; weighting='information' is better if they do" if np.ptp(rates) > 1e-12 else ""
    reason = f"whether partitions share their coefficients cannot be tested: {agreement.reason}{advice}"
    return StackChoice("rows", np.ones(len(rates)), 0.0, reason, agreement)
