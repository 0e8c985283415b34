"""What a kind of sketch costs a fit, declared by the kind: amounts of work; the planner knows how long a unit takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from partsketch.common.linalg.blas import padded_width, tile_rows_for

NUMBER_BYTES = 8


def _not_counted(size: int, width: int, partition_rows: int) -> float:
    return math.nan


@dataclass(frozen=True)
class SketchCost:
    """What a kind of sketch costs per row, for m sketch rows and q columns.

    Attributes
    ----------
    flops
        Floating-point operations per row: f(m, q, rows of a partition).
    is_dense
        Whether a row costs m random numbers and its product with them. Other kinds are timed as a whole.
    buffer_numbers
        Numbers of its random matrix that a worker holds at once, at most.
    passes
        Passes over the rows.
    as_exact
        Whether its pass over the rows is that of the exact summary, and costs the same.
    by_tile
        Whether the whole sketch is gone through with every tile of rows, not once per piece of them.
    """

    flops: Callable[[int, int, int], float] = _not_counted
    is_dense: bool = False
    buffer_numbers: int = 0
    passes: int = 1
    by_tile: bool = False
    as_exact: bool = False

    def rounds(self, rows: int, pieces: int, width: int) -> float:
        """Return how often the whole of a sketch is gone through."""
        return max(pieces, rows / tile_rows_for(padded_width(width))) if self.by_tile else pieces

    def copied_bytes(self, width: int) -> float:
        """Return the bytes copied each time for a row of the sketch, apart from other work on it."""
        return 2 * NUMBER_BYTES * width if self.by_tile else 0.0

    def units(self, width: int) -> int:
        """Return the units of other work for a row of the sketch: samples sort rows, others add entries."""
        return 1 if self.by_tile else width
