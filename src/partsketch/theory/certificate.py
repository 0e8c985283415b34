"""A sketch that certifies itself: what an estimate consists of, and the certificate of sketches of all rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch.errors import InputError
from partsketch.theory.arguments import FloatArray, require_sketch_size
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.moments import PartitionMoments


@dataclass(frozen=True, eq=False)
class CertificateEstimate:
    """An estimated excess loss and what it is made of.

    Attributes
    ----------
    excess_loss : float
        Estimate of the excess loss of this fit. An unbiased estimate of a small number may be below zero.
    standard_error : float
        Standard deviation of the difference between estimate and excess loss over the sketches, given the data.
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
