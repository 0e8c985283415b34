"""Rows less the means of their levels, where levels have intercepts of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.base import Block
from partsketch.sources.blocks import ColumnBlock
from partsketch.summaries.tasks import Feeder, Piece

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Absorbed:
    """Levels that have intercepts of their own.

    Attributes
    ----------
    means
        Means of features and targets by level.
    alone
        Which levels have one row: it says nothing, and does not count.
    levels
        How many have more than one.
    beside
        Whether labels tell more than the level: they are then level + levels · cluster.
    nested
        Whether all rows of a level are in one cluster: levels then cost no degree of freedom but one.
    """

    means: FloatArray
    alone: NDArray[np.bool_]
    levels: int
    beside: bool = False
    nested: bool = True

    def cost(self, by_cluster: bool) -> int:
        """Return how many degrees of freedom the levels cost errors, by the rule of fixest."""
        return 1 if by_cluster and self.nested else self.levels


class WithinRows:
    """Gives rows less the means of their levels to another feeder, those that are alone in their level left out."""

    def __init__(self, absorbed: Absorbed, inner: Feeder, both_ways: bool) -> None:
        self._absorbed, self._inner, self._both_ways = absorbed, inner, both_ways

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        assert block.labels is not None
        means, labels = self._absorbed.means, block.labels[begin:end]
        levels, clusters = labels, labels
        if self._absorbed.beside:
            clusters, levels = np.divmod(labels, len(means))
        columns = np.empty((means.shape[1], end - begin))
        block.copy_into(columns, begin, end)
        columns -= means[levels].T
        within = ColumnBlock(
            block.row_numbers[begin:end],
            tuple(columns),
            None if block.weights is None else block.weights[begin:end],
            labels if self._both_ways else clusters,
        )
        alone = self._absorbed.alone[levels]
        if alone.any():
            within = within.take(np.flatnonzero(~alone))
        self._inner.feed(within, 0, len(within))

    def finish(self) -> Piece:
        """Return the piece."""
        return self._inner.finish()
