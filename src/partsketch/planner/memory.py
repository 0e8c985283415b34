"""How much memory a fit takes: the terms, counted from fits of many sizes in processes of their own."""

from __future__ import annotations

from partsketch.common.linalg.blas import padded_width, tile_rows_for
from partsketch.engines.wholes import MOST_WAITING
from partsketch.planner.costs import summary_bytes
from partsketch.planner.work import Work
from partsketch.sketches.base import get_sketch
from partsketch.sketches.cost import NUMBER_BYTES

#: Rows that a worker reads at once from a file.
_BLOCK_ROWS = 32768
#: Size of a page in Parquet files unless they were written otherwise.
_PAGE_BYTES = 2**20
#: Blocks of text that a CSV reader has in hand.
_CSV_READER_BYTES = 12e6
#: Rows that wait with every sketch of the whole until there are enough for a product.
_KEPT_ROWS = 256


def peak_bytes(work: Work, cores: int) -> float:
    """Return by how much the memory of a process grows at most during a fit.

    The program itself and rows that are in memory anyway are not counted; what readers and allocators hold on to is.
    """
    workers = min(cores, work.tasks)
    padded = padded_width(work.width)
    tile = 2 * tile_rows_for(padded) * padded * NUMBER_BYTES
    strip = get_sketch(work.sketch).cost.buffer_numbers * NUMBER_BYTES
    one = summary_bytes(work)
    # Pieces that are made and wait to be merged, bounded by the passes that many sketches of the whole are made in.
    pieces = 4 * workers * one
    if work.sketches > 1:
        pieces = min(pieces + workers * _KEPT_ROWS * work.width * work.sketches * NUMBER_BYTES, MOST_WAITING)
    summaries = work.summaries * one / work.sketches
    # Copies of what is solved at once; after that the small matrices of certificate and inference.
    solved_rows = work.summary_rows * (work.summaries if work.method == "stack" else 1)
    copies = max(4 * solved_rows, 14 * work.width * work.summaries)
    solving = (copies + 12 * work.width) * work.width * NUMBER_BYTES
    return workers * (tile + strip + _reading_bytes(work)) + pieces + summaries + solving


def _reading_bytes(work: Work) -> float:
    """Return what a worker holds of a file: blocks of rows, and what they are decoded from."""
    if work.storage == "memory":
        return 0.0
    column = work.group_rows * NUMBER_BYTES
    block = 2 * min(work.rows, _BLOCK_ROWS) * work.width * NUMBER_BYTES
    if work.storage == "Parquet":
        # A page or, if that is smaller, a column of the row group: compressed, decoded, and its dictionary.
        return block + 3 * min(column, _PAGE_BYTES) * work.width
    if work.storage == "Feather":
        # A whole record batch: as it was read, decompressed, and the one before.
        return block + 3 * column * work.width
    return block + _CSV_READER_BYTES
