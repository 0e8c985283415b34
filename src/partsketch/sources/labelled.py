"""Rows in memory whose partitions are given by an array beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.base import Block, FilePart, Source
from partsketch.sources.encoding import Encoding


@dataclass(frozen=True)
class LabelledSource:
    """Another source, with a partition label for each of its rows."""

    source: Source
    labels: NDArray[np.int64]
    partition_values: tuple[str, ...]

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

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the other source, labelled."""
        for block in self.source.read(start, stop, block_rows):
            yield replace(block, labels=self.labels[block.row_numbers])  # type: ignore[type-var]

    def sliced(self, start: int, stop: int | None) -> LabelledSource | None:
        """Return the source of rows start to stop, numbered from zero; None when the other source cannot."""
        cut = getattr(self.source, "sliced", None)
        return None if cut is None else replace(self, source=cut(start, stop), labels=self.labels[start:stop])

    def counted(self) -> LabelledSource:
        """Return this source with its rows counted."""
        return replace(self, source=self.source.counted())
