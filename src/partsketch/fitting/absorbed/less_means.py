"""Rows less the means of their levels, for a second pass where sums of the rows as they are would lose what is left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.base import NO_CODES, Block, Codes
from partsketch.sources.blocks import ColumnBlock
from partsketch.sources.wrapper import SourceWrapper

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LessMeans(SourceWrapper):
    """Another source, `means` of features and targets by level taken off; they need not be the means to the last digit.

    A value less one close to it is exact, however far from zero both lie.
    """

    means: FloatArray

    @property
    def row_major(self) -> bool:
        """No: columns are made here."""
        return False

    @property
    def features_in_memory(self) -> Any:
        """Nothing: columns are made here."""
        return None

    @property
    def stored_entries(self) -> int | None:
        """Columns are dense, whatever they were made from."""
        return None

    @property
    def codes(self) -> Codes:
        """None: columns are numbers here."""
        return NO_CODES

    def leaving_labels(self) -> Self:
        """Return this source: labels tell the levels."""
        return self

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the other source, less the means."""
        for block in self.source.read(start, stop, block_rows):
            assert block.labels is not None
            columns = np.empty((self.means.shape[1], len(block)))
            block.copy_into(columns, 0, len(block))
            columns -= self.means[block.labels % len(self.means)].T
            yield ColumnBlock(block.row_numbers, tuple(columns), block.weights, block.labels, block.dropped)
