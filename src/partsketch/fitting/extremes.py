"""Values so large or so small that what is computed from them is beyond what a double holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from partsketch.common.errors import InputError, PartsketchError
from partsketch.sources.base import Source

#: Values within these bounds can be squared and multiplied as often as any formula does.
_SMALLEST, _LARGEST = 1e-75, 1e75


@contextmanager
def within_doubles(source: Source | None) -> Iterator[None]:
    """Turn an overflow that extreme values of a source explain into a sentence that names their column.

    Where no value is extreme the error is a fault of the program, and stays what it is.
    """
    try:
        yield
    except PartsketchError:
        raise
    except (ArithmeticError, np.linalg.LinAlgError, ValueError) as error:
        found = None if source is None or not source.replayable else _most_extreme(source)
        if found is None:
            raise
        raise InputError(
            f"Column {found[0]!r} has values such as {found[1]:.3g}, and what is computed of them is beyond what a "
            "double holds: divide the column by a constant, so that its values are near 1."
        ) from error


def _most_extreme(source: Source) -> tuple[str, float] | None:
    """Return the column whose values are furthest from 1, and one of these; None when all are moderate."""
    names = (*source.feature_names, *source.target_names)
    largest, smallest = np.zeros(len(names)), np.full(len(names), np.inf)
    for block in source.read(0, None):
        values = np.empty((len(names), len(block)))
        block.copy_into(values, 0, len(block))
        sizes = np.abs(values)
        largest = np.maximum(largest, sizes.max(axis=1, initial=0.0))
        smallest = np.minimum(smallest, np.where(sizes > 0, sizes, np.inf).min(axis=1, initial=np.inf))
    worst = int(np.argmax(np.maximum(np.log(np.maximum(largest, 1.0)), -np.log(np.minimum(smallest, 1.0)))))
    for value in (largest[worst], smallest[worst]):
        if value > _LARGEST or value < _SMALLEST:
            return names[worst], float(value)
    return None
