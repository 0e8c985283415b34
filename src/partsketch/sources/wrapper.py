"""A source around another one: whatever is not said otherwise is as it is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from partsketch.sources.base import Block, Capabilities, Codes, FilePart, PartitionLeftOut, Source
from partsketch.sources.encoding import Encoding
from partsketch.sources.files.paths import DataFiles


@dataclass(frozen=True)
class SourceWrapper(Capabilities):
    """Passes everything on, capabilities included; subclasses say what differs."""

    source: Source

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.source.feature_names

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self.source.target_names

    @property
    def row_count(self) -> int | None:
        """Number of rows."""
        return self.source.row_count

    @property
    def replayable(self) -> bool:
        """Whether rows can be read again."""
        return self.source.replayable

    @property
    def random_access(self) -> bool:
        """Whether reading may start anywhere."""
        return self.source.random_access

    @property
    def boundaries(self) -> tuple[int, ...]:
        """Rows at which reading starts cheaply."""
        return self.source.boundaries

    @property
    def files(self) -> tuple[FilePart, ...]:
        """Files behind the rows."""
        return self.source.files

    @property
    def partition_values(self) -> tuple[str, ...]:
        """Values of the partition column."""
        return self.source.partition_values

    @property
    def has_weights(self) -> bool:
        """Whether blocks carry weights."""
        return self.source.has_weights

    @property
    def encoding(self) -> Encoding:
        """One-hot encoding of text columns."""
        return self.source.encoding

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return self.source.description

    @property
    def row_major(self) -> bool:
        """Whether the features of a row lie one after another in memory."""
        return self.source.row_major

    @property
    def one_by_one(self) -> bool:
        """Whether each task must be read by itself."""
        return self.source.one_by_one

    @property
    def features_in_memory(self) -> Any:
        """The features as one array, if they are held so."""
        return self.source.features_in_memory

    @property
    def stored_entries(self) -> int | None:
        """Number of stored entries of compressed rows."""
        return self.source.stored_entries

    @property
    def opened_files(self) -> DataFiles | None:
        """The files that are read."""
        return self.source.opened_files

    @property
    def unreadable(self) -> tuple[PartitionLeftOut, ...]:
        """Files that could not be opened."""
        return self.source.unreadable

    @property
    def on_cluster(self) -> bool:
        """Whether the rows lie on a cluster: then they cannot be wrapped here."""
        return False

    @property
    def partition_count(self) -> int:
        """How many values the partition column has."""
        return self.source.partition_count

    @property
    def cluster_count(self) -> int:
        """How many values a second column of labels has."""
        return self.source.cluster_count

    @property
    def codes(self) -> Codes:
        """How many of the features are held as codes."""
        return self.source.codes

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on how the columns were made."""
        return self.source.notes

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the other source."""
        return self.source.read(start, stop, block_rows)

    def around(self, source: Source) -> Self:
        """Return this wrapper around another form of the same rows."""
        return replace(self, source=source)

    def counted(self) -> Source:
        """Return this source with its rows counted."""
        return self.around(self.source.counted())

    def leaving_finiteness(self) -> Source:
        """Return this source without its check for NaN and infinity."""
        return self.around(self.source.leaving_finiteness())

    def leaving_labels(self) -> Source:
        """Return this source without labels of rows."""
        return self.around(self.source.leaving_labels())

    def decoded_by(self, threads: int) -> Source:
        """Return this source, rows that lie in one piece being decoded by several threads."""
        return self.around(self.source.decoded_by(threads))

    def sliced(self, start: int, stop: int | None) -> Source | None:
        """Return the source of rows start to stop, numbered from zero, if rows are held."""
        part = self.source.sliced(start, stop)
        return None if part is None else self.around(part)
