"""The pass over the data that finds the levels of encoded columns and the values of the partition column."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import BoolArray, NoTextError, as_numbers, coded, distinct_texts, missing_values
from partsketch.sources.base import IntArray
from partsketch.sources.code_kernels import look_up
from partsketch.sources.keys import Key, Keys, are_whole, distinct, kept_numbers
from partsketch.sources.storage import RawBlock

T = TypeVar("T")

# Beyond these numbers a column is an identifier, not a category, and would exhaust memory.
MOST_LEVELS = 10_000
MOST_PARTITIONS = 1_000_000
#: Range of whole numbers up to which tables are quicker than sorting.
_WIDEST_TABLE = 1 << 20


# Compared by identity: its values may be an array.
@dataclass(frozen=True, eq=False)
class PartitionColumn:
    """The distinct values of a partition column, in increasing order: numbers, or texts for every other type.

    Attributes
    ----------
    complete
        Whether every row is known to have one.
    held
        The column, a chunked array of Arrow's, if it was kept when it was looked through. It does not travel.
    """

    name: str
    values: tuple[Key, ...] | IntArray
    complete: bool = False
    held: Any = None

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The values as text."""
        if isinstance(self.values, np.ndarray):
            return tuple(map(str, self.values.tolist()))
        if all(type(value) is int for value in self.values):
            return tuple(map(str, self.values))
        return tuple(value if isinstance(value, str) else _number_text(value) for value in self.values)

    def labels(self, column: Any) -> tuple[IntArray, BoolArray | None]:
        """Return the index of every row's value, and where it is missing."""
        if not _has_number_keys(column):
            codes, absent, unknown, found = coded(column, self._codes)
            if unknown is not None:
                raise self._changed(found[0])
            return codes, absent if absent.any() else None
        numbers, missing = _keys(column)
        values = self._numbers
        if values.dtype.kind != "f" and numbers.dtype.kind != "f":
            # Two integer types would be compared as float64, which confuses large numbers.
            numbers = numbers.astype(values.dtype, copy=False)
        if self._table is not None and numbers.dtype == np.int64:
            labels = np.empty(len(numbers), dtype=np.int64)
            if look_up(np.ascontiguousarray(numbers), values[0], values[-1], *self._table, labels):
                return labels, missing
        else:
            labels = np.minimum(np.searchsorted(values, numbers), len(values) - 1)
        differs = values[labels] != numbers
        if missing is not None:
            differs &= ~missing
        if differs.any():
            raise self._changed(str(numbers[np.argmax(differs)]))
        return labels.astype(np.int64, copy=False), missing

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {text: i for i, text in enumerate(map(str, self.values))}

    @cached_property
    def _numbers(self) -> NDArray[Any]:
        if isinstance(self.values, np.ndarray):
            return self.values
        return np.array(self.values, dtype=self._number_type())

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], IntArray] | None:
        """A bit for every whole number from the first value to the last, and how many are set before each word.

        None where these are many more than values.
        """
        values = self._numbers
        reach = int(values[-1]) - int(values[0]) if values.dtype == np.int64 and values.size else -1
        if not 0 <= reach < _WIDEST_TABLE + 4 * len(values):
            return None
        words = reach // 64 + 1
        seen = np.zeros(64 * words, dtype=bool)
        seen[values - values[0]] = True
        set_in = np.count_nonzero(seen.reshape(words, 64), axis=1)
        return np.packbits(seen, bitorder="little").view("<u8"), np.cumsum(set_in) - set_in

    def __getstate__(self) -> dict[str, Any]:
        # What is made of the values is made again where they arrive.
        return {"name": self.name, "values": self.values, "complete": self.complete}

    def _number_type(self) -> type[np.generic]:
        if not all(isinstance(value, int) for value in self.values):
            return np.float64
        return np.uint64 if max(self.values) > np.iinfo(np.int64).max else np.int64  # type: ignore[operator]

    def _changed(self, value: str) -> InputError:
        return InputError(
            f"Partition column '{self.name}' has the value '{value}' that was not there when the data was opened: "
            "open it again."
        )


def distinct_keys(column: Any, kept: BoolArray | None) -> set[Key]:
    """Return the values of a partition column that occur in the rows that are kept (None: all)."""
    if not _has_number_keys(column):
        return set(distinct_texts(column, kept))
    numbers = kept_numbers(*_keys(column), kept)
    return set((distinct(numbers.astype(np.int64)) if are_whole(numbers) else np.unique(numbers)).tolist())


def keys_of(column: Any, kept: BoolArray | None) -> Keys:
    """Return the values of a partition column that occur in the rows that are kept (None: all)."""
    gaps = missing_values(column) is not None
    if _has_number_keys(column):
        numbers, missing = _keys(column)
        if are_whole(numbers):
            return Keys(whole=kept_numbers(numbers, missing, kept).astype(np.int64, copy=False), gaps=gaps)
    return Keys(distinct_keys(column, kept), gaps=gaps)


def sorted_keys(keys: Iterable[Key] | IntArray) -> tuple[Key, ...] | IntArray:
    """Sort values numerically when all of them are numbers or read as numbers, else as text; an array is sorted."""
    if isinstance(keys, np.ndarray):
        return keys
    keys = tuple(keys)
    if all(type(key) is int for key in keys):
        return tuple(sorted(keys))
    try:
        numbers = {key: float(key) for key in keys}
    except ValueError:
        numbers = {}
    if numbers and all(math.isfinite(number) for number in numbers.values()):
        return tuple(sorted(numbers, key=lambda key: (key if not isinstance(key, str) else numbers[key], str(key))))
    return tuple(sorted(keys, key=lambda key: (isinstance(key, str), key)))


@dataclass
class Found:
    """Levels of encoded columns and values of the columns of labels that occur in some rows."""

    levels: dict[str, set[str]]
    keys: dict[str, Keys]

    def add(self, other: Found) -> None:
        """Take in what occurs in other rows, unless it becomes too much."""
        for name, levels in other.levels.items():
            self.levels[name] |= levels
            check_number(name, len(self.levels[name]), MOST_LEVELS, "to encode: choose features without it")
        add_keys(self.keys, other.keys)


def find_values(
    blocks: Iterable[RawBlock],
    names: Sequence[str],
    encoded: Sequence[str],
    labels: Sequence[str],
    keep: Callable[[RawBlock], BoolArray | None],
    held: dict[str, list[Any]],
) -> Found:
    """Return the levels of the encoded columns and the values of those that rows are labelled with.

    Parameters
    ----------
    names
        Names of the columns of the blocks.
    keep
        Which rows of a block count (None: all): a level that only rows without all their values have is none.
    held
        Gets the blocks of the columns that are its keys.
    """
    position = {name: i for i, name in enumerate(names)}
    found = Found({name: set() for name in encoded}, {name: Keys() for name in labels})
    for raw in blocks:
        for name, parts in held.items():
            parts.append(raw.columns[position[name]])
        kept = keep(raw)
        levels = {name: named(distinct_texts, name, raw.columns[position[name]], kept) for name in encoded}
        keys = {name: named(keys_of, name, raw.columns[position[name]], kept) for name in labels}
        found.add(Found(levels, keys))
    return found


def named(look: Callable[..., T], name: str, *given: Any) -> T:
    """Return what is found of a column; an error that it is of no such type names it."""
    try:
        return look(*given)
    except NoTextError as error:
        raise NoTextError(error.kind, name) from error


def check_number(name: str, number: int, most: int, purpose: str) -> None:
    """Refuse a column with too many distinct values."""
    if number > most:
        raise InputError(f"Column '{name}' has more than {most} distinct values, too many {purpose}.")


def add_keys(all_keys: dict[str, Keys], others: dict[str, Keys]) -> None:
    """Take in more values of columns of labels; refuse one with too many."""
    for name, keys in others.items():
        all_keys[name].add(keys)
        if all_keys[name].exceed(MOST_PARTITIONS):
            check_number(name, MOST_PARTITIONS + 1, MOST_PARTITIONS, "for a partition column")


def label_columns(keys: dict[str, Keys], names: Sequence[str]) -> tuple[PartitionColumn, ...]:
    """Return the columns of labels with their values in order."""
    for name in names:
        if not keys[name]:
            raise InputError(f"Partition column '{name}' has no values in the rows that can be used.")
    return tuple(PartitionColumn(name, sorted_keys(keys[name].found()), not keys[name].gaps) for name in names)


def _has_number_keys(column: Any) -> bool:
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iuf"
    from pyarrow import types

    return bool(types.is_integer(column.type) or types.is_floating(column.type))


def _keys(column: Any) -> tuple[Any, BoolArray | None]:
    numbers, missing = as_numbers(column)
    if numbers.dtype.kind == "f":
        nan = np.isnan(numbers)
        if nan.any():
            missing = nan if missing is None else missing | nan
    return numbers, missing


def _number_text(value: int | float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def holding(columns: tuple[PartitionColumn, ...], held: dict[str, list[Any]]) -> tuple[PartitionColumn, ...]:
    """Return the columns of labels with the blocks that were held of them: of numbers that every row has."""
    import pyarrow as pa

    kept = {
        name: pa.chunked_array(parts)
        for name, parts in held.items()
        if parts and _has_number_keys(parts[0]) and all(part.type == parts[0].type for part in parts)
    }
    return tuple(
        replace(column, held=kept[column.name]) if column.complete and column.name in kept else column
        for column in columns
    )
