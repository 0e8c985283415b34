"""From summaries to the moments that the theory works with."""

from __future__ import annotations

from collections.abc import Sequence

from partsketch.summary import Summary
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.sketch_moments import SketchMoments, read_sketch, sketch_moments


def exact_moments(
    summaries: Sequence[Summary], features: tuple[str, ...], target: str, free_columns: int
) -> list[PartitionMoments]:
    """Return the moments of each partition from its exact summary."""
    columns = (*features, target)
    return [PartitionMoments(summary.select(columns), summary.row_count, free_columns) for summary in summaries]


def moments_of_sketches(
    summaries: Sequence[Summary], features: tuple[str, ...], target: str, free_columns: int
) -> SketchMoments:
    """Return unbiased estimates of the moments of each partition from its sketch."""
    columns = (*features, target)
    return sketch_moments(
        [summary.select(columns) for summary in summaries],
        [summary.row_count for summary in summaries],
        sketch=summaries[0].kind,
        free_columns=free_columns,
    )


def read_summary(summary: Summary, columns: tuple[str, ...], free_columns: int) -> PartitionMoments:
    """Return the moments of a sketch itself."""
    return read_sketch(summary.select(columns), free_columns=free_columns, source_rows=summary.row_count)
