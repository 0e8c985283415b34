"""Rows of two-dimensional or structured NumPy arrays, in memory or in `.npy` files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError, UnreadableError, reason_of
from partsketch.common.linalg.column_kernels import copy_transposed
from partsketch.sources.base import FilePart
from partsketch.sources.storage import Column, Kind, RawBlock, StorageCapabilities, check_numeric, clip

#: What dtypes of times are called.
_TIMES = {"M": "timestamp", "m": "duration"}


@dataclass(frozen=True)
class MemoryPart:
    """An array in memory."""

    array: NDArray[Any]
    name: str = ""

    def load(self) -> NDArray[Any]:
        """Return the array."""
        return self.array


@dataclass(frozen=True)
class NpyPart:
    """An array in a `.npy` file."""

    path: str
    name: str

    def load(self) -> NDArray[Any]:
        """Map the file into memory; nothing is read yet."""
        try:
            array: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except OSError as error:  # the system refuses: nothing is known of what is in the file
            raise UnreadableError(f"{self.name} cannot be read: {reason_of(error)}.") from error
        except Exception as error:  # the header is parsed as Python, and damaged ones end in any error
            raise UnreadableError(
                f"{self.name} cannot be read as a .npy file: it is truncated or damaged, or holds no numbers."
            ) from error
        return array


@dataclass(frozen=True)
class MatrixRows(StorageCapabilities):
    """Rows of arrays with the same columns, one below the other.

    Attributes
    ----------
    parts, sizes
        The arrays and their numbers of rows.
    chosen
        Positions of the delivered columns among all columns.
    """

    parts: tuple[MemoryPart | NpyPart, ...]
    sizes: tuple[int, ...]
    all_columns: tuple[Column, ...]
    chosen: tuple[int, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The delivered columns."""
        return tuple(self.all_columns[index] for index in self.chosen)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return sum(self.sizes)

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The files behind the rows."""
        starts = np.cumsum((0, *self.sizes)).tolist()
        return tuple(
            FilePart(part.name, begin, end)
            for part, begin, end in zip(self.parts, starts[:-1], starts[1:], strict=True)
            if isinstance(part, NpyPart)
        )

    @property
    def description(self) -> str:
        """The arrays in one phrase."""
        if isinstance(self.parts[0], NpyPart):
            return "1 NumPy file" if len(self.parts) == 1 else f"{len(self.parts)} NumPy files"
        return f"array of {self.row_count} rows and {len(self.all_columns)} columns"

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> MatrixRows:
        """Return the rows with these columns."""
        index_of = {column.name: index for index, column in enumerate(self.all_columns)}
        return replace(self, chosen=tuple(index_of[name] for name in names))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield copies of the rows, column by column."""
        file_start = 0
        for part, size in zip(self.parts, self.sizes, strict=True):
            first, last = clip(start - file_start, None if stop is None else stop - file_start, size)
            for begin in range(first, last, block_rows):
                end = min(begin + block_rows, last)
                # A file is mapped anew for every block, so that the pages of earlier blocks are given back.
                columns = self._copied(part.load()[begin:end])
                yield RawBlock(file_start + begin, end - begin, columns, part.name, file_start)
            file_start += size

    def sliced(self, start: int, stop: int | None) -> MatrixRows | None:
        """Return rows start to stop of an array in memory, numbered from zero; None for files."""
        part = self.parts[0]
        if isinstance(part, NpyPart):
            return None
        array = part.array[start:stop]
        return replace(self, parts=(MemoryPart(array, part.name),), sizes=(len(array),))

    def _copied(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        if rows.dtype.names:
            names = [self.all_columns[index].name for index in self.chosen]
            return [np.ascontiguousarray(rows[name]) for name in names]
        everything = self.chosen == tuple(range(len(self.all_columns)))
        chosen = rows if everything else rows[:, list(self.chosen)]
        if rows.dtype.kind == "f":
            out = np.empty((len(self.chosen), rows.shape[0]))
            copy_transposed(chosen, out)
            return list(out)
        # Integers and booleans keep their type: a partition column may hold numbers beyond float64.
        return list(np.array(chosen.T, order="C", copy=True))


def matrix_rows(parts: Sequence[MemoryPart | NpyPart]) -> MatrixRows:
    """Return the rows of arrays, all of which must have the same columns."""
    first = parts[0].load()
    columns = _columns(first, parts[0].name or "The array")
    sizes = [first.shape[0]]
    for part in parts[1:]:
        array = part.load()
        others = _columns(array, part.name)
        if [column.name for column in others] != [column.name for column in columns]:
            raise InputError(
                f"{part.name} has {len(others)} columns that differ from the {len(columns)} of {parts[0].name}: "
                "all files must have the same columns."
            )
        sizes.append(array.shape[0])
    return MatrixRows(tuple(parts), tuple(sizes), columns, tuple(range(len(columns))))


def _columns(array: NDArray[Any], what: str) -> tuple[Column, ...]:
    if array.dtype.names:
        if array.ndim != 1:
            raise InputError(f"{what} is structured and has {array.ndim} dimensions: it must have one.")
        return tuple(_field(name, array.dtype[name]) for name in array.dtype.names)
    check_numeric(array.dtype, what)
    if array.ndim != 2:
        raise InputError(f"{what} has {array.ndim} dimension(s): it must have two, rows and columns.")
    return tuple(Column(f"x{index}", "number", str(array.dtype)) for index in range(array.shape[1]))


def _field(name: str, dtype: np.dtype[Any]) -> Column:
    kind: Kind = "number" if dtype.kind in "biuf" and not dtype.shape else "text" if dtype.kind in "US" else "other"
    return Column(name, kind, "text" if kind == "text" else _TIMES.get(dtype.kind, str(dtype)))
