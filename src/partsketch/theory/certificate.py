"""A sketch that certifies itself: the excess loss estimated from the sketches alone, with its own standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.errors import InputError
from partsketch.theory.arguments import FloatArray, require_sketch_size, weights_for
from partsketch.theory.certificate_variance import certificate_variance
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.sketch_moments import SketchMoments


@dataclass(frozen=True, eq=False)
class CertificateEstimate:
    """An estimated excess loss and what it is made of.

    Attributes
    ----------
    excess_loss : float
        Estimate of the expected excess loss.
    standard_error : float
        Standard deviation of that estimate over the sketches, given the data; infinite when some m ≤ r + 3.
    relative_excess_loss : float
        Divided by the estimated minimal loss.
    minimal_loss : float
        Estimate of ℓ.
    divergence : float
        Estimate of D (with weights, of `Σ w_i² tr(G G_i⁺)`); not a number where a single sketch cannot show it.
    noise_variance : float
        Estimate of σ².
    sketch_terms : array
        Share of each partition in the first, sketching term, squared weights included.
    averaging_term : float
        The second term: what averaging alone costs.
    kind : str
        "estimated" when unbiased, "approximate" when not.
    reason : str
        Why it is of that kind.
    confidence, relative_confidence : ConfidenceDistribution or None
        For intervals of the excess loss of this fit, and of it divided by the minimal loss.
    """

    excess_loss: float
    standard_error: float
    relative_excess_loss: float
    minimal_loss: float
    divergence: float
    noise_variance: float
    sketch_terms: FloatArray
    averaging_term: float
    kind: str
    reason: str
    confidence: ConfidenceDistribution | None = None
    relative_confidence: ConfidenceDistribution | None = None


def pooled_sketch(moments: SketchMoments) -> PartitionMoments:
    """Moments of all sketches stacked: the fit on Σm_i rows."""
    stacked = np.vstack([part.factor for part in moments.sketches])
    first = moments.sketches[0]
    return PartitionMoments(stacked, int(moments.sizes.sum()), first.free_columns, int(moments.row_counts.sum()))


def certify_partition(moments: SketchMoments, weights: ArrayLike | None = None) -> CertificateEstimate:
    """Estimate the expected excess loss of θ̄ from one sketch of each partition (Extension of Theorem 3.3).

    `Σ w_i² T̂_i ℓ̂_i/(m_i − r_i − 1) + σ̂² (D̂ − d)`, unbiased over Gaussian sketches and noise when partitions have full
    rank and share one coefficient vector: the second term assumes that, so look at the heterogeneity test. Singular
    partitions add the bias of minimum-norm averaging, estimated from the stacked fit; the result is then approximate.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`.
    weights : array of shape (k,), optional
        Averaging weights that sum to one; equal by default.

    Returns
    -------
    CertificateEstimate
        With a standard error from the second moments of Wishart, inverse-Wishart and chi-square variates.
    """
    shares = weights_for(len(moments.sketches), weights)
    traces = moments.traces
    terms = shares**2 * traces * moments.losses * moments.noise_factors
    weighted_divergence = float(shares**2 @ traces)
    singular = bool(np.any(moments.ranks < moments.sketches[0].columns))
    rank = float(pooled_sketch(moments).rank) if singular else float(moments.ranks[0])
    # E‖X(ᾱ − a*)‖² without bias is σ²(D − 2 Σ w_i r_i + r); at full rank that is σ²(D − d).
    spread = weighted_divergence - 2 * float(shares @ moments.ranks) + rank
    bias, bias_variance = _minimum_norm_bias(moments, shares) if singular else (0.0, 0.0)
    averaging = moments.noise_variance * spread + bias
    remaining = moments.row_counts.sum() - moments.ranks.sum()
    derivatives = shares**2 * traces * moments.noise_factors + spread / remaining
    variance = certificate_variance(moments, shares, derivatives) + bias_variance
    minimal_loss = moments.noise_variance * float(moments.row_counts.sum() - rank)
    excess = float(terms.sum()) + averaging
    kind, reason = "estimated", "unbiased for Gaussian sketches of full-rank partitions that share their coefficients"
    if not moments.exact_law:
        kind, reason = "approximate", "the exact formulas are for Gaussian sketches"
    elif singular:
        kind, reason = "approximate", "singular partitions: the bias of minimum-norm averaging is itself estimated"
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=math.sqrt(variance),
        relative_excess_loss=excess / minimal_loss if minimal_loss > 0 else math.nan,
        minimal_loss=minimal_loss,
        divergence=weighted_divergence,
        noise_variance=moments.noise_variance,
        sketch_terms=terms,
        averaging_term=averaging,
        kind=kind,
        reason=reason,
    )


def _minimum_norm_bias(moments: SketchMoments, shares: FloatArray) -> tuple[float, float]:
    """`‖X Σ w_i (I − P_i) α‖²` and its variance, with α from the stacked fit and the excess of its square removed."""
    pooled = pooled_sketch(moments)
    total, rank = moments.sizes.sum(), pooled.rank
    require_sketch_size(float(total), rank)
    identity = np.eye(pooled.columns)
    missing = identity.copy()
    for share, part in zip(shares, moments.sketches, strict=True):
        missing -= share * part.projection
    residual_rows = moments.row_counts.sum() - rank
    noise = moments.noise_variance * (1 + residual_rows / (total - rank - 1))
    covariance = noise * pooled.inverse_gram * (total - rank - 1) / total
    loss_form = missing.T @ pooled.gram @ missing
    lost = missing @ pooled.solution
    square = float(lost @ pooled.gram @ lost)
    scatter = loss_form @ covariance
    variance = 4 * float(pooled.solution @ scatter @ loss_form @ pooled.solution)
    variance += 2 * float(np.sum(scatter * scatter.T))
    for part, size in zip(moments.sketches, moments.sizes, strict=True):
        variance += 2 / size * float(lost @ part.gram @ lost) ** 2
    return max(0.0, square - float(np.trace(scatter))), variance


def certify_whole(sketches: Sequence[PartitionMoments], row_count: int) -> CertificateEstimate:
    """Estimate the expected excess loss of β̄ from its k Gaussian sketches of all rows (Theorem 3.1).

    `ℓ̂ r/(m − r − 1)/k` with `ℓ̂` the mean of `ρ_i m/(m − r)`: unbiased given the data, without a noise model.

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`, all of the same number of rows m > r + 1.
    row_count : int
        Rows n behind them.

    Returns
    -------
    CertificateEstimate
        The relative standard error is exactly `√(2/(k(m − r)))`.
    """
    if len({(part.row_count, part.rank) for part in sketches}) != 1:
        raise InputError("sketches of the whole data must agree in rows and rank: pass sketches of the same rows.")
    m, rank, k = sketches[0].row_count, sketches[0].rank, len(sketches)
    require_sketch_size(m, rank)
    loss = float(np.mean([part.loss for part in sketches])) * m / (m - rank)
    excess = loss * rank / (m - rank - 1) / k
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=excess * math.sqrt(2 / (k * (m - rank) + 2)),
        relative_excess_loss=rank / (m - rank - 1) / k,
        minimal_loss=loss,
        divergence=float(rank),
        noise_variance=loss / (row_count - rank) if row_count > rank else math.nan,
        sketch_terms=np.full(k, excess / k),
        averaging_term=0.0,
        kind="estimated",
        reason="unbiased for Gaussian sketches, whatever the data",
    )
