"""Whether there is memory for a fit, asked before any work: what its summaries and their solution take at least.

How many copies of which matrices exist at once was counted from fits of many sizes, in processes of their own (20 to
4000 columns, 1 to 10,000 partitions); counts are rounded down, so that what fits is not refused. Rows are not counted:
they stream by, or are in memory anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

from partsketch.common.errors import InputError
from partsketch.common.free_memory import available_memory
from partsketch.common.linalg.blas import padded_width, tile_rows_for
from partsketch.common.units import bytes_text
from partsketch.engines.wholes import MOST_WAITING, piece_bytes, waiting_bytes
from partsketch.sources.base import Source
from partsketch.summaries.tasks import SummaryRequest

_NUMBER_BYTES = 8
#: Copies of a columns × columns matrix in an exact fit, when rows are more than columns; and when they are not, where
#: the smallest solution is found.
_FACTORS, _SINGULAR_FACTORS = 10, 22
#: The same for every partition: of an average of exact fits, and of fits on sketches.
_FACTORS_EACH, _SKETCHED_FACTORS_EACH = 11, 9
#: Bytes that the libraries take many times over before anything is fitted: nothing to refuse.
LITTLE = 2**24
#: Copies of every sketch where they are stacked, or written. When the matrices above are made there is one.
_SKETCHES = 2


@dataclass(frozen=True)
class Sizes:
    """What the memory of a fit depends on.

    Attributes
    ----------
    method
        Name of the method; "sketch" when summaries are made and not solved.
    width, rows
        Columns of a summary, and rows of the data if they are known.
    summaries, sketch_size
        How many summaries there are, and the rows of each; None for exact ones.
    """

    method: str
    width: int
    rows: int | None
    summaries: int
    sketch_size: int | None


def solving_bytes(sizes: Sizes) -> int:
    """Return what the summaries, and the matrices of their solution, take at least."""
    square = sizes.width**2
    if sizes.sketch_size is None:
        singular = sizes.rows is not None and sizes.rows <= sizes.width
        copies = _SINGULAR_FACTORS if singular and sizes.method == "exact" else _FACTORS
        if sizes.method == "average":
            copies = _FACTORS_EACH
        numbers = (2 if sizes.method == "sketch" else copies) * sizes.summaries * square
    else:
        sketch = sizes.sketch_size * sizes.width
        copies = _SKETCHES if sizes.method in ("stack", "sketch") else 1
        squares = 0 if sizes.method == "sketch" else _SKETCHED_FACTORS_EACH * square
        numbers = sizes.summaries * max(copies * sketch, sketch + squares)
    return numbers * _NUMBER_BYTES


def gathering_bytes(source: Source, request: SummaryRequest, at_once: bool = False) -> int:
    """Return what pieces of rows take at least until they are merged, and a tile of rows.

    `at_once` says that there is one pass, however many partitions or sketches there are: a checkpoint keeps them all.
    """
    width = int(request.fit_intercept) + len(source.feature_names) + len(source.target_names)
    rows = request.segment_rows if source.row_count is None else min(request.segment_rows, source.row_count)
    tile = min(rows, tile_rows_for(padded_width(width))) * width * _NUMBER_BYTES
    many = request.accumulators_per_partition > 1
    if request.partitioning.bounds is not None and not many:
        return tile
    waiting = waiting_bytes(source, request)
    in_passes = source.replayable and not at_once
    # What is done waits for what later passes make.
    done = 0
    if many or (in_passes and waiting > MOST_WAITING):
        done = request.partitioning.count * piece_bytes(source, request)
    return tile + done + (min(waiting, MOST_WAITING) if in_passes else waiting // 2)


def check_memory(sizes: Sizes, gathering: int = 0, ways_out: str = "") -> None:
    """Refuse what takes more memory than is free, in a sentence that names a way out."""
    needed = max(solving_bytes(sizes), gathering)
    # Files of the system tell what is free, and reading them takes longer than the smallest fits.
    if needed <= LITTLE or needed <= (free := available_memory()):
        return
    raise InputError(
        f"This needs at least {bytes_text(needed)} of memory at once, and {bytes_text(free)} are free: "
        f"{ways_out or _ways_out(sizes)}."
    )


def _ways_out(sizes: Sizes) -> str:
    """Name what would take less: what makes the largest part of it smaller."""
    if sizes.method == "exact":
        return "choose fewer features, use route='iterate', or a sketch (method='stack' with a sketch_size)"
    many = sizes.summaries > sizes.width
    if sizes.sketch_size is not None and sizes.sketch_size > 4 * sizes.width:
        return "use a smaller sketch_size" + (" or fewer partitions" if sizes.summaries > 1 else "")
    return "use fewer partitions" if many else "choose fewer features, or use fewer partitions"
