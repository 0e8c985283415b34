"""Rows in memory whose partitions are given by an array beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.base import Block, Source
from partsketch.sources.wrapper import SourceWrapper


@dataclass(frozen=True)
class LabelledSource(SourceWrapper):
    """Another source, with a partition label for each of its rows: the index of its value."""

    labels: NDArray[np.int64]
    values: tuple[str, ...]

    @classmethod
    def from_values(cls, source: Source, values: NDArray[Any]) -> LabelledSource:
        """Label rows with the rank of their value among the distinct values."""
        # Not a number differs from itself, also among texts; comparing does no harm to the others.
        missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
        if missing.any():
            raise InputError(f"The partition column has a missing value in row {int(np.argmax(missing))}: fill it in.")
        distinct, labels = np.unique(values, return_inverse=True)
        return cls(source, labels.astype(np.int64), tuple(str(value) for value in distinct))

    @property
    def partition_count(self) -> int:
        """How many there are."""
        return len(self.partition_values)

    @property
    def cluster_count(self) -> int:
        """None beside them."""
        return 0

    @property
    def partition_values(self) -> tuple[str, ...]:
        """The distinct values as text."""
        return self.values

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the other source, labelled."""
        for block in self.source.read(start, stop, block_rows):
            yield replace(block, labels=self.labels[block.row_numbers])  # type: ignore[type-var]

    def leaving_labels(self) -> LabelledSource:
        """Return this source: its labels are at hand, and cost nothing."""
        return self

    def sliced(self, start: int, stop: int | None) -> LabelledSource | None:
        """Return the source of rows start to stop, numbered from zero; None when the other source cannot."""
        part = self.source.sliced(start, stop)
        return None if part is None else replace(self, source=part, labels=self.labels[start:stop])
