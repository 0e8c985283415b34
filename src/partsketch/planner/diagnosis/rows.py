"""The rows that decide directions in their partitions, and how unlike the partitions are without them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.planner.diagnosis.results import InfluentialRow
from partsketch.planner.diagnosis.unlikeness import divergence_ratio
from partsketch.planner.diagnosis.watched_source import LEVERAGE, Influential
from partsketch.summaries.tasks import INTERCEPT
from partsketch.theory.many_moments import many_moments
from partsketch.theory.moments import PartitionMoments, pooled_moments

FloatArray = NDArray[np.float64]


class SeenRows:
    """What was seen of the rows of all partitions: which are influential, and what is left without some of them.

    Parameters
    ----------
    kept
        What was kept of each partition.
    row_counts
        Rows of each partition.
    centre
        What was taken off the columns.
    units
        Powers of two close to the spreads of the features.
    """

    def __init__(
        self, kept: Mapping[int, Influential], row_counts: Sequence[int], centre: FloatArray, units: FloatArray
    ) -> None:
        seen_of = [kept[partition] for partition in range(len(row_counts))]
        self._counts, self._centre, self._units = row_counts, centre, units
        for seen in seen_of:
            seen.settle()
        self._kept = [seen.measured(units) for seen in seen_of]
        self._moments = many_moments([seen.factor()[0] for seen in self._kept], row_counts)
        self._pooled = pooled_moments(self._moments)

    def influential(self, names: Sequence[str], features: tuple[str, ...]) -> tuple[InfluentialRow, ...]:
        """Return the rows of large leverage in their partition, largest relative leverage first."""
        found = []
        everywhere = _Leverages(self._moments)
        for partition, (seen, part) in enumerate(zip(self._kept, self._moments, strict=True)):
            leverages = _leverages(seen.rows, part)
            # A partition with few rows per column gives every row a large leverage; that is its size, not its rows.
            even = 3 * part.rank / part.row_count
            chosen = leverages >= max(LEVERAGE, min(even, 0.9))
            rows = seen.rows[chosen]
            if not len(rows):
                continue
            relative = everywhere.in_others(rows, partition) if len(self._moments) > 1 else leverages[chosen]
            for row, number, leverage, share in zip(
                rows, seen.numbers[chosen], leverages[chosen], relative, strict=True
            ):
                furthest = self._furthest(row, features)
                found.append(InfluentialRow(int(number), names[partition], float(leverage), float(share), *furthest))
        return tuple(sorted(found, key=lambda row: (-row.relative_leverage, row.row)))

    def ratio_without(self, numbers: Collection[int]) -> float | None:
        """Return D/d of the partitions without some of the influential rows.

        None where there are none to leave out, and where a partition does not determine all that the rows together do,
        or would not without these rows: D then depends on units, or is about fewer coefficients.
        """
        if not numbers:
            return None
        left = self._without(numbers)
        if any(part.rank < self._pooled.rank for part in (*self._moments, *left)):
            return None
        return divergence_ratio(left)

    def _without(self, numbers: Collection[int]) -> list[PartitionMoments]:
        # Most partitions lose none of these rows.
        gone = set(numbers)
        return [
            whole if gone.isdisjoint(seen.numbers.tolist()) else seen.moments(count, numbers)
            for seen, count, whole in zip(self._kept, self._counts, self._moments, strict=True)
        ]

    def _furthest(self, row: FloatArray, features: tuple[str, ...]) -> tuple[str, float, float]:
        """Return the feature whose value is furthest from its mean, in deviations; from zero without intercept."""
        root = self._pooled.root
        if features[0] == INTERCEPT:
            values, weight = row[1:] / row[0] if row[0] else row[1:], float(root[:, 0] @ root[:, 0])
            means = root[:, 0] @ root[:, 1:] / weight
            variances = np.sum((root[:, 1:] - np.outer(root[:, 0], means)) ** 2, axis=0) / weight
            first = 1
        else:
            values, first = row, 0
            means, variances = np.zeros(len(row)), np.sum(root**2, axis=0) / self._pooled.row_count
        spread = np.sqrt(variances)
        deviations = np.abs(values - means) / np.where(spread > 0, spread, np.inf)
        place = int(np.argmax(deviations)) if len(deviations) else 0
        value = float(values[place] * self._units[first + place] + self._centre[first + place])
        return features[first + place], value, float(deviations[place])


class _Leverages:
    """Leverages of rows in many partitions at once."""

    def __init__(self, moments: Sequence[PartitionMoments]) -> None:
        self._inverse_roots = np.hstack([part.inverse_root for part in moments])
        widths = [part.inverse_root.shape[1] for part in moments]
        # A partition whose features are all zero determines nothing, and no row has a leverage there.
        self._nonzero = np.flatnonzero(widths)
        self._starts = np.cumsum([0, *widths])[self._nonzero]
        self._count = len(moments)

    def in_others(self, rows: FloatArray, partition: int) -> FloatArray:
        """Return the mean leverage that rows of one partition would have in the others."""
        leverages = np.zeros((len(rows), self._count))
        if len(self._nonzero):
            squares = (rows @ self._inverse_roots) ** 2
            leverages[:, self._nonzero] = np.add.reduceat(squares, self._starts, axis=1)
        return np.asarray(np.delete(leverages, partition, axis=1).mean(axis=1))


def _leverages(rows: FloatArray, part: PartitionMoments) -> FloatArray:
    return np.asarray(np.sum((rows @ part.inverse_root) ** 2, axis=1))
