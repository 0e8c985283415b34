"""Rows in other coordinates: columns measured from a centre, in units of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.base import NO_CODES, Block, Codes
from partsketch.sources.dense_block import DenseBlock
from partsketch.sources.wrapper import SourceWrapper


@dataclass(frozen=True, eq=False)
class StandardisedSource(SourceWrapper):
    """The same rows with `(x − centre)/unit` in place of every column x: features, then targets."""

    centre: NDArray[np.float64]
    unit: NDArray[np.float64]

    @property
    def row_major(self) -> bool:
        """Blocks are made anew, row by row."""
        return True

    @property
    def features_in_memory(self) -> Any:
        """Nothing is held in these coordinates."""
        return None

    @property
    def stored_entries(self) -> int | None:
        """Rows are dense, whatever they were made from."""
        return None

    @property
    def codes(self) -> Codes:
        """Rows are dense, whatever they were made from."""
        return NO_CODES

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the other source in these coordinates."""
        features = len(self.feature_names)
        for block in self.source.read(start, stop, block_rows):
            columns = np.empty((len(self.centre), len(block)))
            block.copy_into(columns, 0, len(block))
            with np.errstate(all="ignore"):
                columns -= self.centre[:, None]
                columns /= self.unit[:, None]
            rows = np.ascontiguousarray(columns.T)
            yield DenseBlock(
                row_numbers=block.row_numbers,
                features=np.ascontiguousarray(rows[:, :features]),
                targets=rows[:, features:],
                weights=block.weights,
                labels=block.labels,
                dropped=block.dropped,
            )
