"""What every kind of storage offers below a source: typed columns, and blocks of raw rows with their numbers."""

# The docstring of a protocol describes its attributes, all in one place.
# ruff: noqa: D102

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sources.base import FilePart
from partsketch.sources.files.paths import DataFiles

Kind = Literal["number", "text", "other"]
#: What types of dates are called, and of what else tells time.
DATES = ("date", "timestamp", "time of day", "duration", "interval")
_INDEX = "is the index of a pandas table"


@dataclass(frozen=True)
class Column:
    """A column of the data: its name, whether it can serve as numbers, and its type in words.

    `aside` says, in words that follow its name, why it is no feature unless it is named; empty for most.
    """

    name: str
    kind: Kind
    type_name: str
    aside: str = ""

    @property
    def by_default(self) -> bool:
        """Whether it is a feature where features are not named."""
        return not self.aside and self.type_name not in DATES

    @property
    def is_null(self) -> bool:
        """Whether it has no type, because it has no value."""
        return self.type_name == "null"


@dataclass(frozen=True)
class RawBlock:
    """Consecutive rows of one file (or of a table), not yet checked or converted.

    Attributes
    ----------
    start
        Number of the first row in the source.
    length
        Number of rows.
    columns
        The chosen columns in the chosen order, each a pyarrow Array or a one-dimensional NumPy array.
    file_name, file_start
        The file behind the rows and the number of its first row; an empty name when there is no file.
    """

    start: int
    length: int
    columns: Sequence[Any]
    file_name: str = ""
    file_start: int = 0

    def place(self, position: int) -> str:
        """Say where a row of this block is, for people."""
        row = self.start + position
        return f"row {row} ({self.file_name}, row {row - self.file_start})" if self.file_name else f"row {row}"


class StorageCapabilities(Protocol):
    """What kinds of storage may say of themselves: subclasses say what differs from counted rows in memory.

    Attributes of the same name mean what they mean in `Source`.
    """

    @property
    def replayable(self) -> bool:
        return True

    @property
    def random_access(self) -> bool:
        return True

    @property
    def boundaries(self) -> tuple[int, ...]:
        return ()

    @property
    def files(self) -> tuple[FilePart, ...]:
        return ()

    @property
    def opened_files(self) -> DataFiles | None:
        return None

    def counted(self) -> Self:
        """Return the same rows with their number known."""
        return self

    def decoded_by(self, threads: int) -> Self:
        """Return the same rows, those that lie in one piece being decoded by several threads."""
        return self

    def without(self, names: Collection[str]) -> Rows | None:
        """Return the rows with these columns left out and not read; None where that would save nothing."""
        return None

    def explain_text(self, name: str) -> str:
        """Say, if it is known, which value keeps a column from being numeric; empty where types are declared."""
        return ""

    def other_decimal(self, name: str) -> str:
        """Say that a column of text has numbers with another decimal mark; empty where types are declared."""
        return ""

    def sliced(self, start: int, stop: int | None) -> Rows | None:
        """Return rows start to stop, numbered from zero, where they are held in memory; None where they are not."""
        return None


class Rows(StorageCapabilities, Protocol):
    """Storage of rows."""

    @property
    def columns(self) -> tuple[Column, ...]: ...

    @property
    def row_count(self) -> int | None: ...

    @property
    def description(self) -> str: ...

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> Rows:
        """Return the rows with only these columns, in this order; those in `texts` are delivered as text."""
        ...

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield rows start to stop in order, at most block_rows at a time, never across two files."""
        ...


def column_kind(arrow_type: Any) -> Kind:
    """Sort an Arrow type into numbers, text (also categories) and the rest."""
    from pyarrow import types

    if types.is_boolean(arrow_type) or types.is_integer(arrow_type) or types.is_floating(arrow_type):
        return "number"
    if types.is_decimal(arrow_type) or types.is_null(arrow_type):
        return "number"
    if types.is_dictionary(arrow_type) or types.is_string(arrow_type) or types.is_large_string(arrow_type):
        return "text"
    return "text" if types.is_string_view(arrow_type) else "other"


def schema_columns(schema: Any) -> tuple[Column, ...]:
    """Return the columns of an Arrow schema."""
    index = _index_names(schema)
    return tuple(
        Column(field.name, column_kind(field.type), type_in_words(field.type), _INDEX if field.name in index else "")
        for field in schema
    )


def _index_names(schema: Any) -> frozenset[str]:
    """Return the columns that pandas wrote as the index of a table: to those who wrote it they are no columns."""
    if b"pandas" not in (schema.metadata or {}):
        return frozenset()
    try:
        names = json.loads(schema.metadata[b"pandas"])["index_columns"]
    except (ValueError, KeyError, TypeError):
        return frozenset()
    # An index that only counts is described, not written.
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def type_in_words(arrow_type: Any) -> str:
    """Name an Arrow type as briefly as people do."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        return "categorical"
    if column_kind(arrow_type) == "text":
        return "text"
    if types.is_timestamp(arrow_type):
        return "timestamp"
    if types.is_date(arrow_type):
        return "date"
    if types.is_time(arrow_type):
        return "time of day"
    if types.is_duration(arrow_type):
        return "duration"
    if types.is_interval(arrow_type):
        return "interval"
    return str(arrow_type)


def parts_of_dates(column: Column) -> str:
    """Say what a formula can take of a column that tells time, in words; empty for what it cannot take anything of."""
    name = column.name if column.name.isidentifier() else f"`{column.name}`"
    dates = f"days({name}), hour({name}) or C(month({name}))"
    parts = {"time of day": f"hour({name}) or seconds({name})", "duration": f"seconds({name})", "interval": ""}
    return parts.get(column.type_name, dates)


def in_words(column: Column) -> str:
    """Name the values of a column that tells time."""
    return "times of day" if column.type_name == "time of day" else f"{column.type_name}s"


def clip(start: int, stop: int | None, row_count: int) -> tuple[int, int]:
    """Return the range of rows that exists within [start, stop)."""
    first = min(max(start, 0), row_count)
    return first, max(first, row_count if stop is None else min(stop, row_count))


def check_numeric(dtype: np.dtype[Any], name: str) -> None:
    """Refuse arrays of objects, text, dates and complex numbers."""
    if dtype.kind == "O":
        raise InputError(f"{name} is an array of Python objects: convert it to numbers first (astype(float)).")
    if dtype.kind == "c":
        raise InputError(f"{name} holds complex numbers: only real numbers can be used.")
    if dtype.kind not in "biuf":
        raise InputError(f"{name} has the type {dtype}: only numbers can be used.")
