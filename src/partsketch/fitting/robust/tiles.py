"""The pass over rows of any number of columns: tiles of a fixed height, worked on by a linear algebra library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.base import Block
from partsketch.summaries.tasks import Piece

if TYPE_CHECKING:
    from partsketch.fitting.robust.scores import ScoreRequest

FloatArray = NDArray[np.float64]

#: Numbers of a tile, which stay in the cache, and its rows.
TILE_NUMBERS, LEAST_ROWS = 1 << 16, 128
_MOST_ROWS = 4096


class TileFeeder:
    """Collects rows into tiles of a fixed height, and sums what subclasses make of them."""

    def __init__(self, request: ScoreRequest, partition: int, segment: int) -> None:
        self.request, self._place = request, (partition, segment)
        self._first = int(request.fit_intercept)
        columns, self._targets = request.coefficients.shape
        self._height = int(np.clip(TILE_NUMBERS // (columns + self._targets), LEAST_ROWS, _MOST_ROWS))
        self._tile = np.empty((columns + self._targets, self._height))
        self._weights = np.empty(self._height)
        self._labels = np.empty(self._height, dtype=np.int64)
        self._numbers = np.empty(self._height, dtype=np.int64)
        self._filled = self._rows = 0
        self._weight = 0.0

    def feed(self, block: Block, begin: int, end: int) -> None:
        """Take rows of a block."""
        while begin < end:
            count = min(end - begin, self._height - self._filled)
            here = slice(self._filled, self._filled + count)
            block.copy_into(self._tile[self._first :, here], begin, begin + count)
            self._weights[here] = 1.0 if block.weights is None else block.weights[begin : begin + count]
            self._numbers[here] = block.row_numbers[begin : begin + count]
            if self.request.clusters:
                assert block.labels is not None
                self._labels[here] = block.labels[begin : begin + count]
            self._filled += count
            begin += count
            if self._filled == self._height:
                self._flush()

    def _flush(self) -> None:
        """Turn the tile into residuals and rows in the coordinates of the fit, and sum them."""
        count, request = self._filled, self.request
        if not count:
            return
        tile, weights = self._tile[:, :count], self._weights[:count]
        if self._first:
            tile[0] = 1.0
        if request.centre.any():
            tile[self._first :] -= request.centre[self._first :, None]
        columns = len(request.coefficients)
        rows = tile[:columns]
        residuals = tile[columns:] / request.target_units[:, None] - request.coefficients.T @ rows
        self._sum(self._turned(rows), residuals * weights, weights, count)
        self._rows += count
        self._weight += float(weights.sum())
        self._filled = 0

    def _turned(self, rows: FloatArray) -> FloatArray:
        """Return rows of the data in the coordinates of the fit, one column each."""
        # Units are powers of two: to divide by them before or after sums is the same.
        root = self.request.root
        return rows / self.request.units[:, None] if root is None else np.asarray(root.T @ rows)

    def _lines_of(self, rows: FloatArray) -> FloatArray:
        """Return the same, one line each."""
        root = self.request.root
        return np.ascontiguousarray(rows.T / self.request.units if root is None else rows.T @ root)

    def _sum(self, rows: FloatArray, scores: FloatArray, weights: FloatArray, count: int) -> None:
        raise NotImplementedError

    def _matrices(self) -> tuple[FloatArray, ...]:
        raise NotImplementedError

    def finish(self) -> Piece:
        """Return the piece."""
        self._flush()
        nothing = np.zeros((2, self._targets))
        return Piece(*self._place, self._matrices(), self._rows, self._weight, nothing)
