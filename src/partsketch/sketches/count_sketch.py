"""CountSketch: every row of the data is added, with a random sign, to one row of the sketch."""

from __future__ import annotations

from partsketch.common.sign_sums import SignSums
from partsketch.common.sketch_law import LIKE_GAUSSIAN
from partsketch.sketches.accumulator import Accumulator, Columns, Stream
from partsketch.sketches.base import SEGMENT_ROWS, Sketch, SketchSpecification, usual_size
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.sparse_sign import ScatterAccumulator, alone, scattered_ones

#: Sketch rows per column beyond which a larger default would cost more memory than it is worth.
_MOST_ROWS_PER_COLUMN = 20


class CountSketch(Sketch):
    """S with one entry ±1 in every column; the cheapest of all, and the one that needs most rows for a guarantee."""

    kind = "count_sketch"
    law = LIKE_GAUSSIAN
    cost = SketchCost(lambda m, q, p: 2 * q)
    # Rows take so little time that what is done once for a segment counts.
    segment_rows = 2 * SEGMENT_ROWS

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an empty m×q accumulator."""
        return ScatterAccumulator(specification, 1, stream, columns)

    def sign_sums(self, size: int, sparsity: int | None, positions: int | None, row_count: int) -> SignSums:
        """Return the share of the fullest row of the sketch."""
        return scattered_ones(size, 1, row_count)

    def plain_rows(self, size: int, row_count: int) -> float:
        """Return how many rows are expected to have a row of the sketch for themselves."""
        return alone(size, 1, row_count)

    def default_size(self, columns: int) -> tuple[int, str]:
        """Return the size of the known bound, d(d + 1), where that is not too many."""
        bound = columns * (columns + 1)
        size = max(usual_size(columns), min(bound, _MOST_ROWS_PER_COLUMN * columns))
        if bound <= size:
            return size, f"columns × (columns + 1) = {bound}, the order of the known bound, or four rows per column"
        return (
            size,
            f"{_MOST_ROWS_PER_COLUMN} rows per column to estimate ({columns}); the known bound asks for {bound}",
        )

    def size_warnings(self, size: int, columns: int) -> tuple[str, ...]:
        """Say when rows of high leverage may fall together."""
        bound = columns * (columns + 1)
        if size >= bound:
            return ()
        return (
            f"A count_sketch of {size} rows is below columns × (columns + 1) = {bound}, the order at which it is known "
            "to keep all directions: rows of high leverage may fall together and cancel.",
        )
