"""Streams of Arrow batches: those that are read once, and queries that give a new one for every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.storage import Column, RawBlock, StorageCapabilities, schema_columns

#: Streams of functions that were not read to their ends. A function may execute its query on the same cursor at every
#: call, and drivers may then go on where the stream before stopped (that of SQLite for ADBC loses the first rows so).
_LEFT: list[Any] = []


def finish_left() -> None:
    """Read out what was left of streams, so that a function can be asked again."""
    while _LEFT:
        reader = _LEFT.pop()
        # It may be closed by now, as may its connection.
        with suppress(Exception):
            for _ in reader:
                pass
        with suppress(Exception):
            reader.close()


class Once:
    """A stream that can be read once."""

    replayable = False
    description = "stream of Arrow batches"

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def leave(self, reader: Any, count: int | None) -> None:
        """Close the stream; there is no other to compare its number of rows with."""
        reader.close()

    def open(self) -> Any:
        """Return the stream, which is gone then."""
        if self.reader is None:
            raise InputError(
                "The stream of Arrow batches can be read only once: pass a table (reader.read_all()) or a file instead."
            )
        reader, self.reader = self.reader, None
        return reader


@dataclass(frozen=True)
class Reopened:
    """A query that gives a new stream whenever it is asked; `counts` has the number of rows of the first whole pass."""

    open: Callable[[], Any]
    description: str
    replayable: bool = True
    counts: list[int] = field(default_factory=list, compare=False, repr=False)

    def leave(self, reader: Any, count: int | None) -> None:
        """Close a stream, and refuse another number of rows than the whole pass before had; None: it was not whole."""
        reader.close()
        if count is None:
            return
        if not self.counts:
            self.counts.append(count)
        if self.counts[0] != count:
            raise InputError(
                f"The {self.description} gave {self.counts[0]:,} rows in one pass and {count:,} in another: every call "
                "must give the same rows, so pass a table, or write them to a file."
            )


class Called(Reopened):
    """A function that gives a new stream at every call: a stream is read out before the next call."""

    def leave(self, reader: Any, count: int | None) -> None:
        """Keep a stream that was not read out until the function is called again."""
        if count is None:
            _LEFT.append(reader)
        else:
            super().leave(reader, count)


class _Calls:
    """Calls of a function; the stream of the first tells the columns, and is that of the first pass."""

    def __init__(self, give: Callable[[], Any], to_reader: Callable[[Any], Any]) -> None:
        self.give, self.to_reader = give, to_reader
        self.first = self._again()
        _LEFT.append(self.first)

    def __call__(self) -> Any:
        # What is no longer there was read out for the call of another function.
        for place, reader in enumerate(_LEFT):
            if reader is self.first:
                return _LEFT.pop(place)
        return self._again()

    def __getstate__(self) -> dict[str, Any]:
        # A stream cannot travel to other processes.
        return {**self.__dict__, "first": None}

    def _again(self) -> Any:
        finish_left()
        return self.to_reader(self.give())


def called(give: Callable[[], Any], to_reader: Callable[[Any], Any]) -> StreamRows:
    """Return the rows of a function that gives what `to_reader` makes a stream of."""
    calls = _Calls(give, to_reader)
    return StreamRows(Called(calls, "stream of Arrow batches"), calls.first.schema)


@dataclass(frozen=True)
class StreamRows(StorageCapabilities):
    """Rows of a stream of Arrow batches, in the order of their arrival."""

    stream: Once | Reopened
    schema: Any
    row_count: int | None = None
    chosen: tuple[str, ...] | None = None

    @property
    def random_access(self) -> bool:
        """No: the rows before must come first."""
        return False

    @property
    def replayable(self) -> bool:
        """Whether a new stream can be had."""
        return self.stream.replayable

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the stream."""
        return schema_columns(self.schema)

    @property
    def description(self) -> str:
        """The stream in one phrase."""
        return self.stream.description

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> StreamRows:
        """Return the stream with these columns."""
        return replace(self, chosen=tuple(names))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield the batches as they come, cut to size."""
        import pyarrow as pa

        names = self.schema.names if self.chosen is None else self.chosen
        position = 0
        reader, count = self.stream.open(), None
        try:
            while stop is None or position < stop:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    count = position
                    return
                yield from cut(batch, names, position, start, stop, block_rows)
                position += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(f"The {self.description} broke off after row {position}: {reason}.") from error
        finally:
            self.stream.leave(reader, count)

    def counted(self) -> StreamRows:
        """Run through a stream that can be had again and count its rows."""
        if self.row_count is not None:
            return self
        if not self.replayable:
            raise InputError(
                "The rows of a stream that can be read only once cannot be counted first: pass a table or a file."
            )
        reader = self.stream.open()
        count = sum(batch.num_rows for batch in reader)
        self.stream.leave(reader, count)
        return replace(self, row_count=count)


def cut(
    batch: Any,
    names: Sequence[str],
    position: int,
    start: int,
    stop: int | None,
    block_rows: int,
    file_name: str = "",
    file_start: int = 0,
) -> Iterator[RawBlock]:
    """Yield the part of a record batch within rows start to stop, cut to size; its first row has number `position`."""
    first = max(position, start)
    end = position + batch.num_rows
    last = end if stop is None else min(end, stop)
    if first >= last:
        return
    indices = [batch.schema.get_field_index(name) for name in names]
    columns = [batch.column(index) for index in indices]
    if first == position and last == end and batch.num_rows <= block_rows:
        yield RawBlock(first, batch.num_rows, columns, file_name, file_start)
        return
    for begin in range(first, last, block_rows):
        length = min(block_rows, last - begin)
        pieces = [column.slice(begin - position, length) for column in columns]
        yield RawBlock(begin, length, pieces, file_name, file_start)
