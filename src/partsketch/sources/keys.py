"""The values of a partition column that have been found so far: whole numbers as arrays, for there may be a million."""

from __future__ import annotations

from typing import Any

import numpy as np

from partsketch.sources.arrow_values import BoolArray
from partsketch.sources.base import IntArray
from partsketch.sources.code_kernels import mark

Key = int | float | str

#: Numbers that wait until they are sorted together with others.
_MOST_WAITING = 1 << 20
#: Range of whole numbers, in multiples of their count, up to which a table is quicker than sorting.
_WIDEST_TABLE = 16


class Keys:
    """A set of values that grows.

    Attributes
    ----------
    gaps
        Whether some rows have no value.
    """

    def __init__(self, others: set[Key] | None = None, whole: IntArray | None = None, gaps: bool = False) -> None:
        self.gaps = gaps
        self._others: set[Key] = set() if others is None else others
        self._whole = np.empty(0, dtype=np.int64)
        self._waiting: list[IntArray] = [] if whole is None or not len(whole) else [whole]

    def add(self, other: Keys) -> None:
        """Take in other values."""
        self.gaps |= other.gaps
        self._others |= other._others
        self._waiting += [part for part in (other._whole, *other._waiting) if len(part)]
        # Sorted again when they have doubled, so that all sorting together costs as much as the last.
        if sum(map(len, self._waiting)) > max(len(self._whole), _MOST_WAITING):
            self._settle()

    def __getstate__(self) -> dict[str, Any]:
        # What travels is no longer than it has to be.
        self._settle()
        return self.__dict__

    def _settle(self) -> None:
        if self._waiting:
            self._whole, self._waiting = distinct(self._whole, *self._waiting), []

    def exceed(self, most: int) -> bool:
        """Tell whether there are more than so many."""
        if len(self._others) + len(self._whole) + sum(map(len, self._waiting)) > most:
            self._settle()
        return len(self._others) + len(self._whole) > most

    def found(self) -> set[Key] | IntArray:
        """Return all values: an increasing array of whole numbers, unless there are others too."""
        self._settle()
        if self._others:
            return self._others | set(self._whole.tolist())
        return self._whole if len(self._whole) else self._others

    def __bool__(self) -> bool:
        return bool(self._others) or bool(len(self._whole)) or bool(self._waiting)


def distinct(*parts: IntArray) -> IntArray:
    """Return the different numbers in increasing order; those that lie close together need no sorting."""
    parts = tuple(part for part in parts if len(part))
    if not parts:
        return np.empty(0, dtype=np.int64)
    first, last = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
    if last - first < _WIDEST_TABLE * sum(map(len, parts)):
        seen = np.zeros(last - first + 1, dtype=bool)
        for part in parts:
            mark(np.ascontiguousarray(part), first, seen)
        return np.flatnonzero(seen) + first
    ordered = np.sort(np.concatenate(parts))
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])])


def are_whole(numbers: Any) -> bool:
    """Tell whether numbers are of a type that a signed integer of 64 bits holds."""
    return bool(np.can_cast(numbers.dtype, np.int64))


def kept_numbers(numbers: Any, missing: BoolArray | None, kept: BoolArray | None) -> Any:
    """Return the numbers of rows that count."""
    if kept is None and missing is None:
        return numbers
    counted = np.ones(len(numbers), dtype=bool) if kept is None else kept
    return numbers[counted if missing is None else counted & ~missing]
