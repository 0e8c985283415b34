"""Sources whose rows lie on a cluster, and parts of sources that can be sent there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from partsketch.common.errors import InputError
from partsketch.sources.base import Block, Capabilities, FilePart, Source
from partsketch.sources.cluster.chunked import ChunkedRows, HeldRows, InChunks
from partsketch.sources.cluster.chunks import Chunks
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding
from partsketch.sources.memory.arrays import array_source


@dataclass(frozen=True)
class ChunkedColumns(ColumnSource):
    """Named columns of a collection; its `rows` are `ChunkedRows`."""

    @property
    def on_cluster(self) -> bool:
        """Say so."""
        return True

    @property
    def chunks(self) -> Chunks:
        """Sizes of the chunks and, on the driver, the collection."""
        return cast(ChunkedRows, self.rows).chunks

    def sent(self) -> ChunkedColumns:
        """Return the small copy that is sent to workers."""
        return replace(self, rows=cast(ChunkedRows, self.rows).sent())

    def hold(self, first: int, chunks: Sequence[Any]) -> ColumnSource:
        """Return a source of the rows of these chunks."""
        held = cast(ChunkedRows, self.rows).hold(first, chunks)
        return ColumnSource(held, self.selection, self.encoding, self.labels, self.missing)


@dataclass(frozen=True)
class ChunkedArrays(InChunks, Capabilities):
    """Features, targets and weights of a collection; a chunk is a tuple of their arrays, without None."""

    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    has_weights: bool
    replayable: bool = True
    random_access: bool = True
    partition_values: tuple[str, ...] = ()
    encoding: Encoding = NOTHING_ENCODED

    @property
    def on_cluster(self) -> bool:
        """Say so."""
        return True

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Refuse: rows do not come to the driver."""
        raise self.chunks.refuse_reading()

    def counted(self) -> ChunkedArrays:
        """Return this source: its rows are counted."""
        return self

    def sent(self) -> ChunkedArrays:
        """Return the small copy that is sent to workers."""
        return replace(self, chunks=self.chunks.sent())

    def hold(self, first: int, chunks: Sequence[Any]) -> JoinedSource:
        """Return a source of the rows of these chunks."""
        parts = []
        for number, chunk in enumerate(chunks, first):
            features, targets, *weights = chunk
            begin, size = self.chunks.ends[number], self.chunks.sizes[number]
            if features.shape[0] != size:
                raise self.chunks.refuse_change(number, features.shape[0])
            weight = weights[0] if weights else None
            names = (self.feature_names, self.target_names)
            parts.append((begin, array_source(features, targets, weight, *names, first_row=begin)))
        return JoinedSource(tuple(parts))


@dataclass(frozen=True)
class JoinedSource(Capabilities):
    """Sources in memory under the row numbers that they have in a whole: each with the number of its first row."""

    parts: tuple[tuple[int, Source], ...]
    replayable: bool = True
    random_access: bool = True
    boundaries: tuple[int, ...] = ()
    files: tuple[FilePart, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.parts[0][1].feature_names

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self.parts[0][1].target_names

    @property
    def row_count(self) -> int:
        """Number after that of the last row."""
        first, source = self.parts[-1]
        return first + (source.row_count or 0)

    @property
    def row_major(self) -> bool:
        """Whether the features of a row lie one after another in memory."""
        return all(source.row_major for _, source in self.parts)

    @property
    def partition_values(self) -> tuple[str, ...]:
        """Values of the partition column."""
        return self.parts[0][1].partition_values

    @property
    def has_weights(self) -> bool:
        """Whether blocks carry weights."""
        return self.parts[0][1].has_weights

    @property
    def encoding(self) -> Encoding:
        """One-hot levels."""
        return self.parts[0][1].encoding

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return self.parts[0][1].description

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield those of the rows that are here."""
        for first, source in self.parts:
            if stop is not None and stop <= first:
                return
            for block in source.read(max(start - first, 0), None if stop is None else stop - first, block_rows):
                yield replace(block, row_numbers=block.row_numbers + first)  # type: ignore[type-var]

    def counted(self) -> JoinedSource:
        """Return this source: its rows are counted."""
        return self


def part_of(source: Source, start: int, stop: int | None) -> Source:
    """Return a source of rows start to stop, under their numbers, that is small enough to be sent to a worker.

    A source that opens files is small already; one that holds rows is cut.
    """
    if not source.replayable:
        raise InputError(
            f"The rows of a {source.description} can be read once and only here: use engine='local', or pass a table "
            "or files."
        )
    if isinstance(source, ColumnSource):
        rows = source.rows.sliced(start, stop)
        return source if rows is None else replace(source, rows=HeldRows(((start, rows),), source.description))
    part = source.sliced(start, stop)
    return source if part is None else JoinedSource(((start, part),))


def holds_rows(source: Source) -> bool:
    """Tell whether a source holds its rows in memory, so that parts of it are sent instead of the whole."""
    return part_of(source, 0, 0) is not source
