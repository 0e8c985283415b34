"""The certificate of a fitted model: how much squared loss it gives away against exact least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.shown import ShownAsText
from partsketch.common.sketch_law import OF_SAMPLED_ROWS
from partsketch.common.units import p_value_phrase
from partsketch.model.cancellation import require_minimum
from partsketch.model.certificate_estimates import (
    doubts,
    estimate_stack,
    estimate_whole,
    heterogeneity_of,
    require_even_samples,
    require_noise,
    squared_targets,
)
from partsketch.model.inference import exact_rows
from partsketch.model.moments import FitMoments
from partsketch.model.regression import Combination, Regression
from partsketch.model.sentences import LESS_THAN_SHOWN, hidden_loss
from partsketch.summaries.summary import Summary
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.excess_loss import unsketched_average_excess_loss
from partsketch.theory.heterogeneity import Heterogeneity, partition_heterogeneity
from partsketch.theory.moments import PartitionMoments, pooled_moments
from partsketch.theory.partition_certificate import certify_partition
from partsketch.theory.stack_weights import StackChoice
from partsketch.theory.weights import sketch_weights

FloatArray = NDArray[np.float64]


#: What a stacked fit is called, by how its sketches were weighted.
_STACKED = {
    "rows": "The stacked fit",
    "information": "The stacked fit, sketches weighted by information,",
    "mixture": "The mixture of stacked and averaged fit",
}


@dataclass(frozen=True, repr=False)
class Certificate(ShownAsText):
    """How far a fit is from exact least squares on the same rows, and how that is known.

    Attributes
    ----------
    kind
        "exact": computed from exact summaries. "estimated": an unbiased estimate from the sketches alone.
        "approximate": an estimate without an exact theory. "unavailable": nothing can be said; see `reason`.
    excess_loss
        Squared loss of this fit above the minimum, exact or estimated. An unbiased estimate of a small loss may be
        below zero: the fit then loses less than the sketches can show.
    standard_error
        Of the estimate; zero when exact.
    relative_excess_loss
        Divided by the minimal loss.
    minimal_loss
        Loss of exact least squares, exact or estimated.
    divergence
        D, how unlike the partitions are; the number of columns when they are alike.
    noise_variance
        Estimate of the variance of the noise.
    heterogeneity
        Test of whether partitions share their coefficients, or why there is none; None when there is one partition.
    reason
        Why it is of this kind.
    sentence
        All of it in plain words.
    confidence, relative_confidence
        What `interval` is made from: a distribution of the excess loss of this fit, and of it divided by the minimal
        loss; None where there is no interval.
    """

    kind: str
    excess_loss: float | None
    standard_error: float | None
    relative_excess_loss: float | None
    minimal_loss: float | None
    divergence: float | None
    noise_variance: float | None
    heterogeneity: Heterogeneity | None
    reason: str
    sentence: str
    confidence: ConfidenceDistribution | None = None
    relative_confidence: ConfidenceDistribution | None = None

    def interval(self, level: float = 0.95, relative: bool = False) -> tuple[float, float]:
        """Return an interval that holds the excess loss of this fit with the given probability.

        The probability is over the random sketches, given the data: of many fits with other seeds, a share `level` has
        an excess loss inside its own interval.

        Parameters
        ----------
        level
            Nominal coverage, strictly between 0 and 1.
        relative
            Of the excess loss divided by the minimal loss instead.

        Returns
        -------
        tuple of float
            Lower and upper end; the same number twice when the excess loss is exact.
        """
        distribution = self.relative_confidence if relative else self.confidence
        if distribution is None:
            raise InputError(f"There is no interval for the excess loss: {self.reason}.")
        return distribution.interval(level)

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain data."""
        distributions = {name: getattr(self, name) for name in ("confidence", "relative_confidence")}
        return {
            **asdict(self),
            **{name: None if known is None else known.to_dict() for name, known in distributions.items()},
        }


def certify(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    number: int,
    moments: FitMoments,
) -> Certificate:
    """Return the certificate of the fit of target `number`, from the summaries alone and their moments."""
    if regression.penalty > 0:
        return unavailable_certificate("a ridge fit is biased on purpose, and the theory covers least squares only")
    weights = combination.weights[:, number]
    try:
        if method == "exact":
            require_minimum(combination, summaries, regression, number)
            return _of_exact(combination, exact_rows(combination, summaries), number)
        if method == "average":
            return _of_average(moments.exact, weights)
        choice = combination.stacking[number] if combination.stacking else None
        return _of_sketches(method, summaries, weights, moments, regression.averaging, choice)
    except InputError as error:
        return unavailable_certificate(str(error).rstrip("."))


def _of_exact(combination: Combination, row_count: int, target: int) -> Certificate:
    solution = combination.solutions[0]
    loss = float(solution.residual_sums[target])
    freedom = row_count - solution.rank
    return Certificate(
        kind="exact",
        excess_loss=0.0,
        standard_error=0.0,
        relative_excess_loss=0.0,
        minimal_loss=loss,
        divergence=float(solution.rank),
        noise_variance=loss / freedom if freedom > 0 else None,
        heterogeneity=None,
        reason="the fit is exact least squares",
        sentence=f"The fit is exact least squares: it loses nothing{hidden_loss(solution)}.",
        confidence=ConfidenceDistribution("point", (0.0,)),
        relative_confidence=ConfidenceDistribution("point", (0.0,)),
    )


def _of_average(partitions: list[PartitionMoments], weights: FloatArray) -> Certificate:
    pooled = pooled_moments(partitions)
    excess = unsketched_average_excess_loss(partitions, weights)
    freedom = sum(part.row_count - part.rank for part in partitions)
    traces = [float(np.sum((pooled.root @ part.inverse_root) ** 2)) for part in partitions]
    heterogeneity = partition_heterogeneity(partitions) if len(partitions) > 1 else None
    relative = excess / pooled.loss if pooled.loss > 0 else None
    return Certificate(
        kind="exact",
        excess_loss=excess,
        standard_error=0.0,
        relative_excess_loss=relative,
        minimal_loss=pooled.loss,
        divergence=float(weights**2 @ traces),
        noise_variance=sum(part.loss for part in partitions) / freedom if freedom > 0 else None,
        heterogeneity=heterogeneity,
        reason="computed from the exact summaries of all partitions",
        sentence=_sentence("The averaged fit loses", relative, excess, heterogeneity),
        confidence=ConfidenceDistribution("point", (excess,)),
        relative_confidence=None if relative is None else ConfidenceDistribution("point", (relative,)),
    )


def _of_sketches(
    method: str,
    summaries: Sequence[Summary],
    weights: FloatArray,
    moments: FitMoments,
    averaging: str,
    choice: StackChoice | None,
) -> Certificate:
    squares = squared_targets(moments)
    subject, heterogeneity = "The averaged fit", None
    if method == "whole":
        estimate = estimate_whole(summaries, moments)
    elif choice is not None:
        subject, heterogeneity = _STACKED[choice.taken], heterogeneity_of(summaries, moments)
        estimate = estimate_stack(summaries, moments, choice)
    else:
        heterogeneity = heterogeneity_of(summaries, moments)
        require_even_samples(summaries, moments)
        known, are_estimated = moments.estimated, averaging == "inverse_variance" and len(weights) > 1
        estimate = certify_partition(known, sketch_weights(known) if are_estimated else weights)
    require_noise(estimate, squares)
    certificate = _from_estimate(estimate, subject, heterogeneity)
    return replace(certificate, sentence=certificate.sentence + doubts(method, len(weights), choice, estimate))


def _estimated_sentence(
    subject: str, estimate: CertificateEstimate, relative: float | None, heterogeneity: Heterogeneity | None
) -> str:
    """Say what a fit loses; an estimate below zero says that it is less than the sketches can show."""
    if estimate.kind == "exact":
        return f"{subject} loses nothing: {estimate.reason}."
    shown = percentage if relative is not None else (lambda value: f"{value:.4g}")
    # One number for the sentence: the share of the minimal loss where there is one, else the loss itself.
    amount = estimate.excess_loss if relative is None else relative
    distribution = estimate.confidence if relative is None else estimate.relative_confidence
    words = LESS_THAN_SHOWN if amount <= 0 else shown(amount)
    about = "about " if estimate.kind == "approximate" and amount > 0 else ""
    ends = ""
    if distribution is not None:
        low, high = distribution.interval(0.95)
        ends = f" (95% interval: {shown(low)} to {shown(high)})"
    text = f"{subject} is estimated to lose {about}{words} in squared loss against exact least squares{ends}"
    told = f", {OF_SAMPLED_ROWS}" if estimate.reason == OF_SAMPLED_ROWS else ""
    return text + told + _difference(heterogeneity)


def _from_estimate(estimate: CertificateEstimate, subject: str, heterogeneity: Heterogeneity | None) -> Certificate:
    relative = _known(estimate.relative_excess_loss)
    return Certificate(
        kind=estimate.kind,
        excess_loss=_known(estimate.excess_loss),
        standard_error=_known(estimate.standard_error),
        relative_excess_loss=relative,
        minimal_loss=_known(estimate.minimal_loss),
        divergence=_known(estimate.divergence),
        noise_variance=_known(estimate.noise_variance),
        heterogeneity=heterogeneity,
        reason=estimate.reason,
        sentence=_estimated_sentence(subject, estimate, relative, heterogeneity),
        confidence=estimate.confidence,
        relative_confidence=estimate.relative_confidence,
    )


def unavailable_certificate(reason: str) -> Certificate:
    """Return the certificate that says nothing, and why."""
    return Certificate(
        kind="unavailable",
        excess_loss=None,
        standard_error=None,
        relative_excess_loss=None,
        minimal_loss=None,
        divergence=None,
        noise_variance=None,
        heterogeneity=None,
        reason=reason,
        sentence=f"Nothing can be said of the excess loss: {reason}.",
    )


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sentence(verb: str, relative: float | None, excess: float, heterogeneity: Heterogeneity | None) -> str:
    amount = f"{excess:.4g}" if relative is None else percentage(relative)
    return f"{verb} {amount} in squared loss against exact least squares" + _difference(heterogeneity)


def _difference(heterogeneity: Heterogeneity | None) -> str:
    if heterogeneity is None or heterogeneity.p_value is None:
        return "."
    chance = "no more than chance allows" if heterogeneity.p_value >= 0.05 else "more than chance allows"
    return f"; partitions differ {chance} ({p_value_phrase(heterogeneity.p_value)})."


def percentage(share: float) -> str:
    """Return a share in percent, as it is shown."""
    percent = 100 * share
    return f"{percent:.1f}%" if percent >= 0.95 else f"{percent:.2g}%"
