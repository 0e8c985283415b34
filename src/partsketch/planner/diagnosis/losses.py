"""What each method would lose on given partitions, from their exact summaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from partsketch.common.errors import InputError
from partsketch.planner.diagnosis.results import CurvePoint, MethodLoss
from partsketch.theory.excess_loss import partition_excess_loss, unsketched_average_excess_loss, whole_excess_loss
from partsketch.theory.many_moments import many_moments
from partsketch.theory.moments import PartitionMoments, pooled_moments
from partsketch.theory.stacking_given_data import stacked_excess_loss_given_data

Moments = Sequence[PartitionMoments]


def method_losses(moments: Moments, random_moments: Moments, size: int) -> tuple[MethodLoss, ...]:
    """Return the loss of every method with Gaussian sketches, for these partitions and for random ones."""
    found = [MethodLoss("exact", None, 0.0, 0.0 if random_moments else None, "exact")]
    for method, sketch_size, kind in (
        ("average", None, "exact"),
        ("partition", size, "exact"),
        ("stack", size, "approximate" if len(moments) > 1 else "exact"),
        ("whole", size, "exact"),
    ):
        loss = _relative(method, moments, size)
        found.append(MethodLoss(method, sketch_size, loss, _relative(method, random_moments, size), kind))
    return tuple(found)


def loss_curve(moments: Moments, size: int) -> tuple[CurvePoint, ...]:
    """Return what methods would lose with fewer partitions: neighbours merged in pairs, again and again."""
    points = []
    parts = list(moments)
    while True:
        losses = {method: _relative(method, parts, size) for method in ("average", "partition", "stack", "whole")}
        points.append(CurvePoint(len(parts), **losses))
        if len(parts) == 1:
            return tuple(reversed(points))
        pairs = [parts[start : start + 2] for start in range(0, len(parts), 2)]
        stacked = [np.vstack([part.factor for part in pair]) for pair in pairs]
        counts = [sum(part.row_count for part in pair) for pair in pairs]
        parts = many_moments(stacked, counts, parts[0].free_columns)


def _relative(method: str, moments: Moments, size: int) -> float | None:
    if not moments:
        return None
    pooled = pooled_moments(moments)
    losses: dict[str, Callable[[], float]] = {
        "average": lambda: unsketched_average_excess_loss(moments),
        "partition": lambda: partition_excess_loss(moments, size),
        "stack": lambda: stacked_excess_loss_given_data(moments, size),
        "whole": lambda: whole_excess_loss(pooled.loss, pooled.rank, size, len(moments)),
    }
    try:
        loss = losses[method]()
    except InputError:
        return None
    return loss / pooled.loss if pooled.loss > 0 else None
