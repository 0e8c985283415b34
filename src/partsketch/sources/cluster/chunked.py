"""Rows that lie on a cluster in chunks: what the driver knows of them, and the same rows where a worker holds some.

The driver has names, types and sizes only. A worker that was given the chunks of a task makes of them the same source
that the local engine would read, with the numbers the rows have in the whole, so that results have the same bits and
refusals the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeGuard

from partsketch.sources.base import FilePart, Source
from partsketch.sources.cluster.chunks import Chunks, T, cluster_of, refuse_collection
from partsketch.sources.files.file_rows import check_same_kinds
from partsketch.sources.files.paths import check_same_columns
from partsketch.sources.storage import Column, RawBlock, Rows, StorageCapabilities


class RemoteSource(Source, Protocol):
    """A source whose rows lie on a cluster."""

    @property
    def chunks(self) -> Chunks:
        """Sizes of the chunks and, on the driver, the collection."""
        ...

    def sent(self) -> RemoteSource:
        """Return the small copy that is sent to workers."""
        ...

    def hold(self, first: int, chunks: Sequence[Any]) -> Source:
        """Return a source of the rows of these chunks, the first of which has the number `first`."""
        ...


class CollectionOpener(Protocol):
    """What an engine is to the collections of its cluster."""

    @property
    def name(self) -> str: ...  # noqa: D102

    def open_collection(self, data: Any) -> ChunkedRows:
        """Return the rows of a collection of this engine's cluster."""
        ...


def open_chunked(data: Any, engine: CollectionOpener | None) -> ChunkedRows:
    """Return the rows of a collection as the engine sees them, or say which engine it takes."""
    if engine is None or engine.name != cluster_of(data):
        raise refuse_collection(data)
    return engine.open_collection(data)


def is_remote(source: Source) -> TypeGuard[RemoteSource]:
    """Tell whether the rows of a source lie on a cluster."""
    return source.on_cluster


@dataclass(frozen=True)
class InChunks:
    """What is known of rows from the sizes of their chunks."""

    chunks: Chunks

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self.chunks.row_count

    @property
    def boundaries(self) -> tuple[int, ...]:
        """First rows of the chunks."""
        return self.chunks.boundaries

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The chunks."""
        return self.chunks.files

    @property
    def description(self) -> str:
        """The collection in one phrase."""
        return self.chunks.description


@dataclass(frozen=True)
class ChunkedRows(InChunks, StorageCapabilities):
    """Rows with named columns in the chunks of a collection; only workers can read them."""

    columns: tuple[Column, ...]
    chosen: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> ChunkedRows:
        """Return the rows with these columns."""
        # Only what is used has to be made or read, where a collection can tell columns apart.
        whole = self.chunks.collection
        chunks = self.chunks if whole is None else replace(self.chunks, collection=whole.choose(names))
        return replace(self, chunks=chunks, chosen=tuple(names), texts=tuple(texts))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Refuse: rows do not come to the driver."""
        raise self.chunks.refuse_reading()

    def sent(self) -> ChunkedRows:
        """Return what a worker needs to know."""
        return replace(self, chunks=self.chunks.sent())

    def hold(self, first: int, chunks: Sequence[Any]) -> HeldRows:
        """Return the rows of these chunks with the chosen columns."""
        held = []
        wanted = [column for column in self.columns if column.name in self.chosen]
        for number, chunk in enumerate(chunks, first):
            rows = chunk_rows(chunk)
            size = self.chunks.sizes[number]
            if rows.row_count != size:
                raise self.chunks.refuse_change(number, rows.row_count)
            if size:
                names = [column.name for column in rows.columns if column.name in self.chosen]
                check_same_columns(f"Chunk {number}", names, "the others", self.chosen)
                check_same_kinds(f"chunk {number}", rows.columns, f"the {self.chunks.noun}", wanted)
                held.append((self.chunks.ends[number], rows.choose(self.chosen, self.texts)))
        return HeldRows(tuple(held), self.description)

    def map(self, work: Callable[[Rows], T]) -> Iterable[T]:
        """Call `work` with the rows of every chunk, on the cluster; yield the results in order."""
        if self.chunks.collection is None:
            raise self.chunks.refuse_reading()
        return self.chunks.collection.map(_OnRows(work))


@dataclass(frozen=True)
class _OnRows:
    """Opens a chunk and gives its rows to a function."""

    work: Callable[[Rows], Any]

    def __call__(self, chunk: Any) -> Any:
        return self.work(chunk_rows(chunk))


def chunk_rows(chunk: Any) -> Rows:
    """Return the rows of a chunk that a worker holds: an Arrow table, a data frame or a two-dimensional array."""
    from partsketch.sources.opening import open_rows

    return open_rows(chunk)


@dataclass(frozen=True)
class HeldRows(StorageCapabilities):
    """Some rows of a whole, in memory, under the numbers they have in the whole.

    Attributes
    ----------
    parts
        The number of the first row of each part, and its rows.
    """

    parts: tuple[tuple[int, Rows], ...]
    description: str

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the rows."""
        return self.parts[0][1].columns

    @property
    def row_count(self) -> int:
        """Number after that of the last row."""
        first, rows = self.parts[-1]
        return first + (rows.row_count or 0)

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> HeldRows:
        """Return the rows with these columns."""
        return replace(self, parts=tuple((first, rows.choose(names, texts)) for first, rows in self.parts))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield those of the rows that are held."""
        for first, rows in self.parts:
            if stop is not None and stop <= first:
                return
            for raw in rows.raw_blocks(start - first, None if stop is None else stop - first, block_rows):
                yield replace(raw, start=raw.start + first)
