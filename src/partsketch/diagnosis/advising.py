"""From numbers to advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from partsketch.diagnosis.results import Diagnosis
from partsketch.report.units import percentage
from partsketch.wording import listed

#: D/d beyond this many times the value for random partitions is called large.
_LARGE = 1.2
#: A remedy is worth naming when it takes away at least this part of what is too much.
_WORTH = 0.5
#: Averaging is said to lose more than stacking from this factor on, when it matters at all.
_TIMES, _MATTERS = 2.0, 0.001
_HETEROGENEOUS = 0.01
#: A row of this relative leverage weighs as much as all rows of another partition in some direction.
_HEAVY = 1.0
_NAMED = 8
#: Fewer rows per column and partition than this make averages lossy whatever the rows are.
_ROWS_PER_COLUMN = 10


def advise(found: Diagnosis) -> Diagnosis:
    """Return the diagnosis with its advice."""
    sentences = [*_on_columns(found), *_on_partitions(found), *_on_methods(found)]
    if not sentences:
        sentences = ["The partitions are as alike as random ones: averaging them costs next to nothing."]
    return replace(found, advice=tuple(sentences))


def _on_columns(found: Diagnosis) -> Iterator[str]:
    for column, others in found.aliased:
        depends = f"it is determined by {listed(others)}" if others else "it is zero in every row"
        yield f"Drop column {column!r}: {depends}."


def _on_partitions(found: Diagnosis) -> Iterator[str]:
    expected = found.random_divergence_ratio
    if len(found.partitions) == 1:
        return
    if expected is not None and found.divergence_ratio > _LARGE * expected:
        excess = found.divergence_ratio - 1
        shuffled = found.shuffled_divergence_ratio
        if shuffled is not None:
            if shuffled - 1 < (1 - _WORTH) * excess:
                yield (
                    f"Shuffle the rows (partition_by='shuffle') if they may move: D/d would fall from "
                    f"{found.divergence_ratio:.3g} to {shuffled:.3g}."
                )
            else:
                yield f"Shuffling does not help: D/d of random partitions of these rows is {shuffled:.3g}."
        apart = sorted((part for part in found.partitions if part.stands_apart), key=lambda part: -part.distance)
        if apart:
            yield f"Look at partition {apart[0].name!r}: it is most unlike the others."
    yield from _on_rows(found)
    rows = min(part.row_count for part in found.partitions)
    if rows < _ROWS_PER_COLUMN * found.rank:
        most = max(1, found.row_count // (_ROWS_PER_COLUMN * found.rank))
        yield (
            f"Use fewer partitions: the smallest has {rows:,} rows for {found.rank} columns; with at most {most} each "
            f"would have ten rows per column."
        )
    singular = [part.name for part in found.partitions if part.rank < found.rank]
    if singular:
        yield (
            f"{len(singular)} of {len(found.partitions)} partitions do not determine all coefficients "
            f"({listed(singular, 4)}): stack their summaries or use fewer partitions."
        )


def _on_rows(found: Diagnosis) -> Iterator[str]:
    heavy = [row for row in found.influential_rows if row.relative_leverage >= _HEAVY]
    if not heavy or found.ratio_without_rows is None:
        return
    columns = [name for name, _ in Counter(row.column for row in heavy).most_common(3)]
    named = ", ".join(str(row.row) for row in heavy[:_NAMED])
    more = f" and {len(heavy) - _NAMED} more" if len(heavy) > _NAMED else ""
    yield (
        f"Drop rows with extreme {listed(columns)}, or pool them and send them apart (rows {named}{more}): each "
        "outweighs all rows of another partition in some direction. Without all rows of large leverage D/d would be "
        f"{found.ratio_without_rows:.3g} instead of {found.divergence_ratio:.3g}."
    )


def _on_methods(found: Diagnosis) -> Iterator[str]:
    losses = {loss.method: loss.excess for loss in found.losses}
    if found.heterogeneity is not None and found.heterogeneity.p_value < _HETEROGENEOUS:
        yield (
            f"Coefficients differ between partitions more than chance allows (p = {found.heterogeneity.p_value:.1g}): "
            "one model for all describes none of them well."
        )
    stack, partition, average = losses["stack"], losses["partition"], losses["average"]
    if stack is not None and partition is not None and partition > max(_TIMES * stack, _MATTERS):
        yield (
            f"Stack sketches instead of averaging their fits: {percentage(stack)} lost instead of "
            f"{percentage(partition)}."
        )
    if average is not None and average > _MATTERS:
        yield (
            f"Use exact least squares rather than the average of exact fits: the same factors lose nothing instead of "
            f"{percentage(average)}."
        )
