"""Which estimate of the excess loss belongs to which method and kind of sketch, from the summaries alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.units import p_value_phrase
from partsketch.model.moments import FitMoments
from partsketch.sketches.base import get_sketch, law_of_kind
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.heterogeneity import ROUNDING, Heterogeneity, sketch_heterogeneity
from partsketch.theory.partition_certificate import certify_partition, row_shares
from partsketch.theory.sampled_rows import RowSample, certify_row_samples, require_even_leverage
from partsketch.theory.stack_weights import LEAST_AGREEMENT, StackChoice
from partsketch.theory.stacked_certificate import certify_stacked
from partsketch.theory.stacking import StackedFit, stacked_fit
from partsketch.theory.whole import certify_whole

FloatArray = NDArray[np.float64]

#: Targets are in units of their spread, so only weights lead beyond: squares of losses must be doubles, and losses may
#: be far smaller than targets.
_SMALLEST_SQUARES, _LARGEST_SQUARES = 1e-120, 1e150


def estimate_whole(summaries: Sequence[Summary], moments: FitMoments) -> CertificateEstimate:
    """Return what an average of fits to sketches of all rows loses."""
    first = summaries[0]
    law = law_of_sketches(summaries)
    if law.keeps_rows:
        return certify_row_samples(row_samples(summaries, moments), first.row_count)
    return certify_whole(moments.sketches, first.row_count, law)


def estimate_stack(summaries: Sequence[Summary], moments: FitMoments, choice: StackChoice) -> CertificateEstimate:
    """Return what one fit to the stacked sketches of all partitions loses."""
    if choice.taken == "mixture":
        return certify_partition(moments.estimated, row_shares(moments.estimated), choice.share)
    fit, law = weighted_fit(summaries, moments, choice), law_of_sketches(summaries)
    counts = [summary.row_count for summary in summaries]
    if not law.keeps_rows:
        return certify_stacked(fit)
    sample = stacked_sample(row_samples(summaries, moments), fit.pooled.rank)
    return certify_row_samples([sample], sum(counts))


def weighted_fit(summaries: Sequence[Summary], moments: FitMoments, choice: StackChoice) -> StackedFit:
    """Return the stacked fit; with weights only where the sketches do not contradict shared coefficients."""
    law = law_of_sketches(summaries)
    if np.ptp(choice.weights) > 0:
        test = choice.agreement
        if test is None or test.p_value is None:
            why = choice.reason.partition(": ")[2] if test is None else test.reason
            raise InputError(
                f"weights by information assume shared coefficients, which cannot be tested here ({why}); use "
                "weighting='rows'"
            )
        if test.p_value < LEAST_AGREEMENT:
            raise InputError(
                f"weights by information assume shared coefficients, and partitions do not have them "
                f"({p_value_phrase(test.p_value)}); use weighting='auto' or 'rows'"
            )
    counts = [summary.row_count for summary in summaries]
    return stacked_fit(moments.sketches, counts, law, choice.weights, choice.following, choice.measured)


def require_even_samples(summaries: Sequence[Summary], moments: FitMoments) -> None:
    """Refuse samples of partitions in which a single row decides a direction; other sketches pass."""
    if law_of_kind(summaries[0].kind).keeps_rows:
        for sample in row_samples(summaries, moments):
            require_even_leverage(sample)


def squared_targets(moments: FitMoments) -> float:
    """Return the sum of the squared targets in all sketches; refuse weights with which squares of losses do not fit."""
    squares = sum(float(part.factor[:, -1] @ part.factor[:, -1]) for part in moments.sketches)
    if squares > 0 and not _SMALLEST_SQUARES < squares < _LARGEST_SQUARES:
        size = "small" if squares < 1 else "large"
        raise InputError(
            f"the weights are so {size} that squares of losses are beyond doubles: multiply them all by a constant, "
            "which changes no coefficient"
        )
    return squares


def require_noise(estimate: CertificateEstimate, squares: float) -> None:
    """Refuse an estimate that was made from nothing but rounding: the target is a function of the features."""
    if estimate.kind != "exact" and 0 < estimate.minimal_loss <= ROUNDING * squares:
        raise InputError(
            "the features explain the target but for rounding, and what sketches add to that is rounding too: use "
            "method='exact' if these digits matter"
        )
    # An interval around nothing would be a claim that nothing is lost.
    if estimate.kind != "exact" and estimate.excess_loss <= 0 < estimate.minimal_loss and _is_point(estimate):
        raise InputError(
            "the sketches that leave rows out show no noise of their own: use more sketch rows, or method='exact'"
        )


def _is_point(estimate: CertificateEstimate) -> bool:
    return estimate.confidence is not None and estimate.confidence.kind == "point"


def heterogeneity_of(summaries: Sequence[Summary], moments: FitMoments) -> Heterogeneity | None:
    """Test whether sketched partitions share their coefficients; None when there is one only."""
    if len(summaries) < 2:
        return None
    try:
        return sketch_heterogeneity(moments.estimated)
    except InputError as error:
        return Heterogeneity.unavailable(str(error).rstrip("."))


def row_samples(summaries: Sequence[Summary], moments: FitMoments) -> list[RowSample]:
    """Return the sampled rows of each summary, and the chance of each to be in its sample."""
    return [
        RowSample(rows, _inclusions(summary), np.zeros(len(rows)), part.rank)
        for summary, rows, part in zip(summaries, moments.matrices, moments.sketches, strict=True)
    ]


def stacked_sample(samples: Sequence[RowSample], rank: int) -> RowSample:
    """Return samples of partitions as one, with the rank of all rows."""
    groups = [np.full(len(sample.rows), float(number)) for number, sample in enumerate(samples)]
    rows, inclusions = (
        np.concatenate([getattr(sample, name) for sample in samples]) for name in ("rows", "inclusions")
    )
    return RowSample(rows, inclusions, np.concatenate(groups), rank)


def _inclusions(summary: Summary) -> FloatArray:
    """Return the chance of each sampled row to be in the sample."""
    # Sums of weights are rounded; weights that are not all one differ from the count by far more.
    weighted = abs(summary.weight_sum - summary.row_count) > 1e-9 * summary.row_count
    with_ones = INTERCEPT in summary.columns and not weighted
    ones = summary.matrix[:, summary.columns.index(INTERCEPT)] if with_ones else None
    return get_sketch(summary.kind).chances(summary.height, summary.row_count, ones)


def doubts(method: str, count: int, choice: StackChoice | None, estimate: CertificateEstimate) -> str:
    """Say how far what is stated of the loss may be off: of weights, of mixtures, of averages of few sketches."""
    if estimate.confidence is None:
        return ""
    # Weights that came out equal take nothing for granted.
    if choice is not None and choice.taken == "information" and np.ptp(choice.weights) > 0:
        return (
            " This takes for granted that partitions share their coefficients: where they differ by less than the "
            "sketches show, more is lost. Use weighting='rows' for a certificate that does not assume it."
        )
    if choice is not None and choice.taken == "mixture":
        return (
            " How much of the average is mixed in was chosen from the same sketches: where partitions differ much, the "
            "estimate may be a third too low, and its interval holds less often than it says. Use weighting='rows' for "
            "a certificate without that doubt."
        )
    if method == "partition" and count in (2, 3):
        return " With two or three partitions this interval holds a little less often than it says."
    return ""
