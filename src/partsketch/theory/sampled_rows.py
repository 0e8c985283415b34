"""Samples of rows: what they lose is found from the sampled rows themselves, one left out at a time.

A sample keeps single rows, so that noise which depends on the features, and rows of large leverage, reach the fit
undiluted; a formula from sizes alone gave 0.24 to 0.70 of the truth on heavy-tailed rows. Leaving out one row at a
time shows what each does to the fit; the sum of the squares of that, each times the chance of its row to be left out,
is what the sample loses. What no sampled row shows, nothing can tell: where one row of a uniform sample decides a
direction by itself, or its rows weigh less evenly than Gaussian ones, others like them may be outside, and nothing is
claimed, however large the sample is: where noise grows with the features, what is lost has tails twice as heavy as
those of the rows. A sample of heavy-tailed rows that looks even is one that missed the rows that weigh most. So upper
ends allow for rows that no sample shows: with confidence p they are fewer than `−log(1 − p)/m` of all (for 95% the rule
of three), and if each weighs as much as the heaviest row in the sample, of leverage h, they add `−log(1 − p) h/r` of
the loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import OF_SAMPLED_ROWS
from partsketch.common.special import betaincinv
from partsketch.theory.arguments import FloatArray
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.chi_squares import deviation_from_estimate, log_moments, mean_of_inverses, ratio_confidence
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution
from partsketch.theory.whole import nothing_lost

#: With fewer sampled rows per column than these, large leverages cannot be told from small samples: of a uniform
#: sample, which misses most of the rows that matter, and of one that was drawn by leverage.
_LEAST_UNIFORM, _LEAST_BY_LEVERAGE = 10, 5

#: A leverage up to this is harmless whatever the size of the sample.
_HARMLESS = 0.2

#: Chance that a sample of rows with Gaussian features exceeds the bound of the largest leverage.
_CHANCE = 0.01

#: Squared leverages may sum to so many standard deviations more than those of Gaussian rows, which is a chance of 1%.
_DEVIATIONS = 3.0


@dataclass(frozen=True, eq=False)
class RowSample:
    """Sampled rows that one fit is made to.

    Attributes
    ----------
    rows : array of shape (m, d + 1)
        The rows times 1/√π, the target last.
    inclusions : array of shape (m,)
        The chance π of each row to be in the sample; one for rows that are always in it.
    groups : array of shape (m,)
        Number of the partition that each was sampled from; all zero for a sample of all rows.
    rank : int
        Rank of the features.
    """

    rows: FloatArray
    inclusions: FloatArray
    groups: FloatArray
    rank: int

    @property
    def is_uniform(self) -> bool:
        """Whether all rows of a partition had the same chance."""
        return all(np.ptp(self.inclusions[self.groups == group]) == 0 for group in np.unique(self.groups))

    def basis(self) -> FloatArray:
        """Return an orthonormal basis of the features; squared lengths of its rows are the leverages."""
        features = self.rows[:, :-1]
        lengths = np.linalg.norm(features, axis=0)
        scaled = features / np.where(lengths > 0, lengths, 1.0)
        return np.asarray(np.linalg.svd(scaled, full_matrices=False)[0][:, : self.rank])


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """What leaving out one row at a time shows: changes of the fit (m × r), their squares, loss of all rows."""

    changes: FloatArray
    terms: FloatArray
    loss: float


def require_even_leverage(sample: RowSample) -> None:
    """Refuse a sample in which a row that might have been left out decides a direction, or in which rows are uneven.

    The bound of a leverage is what rows with Gaussian features exceed in one sample of a hundred, and at least 0.2;
    that of the sum of squared leverages of a uniform sample stands in `_largest_sum`.
    """
    size, rank = len(sample.rows), sample.rank
    open_rows = sample.inclusions < 1
    if rank == 0 or not open_rows.any():
        return
    least = rank * (_LEAST_UNIFORM if sample.is_uniform else _LEAST_BY_LEVERAGE)
    if size < least:
        raise InputError(
            f"{size} sampled rows do not show whether single rows decide the fit of {rank} columns: use at least "
            f"{least}, or sketch='gaussian' or 'srht'."
        )
    basis = sample.basis()
    leverages = np.sum(basis**2, axis=1)
    largest = float(leverages[open_rows].max())
    allowed = max(_HARMLESS, float(betaincinv(rank / 2, (size - rank) / 2, 1 - _CHANCE / size)))
    if largest > allowed:
        raise InputError(
            f"one sampled row has a leverage of {largest:.2f} (rows as even as Gaussian ones stay below "
            f"{allowed:.2f}), and rows like it may be missing from the sample: use sketch='gaussian' or 'srht', or "
            "method='exact'."
        )
    if not sample.is_uniform:
        return
    found, most = float(leverages @ leverages), _largest_sum(sample, basis)
    # Rows of one leverage, as those of an intercept alone, are at the limit.
    if found > most * (1 + 1e-9):
        raise InputError(
            f"squared leverages of the sampled rows sum to {found:.3g} (those of rows as even as Gaussian ones to at "
            f"most {most:.3g}), and rows that weigh more may be missing from the sample: use sketch='gaussian' or "
            "'srht', or method='exact'."
        )


def _largest_sum(sample: RowSample, basis: FloatArray) -> float:
    """Return what squared leverages may sum to: moments of Mardia's kurtosis of Gaussian rows (Mardia, 1974).

    Rows of partitions that count differently are as uneven as so many fewer rows.
    """
    counts = 1 / sample.inclusions
    rows = float(counts.sum() ** 2 / (counts @ counts))
    rank = float(sample.rank)
    ones = np.sqrt(counts)
    # Where a constant is among the features, rows are centred, and each has a leverage of 1/m for it.
    constant = float(np.sum((basis.T @ ones) ** 2)) > (1 - 1e-9) * float(counts.sum())
    free = rank - constant
    total = rows if constant else rows + 1
    mean = free * (free + 2) * (total - 1) / (total + 1) / rows
    variance = 8 * free * (free + 2) * (total - 3) * (total - free - 1) * (total - free + 1)
    variance /= (total + 1) ** 2 * (total + 3) * (total + 5) * rows**2
    mean += constant * (1 + 2 * free) / rows
    return mean + _DEVIATIONS * math.sqrt(max(variance, 0.0))


def certify_row_samples(samples: Sequence[RowSample], row_count: int) -> CertificateEstimate:
    """Estimate what an average of fits to samples of rows loses (Extension of Theorem 3.1).

    Parameters
    ----------
    samples : sequence of RowSample
        One for each fit: k samples of all rows, or a single one of samples of all partitions, stacked.
    row_count : int
        All rows, n.

    Returns
    -------
    CertificateEstimate
        Marked "approximate", or "exact" when nothing was left out.
    """
    rank, number = samples[0].rank, len(samples)
    if all(np.all(sample.inclusions >= 1) for sample in samples):
        losses = [float(sample.rows[:, -1] @ _residuals(sample, sample.basis())) for sample in samples]
        return nothing_lost(float(np.mean(losses)), rank, row_count, number)
    for sample in samples:
        require_even_leverage(sample)
    found = [_leave_out(sample) for sample in samples]
    loss = float(np.mean([one.loss for one in found])) * (1 - rank / row_count)
    excess = float(sum(one.terms.sum() for one in found)) / number**2
    above, mean, variance, freedom = _law(found, len(samples[0].rows), rank)
    in_gram = 4 + number * (len(samples[0].rows) - rank - 3)
    relative = excess / loss if loss > 0 else math.nan
    heaviest = max(_heaviest(sample) for sample in samples)
    spread = _with_unseen_rows(ratio_confidence(excess, above, mean, variance), heaviest)
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=deviation_from_estimate(excess, above, float(in_gram), freedom),
        relative_excess_loss=relative,
        minimal_loss=loss,
        divergence=float(rank),
        noise_variance=loss / (row_count - rank) if row_count > rank else math.nan,
        sketch_terms=np.array([float(one.terms.sum()) for one in found]) / number**2,
        averaging_term=0.0,
        kind="approximate",
        reason=OF_SAMPLED_ROWS,
        confidence=spread,
        relative_confidence=spread.scaled(1 / loss) if loss > 0 else None,
    )


def _heaviest(sample: RowSample) -> float:
    """Return the largest leverage in a uniform sample, per column; samples by leverage miss no row that weighs much."""
    if not sample.is_uniform or sample.rank == 0:
        return 0.0
    return float(np.sum(sample.basis() ** 2, axis=1).max()) / sample.rank


def _with_unseen_rows(seen: ConfidenceDistribution, heaviest: float) -> ConfidenceDistribution:
    """Widen a distribution by what rows add that no sample shows, both taken to be large together."""
    if heaviest == 0 or seen.kind == "point":
        return seen
    ends = (seen.quantile(chance) * (1 - math.log1p(-chance) * heaviest) for chance in PROBABILITIES)
    return ConfidenceDistribution("quantiles", tuple(ends))


def _residuals(sample: RowSample, basis: FloatArray) -> FloatArray:
    target = sample.rows[:, -1]
    return np.asarray(target - basis @ (basis.T @ target))


def left_out_one_by_one(sample: RowSample) -> tuple[FloatArray, FloatArray, float]:
    """Return a basis of the features, changes of the fit in it as rows are left out, and what their squares count."""
    require_even_leverage(sample)
    basis = sample.basis()
    freedom = len(basis) - sample.rank - 1
    return basis, _changes(sample, basis), (freedom - 1) / freedom if freedom > 0 else 1.0


def _changes(sample: RowSample, basis: FloatArray) -> FloatArray:
    remaining = _remaining(basis)
    changes = basis * (_residuals(sample, basis) / remaining * np.sqrt(1 - sample.inclusions))[:, None]
    centred = changes.copy()
    for group in np.unique(sample.groups):
        # What all rows of a partition have in common is that it differs from the others: no noise of the sample.
        chosen = sample.groups == group
        count = int(chosen.sum())
        centred[chosen] = (changes[chosen] - changes[chosen].mean(axis=0)) * math.sqrt(count / max(count - 1, 1))
    return centred


def _remaining(basis: FloatArray) -> FloatArray:
    # Rows that are always in the sample may be alone in a direction; they add nothing, but must not divide by zero.
    return np.asarray(np.maximum(1 - np.sum(basis**2, axis=1), 1e-12))


def _leave_out(sample: RowSample) -> _LeftOut:
    basis = sample.basis()
    centred = _changes(sample, basis)
    # One row less makes the loss larger by this factor when rows are alike.
    freedom = len(basis) - sample.rank - 1
    terms = np.sum(centred**2, axis=1) * (freedom - 1) / freedom
    return _LeftOut(centred, terms, float(np.sum(_residuals(sample, basis) ** 2 / _remaining(basis))))


def _law(found: Sequence[_LeftOut], size: int, rank: int) -> tuple[float, float, float, float]:
    """Return the law of the excess loss divided by its estimate, as for stacked sketches, found from the rows."""
    spread = np.sum([one.changes.T @ one.changes for one in found], axis=0)
    parts = np.concatenate([one.terms for one in found])
    total = float(parts.sum())
    if total <= 0:
        return float(rank), 0.0, 0.0, math.inf
    above = min(float(np.square(np.trace(spread))) / float(np.sum(spread * spread)) * (1 + rank / size), float(rank))
    deviations = parts - parts.mean()
    squares = float(deviations @ deviations) * len(parts) / (len(parts) - 1)
    freedom = 2 * total**2 / squares if squares > 0 else math.inf
    averaged, growth = mean_of_inverses(float(size - rank + 1), len(found))
    of_gram, of_noise = log_moments(averaged), log_moments(freedom)
    mean = math.log1p(-2 / (size - rank + 1)) + math.log(growth) - of_gram[0] - of_noise[0]
    return above, mean, of_gram[1] + of_noise[1], freedom
