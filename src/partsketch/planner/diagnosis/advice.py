"""From numbers to advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from partsketch.common.units import p_value_phrase, percentage
from partsketch.model.sentences import listed
from partsketch.planner.diagnosis.results import Diagnosis

#: D/d beyond this many times the value for random partitions is called large.
_LARGE = 1.2
#: A remedy that takes away the first part of what is too much is enough; one that takes away less than the second is
#: none.
_ENOUGH, _NOTICEABLE = 0.5, 0.1
#: Averaging is said to lose more than stacking from this factor on, when it matters at all.
_TIMES, _MATTERS = 2.0, 0.001
_HETEROGENEOUS = 0.01
_NAMED = 8
#: Fewer rows per column and partition than this make averages lossy whatever the rows are.
_ROWS_PER_COLUMN = 10


def advise(found: Diagnosis) -> Diagnosis:
    """Return the diagnosis with its advice: what would follow was computed, and stands beside it.

    Where that is not known, the fact is stated without advice.
    """
    sentences = [*_on_columns(found), *_on_partitions(found), *_on_methods(found)]
    return replace(found, advice=tuple(sentences) or (_nothing_to_do(found),))


def _nothing_to_do(found: Diagnosis) -> str:
    average = next(loss.excess for loss in found.losses if loss.method == "average")
    if len(found.partitions) == 1 or average is None or found.random_divergence_ratio is None:
        return "Nothing was found that a change would mend."
    return (
        f"The partitions are as alike as random ones: the average of their exact fits loses {percentage(average)}, "
        "next to nothing."
    )


def _on_columns(found: Diagnosis) -> Iterator[str]:
    for column, others in found.aliased:
        depends = f"it is determined by {listed(others)}" if others else "it is zero in every row"
        yield f"Drop column {column!r}: {depends}."


def _on_partitions(found: Diagnosis) -> Iterator[str]:
    if len(found.partitions) == 1:
        return
    expected = found.random_divergence_ratio
    if expected is not None and found.divergence_ratio > _LARGE * expected:
        yield from _on_shuffling(found)
        apart = sorted((part for part in found.partitions if part.stands_apart), key=lambda part: -part.distance)
        if apart:
            yield f"Look at partition {apart[0].name!r}: it is most unlike the others."
    yield from _on_rows(found)
    yield from _on_sizes(found)
    singular = [part.name for part in found.partitions if part.rank < found.rank]
    if singular:
        yield (
            f"{len(singular)} of {len(found.partitions)} partitions do not determine all coefficients "
            f"({listed(singular, 4)}): their fits are those of least norm, and so biased."
        )


def _on_shuffling(found: Diagnosis) -> Iterator[str]:
    shuffled = found.shuffled_divergence_ratio
    if shuffled is None:
        return
    change = f"from {found.divergence_ratio:.3g} to {shuffled:.3g}, in one shuffle that was tried"
    if _takes_away(found, shuffled) >= _ENOUGH:
        yield f"Shuffle the rows (partition_by='shuffle') if they may move: D/d would fall {change}."
    elif _takes_away(found, shuffled) >= _NOTICEABLE:
        yield f"Shuffling would help, not enough: D/d would fall {change}."
    else:
        yield f"Shuffling does not help: D/d would go {change}."


def _takes_away(found: Diagnosis, ratio: float) -> float:
    """Return which part of what D/d is above one would be gone with this ratio."""
    return (found.divergence_ratio - ratio) / max(found.divergence_ratio - 1, 1e-12)


def _on_rows(found: Diagnosis) -> Iterator[str]:
    heavy, ratio = [row for row in found.influential_rows if row.outweighs], found.ratio_without_heavy_rows
    if not heavy:
        return
    columns = [name for name, _ in Counter(row.column for row in heavy).most_common(3)]
    named = ", ".join(str(row.row) for row in heavy[:_NAMED])
    more = f" and {len(heavy) - _NAMED} more" if len(heavy) > _NAMED else ""
    rows, outweigh, them = ("Row", "outweighs", "it") if len(heavy) == 1 else ("Rows", "each outweigh", "them")
    which = f"{rows} {named}{more}, extreme in {listed(columns)}"
    fact = f"{which}, {outweigh} all rows of another partition in some direction"
    if ratio is None:
        yield f"{fact}. What D/d would be without {them} is not known."
    elif _takes_away(found, ratio) >= _NOTICEABLE:
        yield (
            f"{fact}. Drop {them} if wrong, or pool {them} and send {them} apart: D/d of the others would fall from "
            f"{found.divergence_ratio:.3g} to {ratio:.3g}."
        )
    else:
        change = f"from {found.divergence_ratio:.3g} to {ratio:.3g}"
        yield f"{fact}. Dropping {them} does not help: D/d of the others would go {change}."


def _on_sizes(found: Diagnosis) -> Iterator[str]:
    sizes = [part.row_count for part in found.partitions]
    if min(sizes) >= _ROWS_PER_COLUMN * found.rank:
        return
    fact = f"The smallest partition has {min(sizes):,} rows for {found.rank} columns"
    losses = {point.partitions: point.average for point in found.curve}
    now = losses[len(sizes)]
    while len(sizes) > 1 and min(sizes) < _ROWS_PER_COLUMN * found.rank:
        sizes = [sum(sizes[start : start + 2]) for start in range(0, len(sizes), 2)]
    then = losses[len(sizes)]
    if now is None or then is None or then >= now:
        yield f"{fact}: averages of so few rows per column are not reliable."
    else:
        yield (
            f"Use fewer partitions: {fact[0].lower()}{fact[1:]}. With neighbours merged to {len(sizes)} the average of "
            f"exact fits would lose {percentage(then)} instead of {percentage(now)}."
        )


def _on_methods(found: Diagnosis) -> Iterator[str]:
    losses = {loss.method: loss.excess for loss in found.losses}
    chance = None if found.heterogeneity is None else found.heterogeneity.p_value
    if chance is not None and chance < _HETEROGENEOUS:
        yield (
            f"Coefficients differ between partitions more than chance allows ({p_value_phrase(chance, 1)}): "
            "one model for all describes none of them well."
        )
    stack, partition, average = losses["stack"], losses["partition"], losses["average"]
    if stack is not None and partition is not None and partition > max(_TIMES * stack, _MATTERS):
        yield (
            f"Stack sketches instead of averaging their fits: about {percentage(stack)} lost instead of "
            f"{percentage(partition)}."
        )
    if average is not None and average > _MATTERS:
        yield (
            f"Use exact least squares rather than the average of exact fits: the same factors lose nothing instead of "
            f"{percentage(average)}."
        )
