"""The rows that decide directions in their partitions, and what is left without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.diagnosis.results import InfluentialRow
from partsketch.diagnosis.watching import LEVERAGE, Influential
from partsketch.pieces import INTERCEPT
from partsketch.theory.moments import PartitionMoments

FloatArray = NDArray[np.float64]


def influential_rows(
    kept: Mapping[int, Influential],
    moments: Sequence[PartitionMoments],
    pooled: PartitionMoments,
    names: Sequence[str],
    features: tuple[str, ...],
) -> tuple[InfluentialRow, ...]:
    """Return the rows of large leverage in their partition, largest relative leverage first."""
    found = []
    for partition, rows, numbers, leverages in _influential(kept, moments):
        others = [part for j, part in enumerate(moments) if j != partition]
        relative = np.mean([_leverages(rows, part) for part in others], axis=0) if others else leverages
        for row, number, leverage, share in zip(rows, numbers, leverages, relative, strict=True):
            column, value, deviations = _furthest(row, pooled, features)
            found.append(
                InfluentialRow(int(number), names[partition], float(leverage), float(share), column, value, deviations)
            )
    return tuple(sorted(found, key=lambda row: (-row.relative_leverage, row.row)))


def without_rows(kept: Mapping[int, Influential], moments: Sequence[PartitionMoments]) -> list[PartitionMoments]:
    """Return the Gram matrices (targets left out) without the influential rows."""
    remaining = list(moments)
    for partition, rows, numbers, _ in _influential(kept, moments):
        part = moments[partition]
        # In coordinates where the Gram matrix is the identity, taking rows out is a matter of I − UᵀU.
        whitened = rows @ part.inverse_root
        values, vectors = np.linalg.eigh(np.eye(part.rank) - whitened.T @ whitened)
        # A direction that these rows alone span is gone; rounding must not keep a trace of it.
        values = np.where(values > 1e-12, values, 0.0)
        root = (np.sqrt(values)[:, None] * vectors.T) @ (part.inverse_root.T @ part.gram)
        factor = np.column_stack([root, np.zeros(len(root))])
        remaining[partition] = PartitionMoments(factor, part.row_count - len(numbers), part.free_columns)
    return remaining


def _influential(
    kept: Mapping[int, Influential], moments: Sequence[PartitionMoments]
) -> list[tuple[int, FloatArray, NDArray[np.int64], FloatArray]]:
    found = []
    for partition in sorted(kept):
        leverages = _leverages(kept[partition].rows, moments[partition])
        # A partition with few rows per column gives every row a large leverage; that is its size, not its rows.
        even = 3 * moments[partition].rank / moments[partition].row_count
        chosen = leverages >= max(LEVERAGE, min(even, 0.9))
        if chosen.any():
            found.append((partition, kept[partition].rows[chosen], kept[partition].numbers[chosen], leverages[chosen]))
    return found


def _leverages(rows: FloatArray, part: PartitionMoments) -> FloatArray:
    return np.asarray(np.sum((rows @ part.inverse_root) ** 2, axis=1))


def _furthest(row: FloatArray, pooled: PartitionMoments, features: tuple[str, ...]) -> tuple[str, float, float]:
    """Return the feature whose value is furthest from its mean, in standard deviations; from zero without intercept."""
    gram = pooled.gram
    if features[0] == INTERCEPT:
        values = row[1:] / row[0] if row[0] else row[1:]
        weight = gram[0, 0]
        means = gram[0, 1:] / weight
        variances = np.diag(gram)[1:] / weight - means**2
        first = 1
    else:
        values, first = row, 0
        means, variances = np.zeros(len(row)), np.diag(gram) / pooled.row_count
    spread = np.sqrt(np.maximum(variances, np.finfo(np.float64).eps * means**2))
    deviations = np.abs(values - means) / np.where(spread > 0, spread, np.inf)
    place = int(np.argmax(deviations)) if len(deviations) else 0
    return features[first + place], float(values[place]), float(deviations[place])
