"""How many rows a sketch has, and why; whether it must know how many rows it is of."""

from __future__ import annotations

from partsketch.common.errors import InputError
from partsketch.sketches.base import get_sketch
from partsketch.sources.base import Source


def choose_sketch_size(
    asked: int | None,
    columns: int,
    smallest_partition: int | None,
    penalised: bool = False,
    kind: str = "gaussian",
    stacked: int = 1,
) -> tuple[int, str]:
    """Return the number of sketch rows and the reason for it; refuse sizes at which the error has no mean.

    `stacked` sketches are solved as one: it is their rows together that must exceed the columns.
    """
    sketch = get_sketch(kind)
    most = None if smallest_partition is None else sketch.largest_size(max(smallest_partition, 1))
    if asked is not None:
        if stacked > 1 and stacked * asked <= columns + 1 and not penalised:
            raise InputError(
                f"sketch_size={asked} is too small: {stacked} stacked sketches have {stacked * asked} rows, and "
                f"{columns} columns to estimate (intercept included) need at least {columns + 2}, so give at least "
                f"{-(-(columns + 2) // stacked)}."
            )
        if stacked == 1 and asked <= columns + 1 and not penalised:
            raise InputError(
                f"sketch_size={asked} is too small: with {columns} columns to estimate (intercept included) it must be "
                f"at least {columns + 2}, and at least {columns + 4} for a finite variance."
            )
        if most is not None and asked > most:
            raise InputError(
                f"sketch_size={asked} is too large: a {kind} sketch of the smallest partition's {smallest_partition} "
                f"rows has at most {most}; give a smaller one or use fewer partitions."
            )
        return int(asked), f"sketch_size={asked} was asked for"
    size, reason = sketch.default_size(columns)
    if smallest_partition is not None and smallest_partition < size:
        size = max(columns + 4, smallest_partition)
        reason = (
            f"as many rows as the smallest partition ({smallest_partition}), "
            f"but at least {columns + 4}, where errors have a finite variance"
        )
    if most is not None and most < size:
        size, reason = most, f"as many rows as a {kind} sketch of the smallest partition can have"
    return size, reason


def counted_if_needed(source: Source, kind: str) -> Source:
    """Return the source with its rows counted if this kind of sketch needs to know their number."""
    if not get_sketch(kind).needs_row_count or source.row_count is not None:
        return source
    if not source.replayable:
        raise InputError(
            f"sketch={kind!r} needs to know the number of rows before the first one, and a {source.description} can be "
            "read only once: use 'sparse_sign', or write the rows to a file first."
        )
    return source.counted()
