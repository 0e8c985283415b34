"""Rows that follow others: the same rows with higher numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from partsketch.sources.base import Block, FilePart, Source
from partsketch.sources.storage import clip
from partsketch.sources.wrapper import SourceWrapper


@dataclass(frozen=True)
class ShiftedSource(SourceWrapper):
    """Rows in memory, numbered from `offset`; there are none before."""

    offset: int
    boundaries: tuple[int, ...] = ()
    files: tuple[FilePart, ...] = ()
    partition_values: tuple[str, ...] = ()
    partition_count: int = 0
    cluster_count: int = 0

    @property
    def row_count(self) -> int:
        """One more than the last row number."""
        return self.offset + (self.source.row_count or 0)

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return f"batches of {self.row_count} rows in all"

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield rows start to stop; the values are views."""
        first, last = clip(max(start, self.offset), stop, self.row_count)
        for block in self.source.read(first - self.offset, last - self.offset, block_rows):
            yield replace(block, row_numbers=block.row_numbers + self.offset)  # type: ignore[type-var]

    def sliced(self, start: int, stop: int | None) -> Source | None:
        """Return the source of rows start to stop, numbered from zero; None when there would be none at first."""
        if start < self.offset and (stop is None or stop > start):
            return None
        first, last = clip(max(start, self.offset), stop, self.row_count)
        return self.source.sliced(first - self.offset, last - self.offset)
