"""Rows that follow others: the same rows with higher numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from partsketch.sources.base import Block, FilePart, Source
from partsketch.sources.encoding import Encoding
from partsketch.sources.storage import clip


@dataclass(frozen=True)
class ShiftedSource:
    """Rows in memory, numbered from `offset`; there are none before."""

    source: Any
    offset: int
    boundaries: tuple[int, ...] = ()
    files: tuple[FilePart, ...] = ()
    partition_values: tuple[str, ...] = ()
    replayable: bool = True
    random_access: bool = True

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.source.feature_names)

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return tuple(self.source.target_names)

    @property
    def row_count(self) -> int:
        """One more than the last row number."""
        return self.offset + int(self.source.row_count)

    @property
    def row_major(self) -> bool:
        """Whether the features of a row lie one after another in memory."""
        return bool(getattr(self.source, "row_major", False))

    @property
    def has_weights(self) -> bool:
        """Whether blocks carry weights."""
        return bool(self.source.has_weights)

    @property
    def encoding(self) -> Encoding:
        """The encoding of the rows."""
        encoding: Encoding = self.source.encoding
        return encoding

    @property
    def description(self) -> str:
        """The source in one phrase."""
        return f"batches of {self.row_count} rows in all"

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield rows start to stop; the values are views."""
        first, last = clip(max(start, self.offset), stop, self.row_count)
        for block in self.source.read(first - self.offset, last - self.offset, block_rows):
            yield replace(block, row_numbers=block.row_numbers + self.offset)

    def counted(self) -> Source:
        """Return this source: its rows are counted."""
        return self
