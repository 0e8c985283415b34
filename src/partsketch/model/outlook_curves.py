"""From the summaries of a fit to its outlook: other numbers of partitions, other sketch sizes, the divergences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.sketch_law import GAUSSIAN, SketchLaw
from partsketch.model.certificate import Certificate
from partsketch.model.inference import exact_rows
from partsketch.model.methods import METHODS
from partsketch.model.moments import exact_moments
from partsketch.model.outlook import LossPoint, Outlook, Settled, TargetOutlook
from partsketch.model.regression import Combination, Regression
from partsketch.sketches.base import usual_size
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.summary import Summary
from partsketch.theory.approximations import noise_factor, rotation_rows, stacked_excess_loss
from partsketch.theory.design import gaussian_design_divergence
from partsketch.theory.excess_loss import unsketched_average_excess_loss
from partsketch.theory.expected_loss import expected_partition_excess_loss
from partsketch.theory.moments import pooled_moments, trace_products
from partsketch.theory.partition_certificate import certify_partition
from partsketch.theory.sketch_moments import SketchMoments, sketch_moments

FloatArray = NDArray[np.float64]

#: The matrix of divergences is kept in the model file up to this many partitions.
MOST_PARTITIONS = 64
#: Multiplications that the outlook may cost: a small part of a second.
MOST_WORK = 2e9
#: For fits without partitions: the number that a fit has unless another is asked for.
_USUAL_PARTITIONS = 8
#: Points of a curve.
_POINTS = 12


@dataclass(frozen=True)
class _Split:
    """What is known of one way to split the rows: per partition tr(G G_i⁺), ℓ_i and r_i; the loss of averaging."""

    traces: FloatArray
    losses: FloatArray
    ranks: FloatArray
    row_counts: FloatArray
    averaging: float

    def partition_loss(self, law: SketchLaw, size: int) -> float:
        factors = [
            noise_factor(size, int(rank), rotation_rows(law, int(rows)))
            for rank, rows in zip(self.ranks, self.row_counts, strict=True)
        ]
        return float(self.traces * self.losses @ factors) / len(self.traces) ** 2 + self.averaging


#: Summaries of no more numbers than this are kept for an outlook that may never be asked for.
SMALL = 2**14


def planned_outlook(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    certificates: Sequence[Certificate],
) -> Callable[[], Outlook]:
    """Return a function that finds the outlook when it is wanted.

    Until then it holds the summaries where the outlook needs them, or where they are small; where they are too large
    for it, the outlook is found at once, without them.
    """
    later = partial(_look_ahead_on_one_thread, method, summaries, combination, regression, certificates)
    small = sum(summary.height * len(summary.columns) for summary in summaries) <= SMALL
    return later if small or _is_affordable(method, summaries, regression) else Settled(later())


def _is_affordable(method: str, summaries: Sequence[Summary], regression: Regression) -> bool:
    count = len(summaries)
    splits = count**2 + sum(k * count for k in _counts_up_to(count)) * len(regression.targets)
    return METHODS[method].by_partition and 2.0 * len(regression.features) ** 3 * splits <= MOST_WORK


def _look_ahead_on_one_thread(*arguments: Any) -> Outlook:
    """Look ahead on one thread: the bits of a model file should not depend on the number of cores."""
    with one_thread_each():
        return _look_ahead(*arguments)


def _look_ahead(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    certificates: Sequence[Certificate],
) -> Outlook:
    if regression.penalty > 0:
        return Outlook.nothing("the theory covers least squares without a ridge penalty only")
    kind = METHODS[method]
    columns, count = len(regression.features), len(summaries)
    merges = _counts_up_to(count)
    known = _is_affordable(method, summaries, regression)
    divergences, why_not = _divergences(kind.by_partition, kind.sketched, known, summaries, regression)
    size = summaries[0].height if kind.sketched else usual_size(columns)
    rows = sum(summary.row_count for summary in summaries) if kind.by_partition else exact_rows(combination, summaries)
    targets = []
    for target, certificate in zip(regression.targets, certificates, strict=True):
        if certificate.noise_variance is None or certificate.minimal_loss is None:
            return Outlook(divergences, not kind.sketched, why_not, (), f"the noise is unknown: {certificate.reason}")
        found = {k: _split(summaries, k, regression, target, kind.sketched) for k in merges} if known else {}
        splits = {k: split for k, split in found.items() if split is not None}
        rank = max(solution.rank for solution in combination.solutions)
        curves = _Curves(
            rows,
            rank,
            law_of_sketches(summaries) if kind.sketched else GAUSSIAN,
            certificate.noise_variance,
            certificate.minimal_loss,
            splits,
            kind.sketched,
        )
        chosen = count if kind.by_partition or kind.sketched else _USUAL_PARTITIONS
        targets.append(curves.draw(chosen, size))
    return Outlook(divergences, not kind.sketched, why_not, tuple(targets), "")


def _counts_up_to(count: int) -> list[int]:
    """Numbers of partitions that neighbours can be merged to: divisors of k if there are some, else any."""
    if count > MOST_PARTITIONS:
        return []
    divisors = [k for k in range(1, count + 1) if count % k == 0]
    return divisors if len(divisors) > 2 or count < 4 else [*range(1, count + 1)][-_POINTS:]


def _groups(count: int, merged: int) -> list[slice]:
    borders = np.linspace(0, count, merged + 1).round().astype(int)
    return [slice(int(start), int(stop)) for start, stop in pairwise(borders)]


def _divergences(
    by_partition: bool, sketched: bool, known: bool, summaries: Sequence[Summary], regression: Regression
) -> tuple[tuple[tuple[float, ...], ...] | None, str]:
    if not by_partition:
        return None, "this method summarises all rows together, so there are no partitions to compare"
    if len(summaries) < 2:
        return None, "there is one partition only, and nothing to compare it with"
    if len(summaries) > MOST_PARTITIONS:
        return None, f"the matrix is kept for up to {MOST_PARTITIONS} partitions, and there are {len(summaries)}"
    if not known:
        return None, f"comparing {len(summaries)} partitions in {len(regression.features)} columns would take too long"
    try:
        if sketched:
            matrix = _estimated_divergences(_merged_sketches(summaries, len(summaries), regression, 0))
        else:
            moments = exact_moments(summaries, regression.features, regression.targets[0], regression.free_columns)
            matrix = trace_products(moments)
    except InputError as error:
        return None, str(error).rstrip(".")
    return tuple(tuple(_rounded(value) for value in row) for row in matrix), ""


def _estimated_divergences(moments: SketchMoments) -> FloatArray:
    """Return unbiased estimates of tr(G_i G_j⁺): two sketches are independent, and each knows its own trace."""
    inverses = list(moments.inverse_roots)
    matrix = np.array(
        [[float(np.sum((part.root @ inverse) ** 2)) for inverse in inverses] for part in moments.sketches]
    )
    np.fill_diagonal(matrix, moments.ranks)
    return matrix


def _merged_sketches(summaries: Sequence[Summary], merged: int, regression: Regression, target: int) -> SketchMoments:
    columns = (*regression.features, regression.targets[target])
    groups = [summaries[group] for group in _groups(len(summaries), merged)]
    return sketch_moments(
        [np.vstack([summary.select(columns) for summary in group]) for group in groups],
        [sum(summary.row_count for summary in group) for group in groups],
        sketch=law_of_sketches(summaries),
        free_columns=regression.free_columns,
    )


def _split(
    summaries: Sequence[Summary], merged: int, regression: Regression, target: str, sketched: bool
) -> _Split | None:
    """Return what is known of the rows in `merged` partitions, neighbours put together; None if it cannot be known."""
    try:
        if sketched:
            sketches = _merged_sketches(summaries, merged, regression, regression.targets.index(target))
            averaging = max(0.0, certify_partition(sketches).averaging_term)
            return _Split(sketches.traces, sketches.losses, sketches.ranks, sketches.row_counts, averaging)
        moments = exact_moments(summaries, regression.features, target, regression.free_columns)
        parts = [pooled_moments(moments[group]) for group in _groups(len(moments), merged)]
        return _Split(
            trace_products(parts).sum(axis=0),
            np.array([part.loss for part in parts]),
            np.array([float(part.rank) for part in parts]),
            np.array([float(part.row_count) for part in parts]),
            unsketched_average_excess_loss(parts),
        )
    except InputError:
        return None


@dataclass(frozen=True)
class _Curves:
    rows: int
    rank: int
    law: SketchLaw
    noise_variance: float
    loss: float
    splits: dict[int, _Split]
    sketched: bool

    def draw(self, chosen: int, size: int) -> TargetOutlook:
        largest = max(chosen, (self.rows - 1) // (self.rank + 2))
        counts = {1, chosen, *self.splits}
        reach = min(largest, 16 * chosen)
        if reach > chosen:
            counts |= {int(k) for k in np.geomspace(chosen, reach, _POINTS // 2).round()}
        if not self.splits:
            counts |= {int(k) for k in np.geomspace(1, chosen, _POINTS // 2).round()}
        sizes = {size} | {
            int(m) for m in np.geomspace(self.rank + 4, max(4 * size, 16 * (self.rank + 4)), _POINTS).round()
        }
        return TargetOutlook(
            tuple(self._point(k, size) for k in sorted(counts)), tuple(self._point(chosen, m) for m in sorted(sizes))
        )

    def _point(self, k: int, size: int) -> LossPoint:
        split, law = self.splits.get(k), self.law
        basis = "assumed"
        if split is not None:
            basis = "estimated" if self.sketched else "exact"
        elif self.splits and k > max(self.splits):
            basis = "extrapolated"
        whole = _finite(lambda: self.loss * self.rank * noise_factor(size, self.rank, rotation_rows(law, self.rows)))
        return LossPoint(
            partitions=k,
            sketch_size=size,
            whole=None if whole is None else whole / k,
            partition=_finite(lambda: self._partition(k, size) if split is None else split.partition_loss(law, size)),
            stack=_finite(lambda: stacked_excess_loss(self.loss, self.rank, [size] * k)),
            average=_finite(
                lambda: self.noise_variance * (self._divergence(k) - self.rank) if split is None else split.averaging
            ),
            basis=basis,
        )

    def _divergence(self, k: int) -> float:
        """D for k partitions: as Gaussian rows have it, times how much more unlike the partitions are than that."""
        design = gaussian_design_divergence(self.rows, self.rank, k)
        if not self.splits or max(self.splits) == 1:
            return design
        most = max(self.splits)
        seen = float(self.splits[most].traces.sum()) / most**2
        chance = gaussian_design_divergence(self.rows, self.rank, most) - self.rank
        return self.rank + (design - self.rank) * max(1.0, (seen - self.rank) / chance)

    def _partition(self, k: int, size: int) -> float:
        return expected_partition_excess_loss(
            self.rows, self.rank, size, k, self.noise_variance, max(self._divergence(k), float(self.rank))
        )


def _finite(value: Callable[[], float]) -> float | None:
    try:
        result = value()
    except InputError:
        return None
    return _rounded(result) if math.isfinite(result) and result >= 0 else None


def _rounded(value: float) -> float:
    """Return six digits: curves and heat maps show no more, and the model file stays small."""
    return float(f"{value:.6g}")
