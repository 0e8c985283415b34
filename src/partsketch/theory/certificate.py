"""A sketch that certifies itself: what an estimate consists of, and the certificate of sketches of all rows."""

from __future__ import annotations

from dataclasses import dataclass

from partsketch.theory.arguments import FloatArray
from partsketch.theory.confidence import ConfidenceDistribution


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
