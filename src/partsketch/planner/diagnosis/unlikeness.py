"""How unlike partitions are, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.planner.diagnosis.results import PartitionDiagnosis
from partsketch.theory.moments import PartitionMoments, pooled_moments, trace_products

FloatArray = NDArray[np.float64]

#: A partition stands apart when its distance is beyond this and three times what chance gives random partitions.
_FAR, _TIMES_CHANCE = 0.25, 3.0


def divergence_ratio(moments: Sequence[PartitionMoments]) -> float:
    """Return D divided by the rank of all rows: one for equal partitions."""
    return float(trace_products(moments).mean() / max(1, pooled_moments(moments).rank))


def partition_diagnoses(moments: Sequence[PartitionMoments], names: Sequence[str]) -> tuple[PartitionDiagnosis, ...]:
    """Return size, rank, condition and distances of every partition."""
    rank = max(1, pooled_moments(moments).rank)
    counts = np.array([part.row_count for part in moments], dtype=np.float64)
    # Gram matrices grow with the number of rows; per row they say how unlike the rows are.
    evened = trace_products(moments) * counts[None, :] / counts[:, None]
    burg = _burg(moments, evened, counts)
    spare = counts - rank - 1
    chance = np.where(spare > 0, (rank + 1) / np.where(spare > 0, spare, 1.0), np.inf)
    apart = (evened + evened.T) / 2 / rank - 1
    found, places = [], np.arange(len(moments))
    for i, part in enumerate(moments):
        others = places != i
        distance = float(np.median(apart[i, others])) if len(moments) > 1 else 0.0
        found.append(
            PartitionDiagnosis(
                name=names[i],
                row_count=part.row_count,
                rank=part.rank,
                condition=part.condition,
                burg_divergence=None if burg is None or len(moments) < 2 else float(burg[i, others].mean() / rank),
                distance=distance,
                stands_apart=bool(distance > max(_FAR, _TIMES_CHANCE * float(chance.max()))),
            )
        )
    return tuple(found)


def _burg(moments: Sequence[PartitionMoments], evened: FloatArray, counts: FloatArray) -> FloatArray | None:
    """Return the Burg divergences of the Gram matrices per row; None when one is singular."""
    columns = moments[0].columns
    if any(part.rank < columns for part in moments):
        return None
    logs = np.array([2 * np.log(np.linalg.svd(part.root, compute_uv=False)).sum() for part in moments])
    logs -= columns * np.log(counts)
    return np.asarray(evened - columns - logs[:, None] + logs[None, :])
