"""Many sketches put one below the other at once: thousands of them, two by two, would be copied thousands of times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from partsketch.sketches.base import get_sketch
from partsketch.summaries.provenance import find_overlap
from partsketch.summaries.summary import Summary


def stack_all(summaries: Sequence[Summary]) -> Summary:
    """Return what `Summary.stack` makes of all, one after another, to the last bit."""
    first = summaries[0]
    parts = tuple(part for summary in summaries for part in summary.parts)
    streams = [(part.seed, part.stream) for part in parts if part.seed is not None]
    plain = get_sketch(first.kind).is_random and not any(summary.centre.any() for summary in summaries)
    alike = all((summary.kind, summary.columns) == (first.kind, first.columns) for summary in summaries)
    # Factors are factored again with every summary, and what is wrong is said by the pair that it is wrong of.
    if not plain or not alike or len(set(streams)) != len(streams) or find_overlap([(0, part) for part in parts]):
        return reduce(Summary.stack, summaries)
    rows = np.cumsum([0, *(summary.matrix.shape[0] for summary in summaries)])
    matrix = np.empty((rows[-1], len(first.columns)))
    low = np.zeros_like(matrix) if any(summary.low is not None for summary in summaries) else None
    for summary, start, stop in zip(summaries, rows[:-1], rows[1:], strict=True):
        matrix[start:stop] = summary.matrix
        if low is not None and summary.low is not None:
            low[start:stop] = summary.low
    matrix.flags.writeable = False  # so that it is not copied
    return Summary(
        matrix=matrix,
        low=low,
        columns=first.columns,
        kind=first.kind,
        parts=parts,
        row_count=sum(summary.row_count for summary in summaries),
        weight_sum=sum(summary.weight_sum for summary in summaries),
        about=reduce(lambda told, other: told.joined(other), (summary.about for summary in summaries)),
    )
