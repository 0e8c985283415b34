"""Which exact summaries go together, and some of their partitions and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.questions.choice import Names, as_names, expanded, require_column, require_distinct
from partsketch.sketches.base import get_sketch
from partsketch.summaries.group_summaries import GroupSummaries
from partsketch.summaries.summary import Summary


def check_factors(factors: Sequence[Summary]) -> None:
    """Refuse summaries that are not exact, or not of the same columns."""
    if not factors:
        raise InputError("There are no summaries: give at least one partition.")
    if isinstance(factors, GroupSummaries):
        return  # all of one kind, and of the same columns
    first = factors[0]
    for summary in factors:
        if get_sketch(summary.kind).is_random:
            raise InputError(
                f"Questions need exact summaries, and {summary.parts[0].name!r} is a {summary.kind} sketch: make "
                "it with summarise, or use combine."
            )
        if summary.columns != first.columns:
            raise InputError(
                f"{first.parts[0].name!r} and {summary.parts[0].name!r} have different columns: summarise the same "
                "columns in the same order."
            )


def selected(
    factors: Sequence[Summary], names: Sequence[str], partitions: Sequence[str] | None, columns: Names | None
) -> tuple[Summary, ...]:
    """Return the summaries of some partitions, of some columns; None keeps all."""
    if partitions is not None:
        numbers = {name: number for number, name in enumerate(names)}
        wanted = as_names(partitions, "partition")
        for name in wanted:
            if name not in numbers:
                raise InputError(f"There is no partition {name!r}: see names, such as {list(names[:5])}.")
        if len(set(wanted)) != len(wanted):
            raise InputError("A partition is named twice: name it once.")
        factors = tuple(factors[numbers[name]] for name in wanted)
    if columns is not None:
        chosen = expanded(as_names(columns), factors[0].about.encoding)
        if not chosen:
            raise InputError("columns names none: name at least one, or leave it out for all.")
        require_distinct(chosen)
        for name in chosen:
            require_column(factors[0].columns, name)
        factors = tuple(summary.narrowed(tuple(chosen)) for summary in factors)
    return tuple(factors)


def put_together(factors: Sequence[Summary]) -> tuple[Summary, ...]:
    """Return the summaries with those of partitions of the same name stacked; partitions without a name stay apart."""
    found: dict[str, Summary] = {}
    with one_thread_each():
        for place, summary in enumerate(factors):
            name = summary.parts[0].partition or f"\0{place}"
            found[name] = found[name].stack(summary) if name in found else summary
    return tuple(found.values())


def split_sentences(factors: Sequence[Summary]) -> tuple[str, ...]:
    """Say that partitions of the same name count as clusters of their own, if there are such."""
    names = [summary.parts[0].partition for summary in factors]
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if not twice:
        return ()
    return (
        f"Partitions of the same name ({len(twice)}, such as {twice[0]!r}) of several files are taken for clusters of "
        "their own: if they are the same clusters, ask summaries.together() (--together).",
    )
