"""Explicit Gaussian sketches of real rows, and the fits made from them.

Every entry of S exists: it is made by partsketch's own counter-based generator, tile by tile, and multiplied with the
rows. Nothing is drawn from the law of the result, so the exact formulas can be tested against these fits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.blas import padded_width, tile_rows_for
from partsketch.sketches.accumulator import Columns as SketchColumns
from partsketch.sketches.accumulator import Stream
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.gaussian import GaussianSketch
from partsketch.theory import PartitionMoments

FloatArray = NDArray[np.float64]
Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Columns:
    """`[X y]` held as its columns, as tiles are: one row per column, padded with zeros."""

    values: FloatArray
    width: int

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray) -> Columns:
        """Copy features and target."""
        width = X.shape[1] + 1
        values = np.zeros((padded_width(width), len(X)))
        values[: width - 1] = X.T
        values[width - 1] = y
        return cls(values, width)

    def tiles(self, start: int, stop: int) -> Iterator[tuple[FloatArray, NDArray[np.int64]]]:
        """Yield the tiles of rows start to stop with their row numbers."""
        height = tile_rows_for(padded_width(self.width))
        for first in range(start, stop, height):
            last = min(first + height, stop)
            yield self.values[:, first:last], np.arange(first, last, dtype=np.int64)


def gaussian_sketch(columns: Columns, size: int, seed: int, stream: int, start: int, stop: int) -> FloatArray:
    """Return `S [X y]` for rows start to stop: m × q."""
    width = columns.width
    accumulator = GaussianSketch().accumulator(
        SketchSpecification("gaussian", size, seed), Stream(stream), SketchColumns(width - 1, 1, False)
    )
    for tile, row_numbers in columns.tiles(start, stop):
        accumulator.add(tile, row_numbers)
    return accumulator.finish()


def gaussian_sketches(columns: Columns, size: int, seed: int, streams: range, start: int, stop: int) -> FloatArray:
    """Return one sketch per stream: draws × m × q, the target in the last column."""
    return np.stack([gaussian_sketch(columns, size, seed, stream, start, stop) for stream in streams])


def sketched_fits(features: FloatArray, target: FloatArray, moments: PartitionMoments) -> FloatArray:
    """Return minimum-norm least squares on each sketch: draws × d.

    The row space of `S X` is that of X, so the fit is sought as `a + H g`, a and H the exact fit and the inverse root
    of the sketched rows: a well-conditioned problem in `rank` unknowns, with the same solution.
    """
    whitened = features @ moments.inverse_root
    residual = target - features @ moments.solution
    gram = whitened.transpose(0, 2, 1) @ whitened
    score = whitened.transpose(0, 2, 1) @ residual[:, :, None]
    return np.asarray(moments.solution + np.linalg.solve(gram, score)[:, :, 0] @ moments.inverse_root.T)


def excess_losses(fits: FloatArray, pooled: PartitionMoments) -> FloatArray:
    """Return `‖X (a − a*)‖²` for each row of coefficients."""
    return np.asarray(np.sum(((fits - pooled.solution) @ pooled.root.T) ** 2, axis=1))


def in_order(work: Callable[[int], Item], count: int) -> Iterator[Item]:
    """Yield `work(0), work(1), …` in order, made by one thread per core, a few ahead of the reader."""
    workers = max(1, min(count, os.cpu_count() or 1))
    with ThreadPoolExecutor(workers) as pool:
        # Not all at once: what is done and not yet read stays in memory.
        for first in range(0, count, 4 * workers):
            yield from pool.map(work, range(first, min(first + 4 * workers, count)))
