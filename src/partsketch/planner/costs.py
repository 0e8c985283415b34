"""The cost model: what every way to fit a model costs, all terms in this one place.

Amounts of work (products, random numbers, numbers decoded, small factorisations, bytes) follow from the sizes of the
problem. How long a unit of each takes on a machine is in its `Calibration`. Seconds are the sum of amount × unit, with
the work on rows shared by the cores. Constants here count how often a fit does something; they are the same on any
machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from partsketch.blas import padded_width, tile_rows_for
from partsketch.options import METHODS
from partsketch.planner.calibration import Calibration, at_width
from partsketch.summarise import SEGMENT_ROWS

_NUMBER_BYTES = 8
#: Rows that a worker reads at once from a file.
_BLOCK_ROWS = 32768
#: Numbers of a Gaussian sketch's random matrix that exist at once.
_STRIP_NUMBERS = 2**18
#: Size of a page in Parquet files unless they were written otherwise.
_PAGE_BYTES = 2**20
#: Blocks of text that a CSV reader has in hand.
_CSV_READER_BYTES = 12e6
#: What finding the ends of all lines and converting one column costs, as a part of converting all.
_COUNTING_SHARE = 0.4


@dataclass(frozen=True)
class Work:
    """The sizes that costs depend on.

    Attributes
    ----------
    rows, columns, targets
        Rows n; columns to estimate d, the intercept included; targets.
    method, sketch
        Names; the sketch of an exact method is "triangular".
    partitions, sketch_size
        k and m; m is None for exact summaries.
    storage
        "memory", or the format of the files: "Parquet", "CSV", "Feather".
    extra_passes
        Passes over the rows before the fit, to find the values of columns.
    counting_passes
        Passes before that which only count the rows.
    splittable
        Whether several workers may read at once.
    group_rows
        Rows of a row group or record batch in files.
    """

    rows: int
    columns: int
    targets: int
    method: str
    sketch: str
    partitions: int
    sketch_size: int | None
    storage: str = "memory"
    extra_passes: int = 0
    counting_passes: int = 0
    splittable: bool = True
    group_rows: int = SEGMENT_ROWS

    @property
    def width(self) -> int:
        """Columns of a summary, q."""
        return self.columns + self.targets

    @property
    def summary_rows(self) -> int:
        """Rows of one summary: m, or q for the exact factor."""
        return self.width if self.sketch_size is None else self.sketch_size

    @property
    def sketches(self) -> int:
        """Summaries that every row enters: k for sketches of the whole, else one."""
        return self.partitions if METHODS[self.method].sketched and not METHODS[self.method].by_partition else 1

    @property
    def summaries(self) -> int:
        """Summaries in all."""
        return 1 if self.method == "exact" else self.partitions

    @property
    def tasks(self) -> int:
        """Pieces of work that may go on at the same time."""
        if not self.splittable:
            return 1
        parts = self.partitions if METHODS[self.method].by_partition else 1
        return parts * max(1, math.ceil(self.rows / parts / SEGMENT_ROWS))


@dataclass(frozen=True)
class SketchCost:
    """What a kind of sketch costs per row, for m sketch rows and q columns.

    Attributes
    ----------
    flops
        Floating-point operations per row: f(m, q, rows of a partition).
    seconds
        Seconds of one core per row: f(m, q, calibration).
    sends_rows
        Whether rows of the data themselves are in the summary.
    passes
        Passes over the rows.
    by_tile
        Whether the whole sketch is gone through with every tile of rows, not once per piece of them.
    """

    flops: Callable[[int, int, int], float]
    seconds: Callable[[int, int, Calibration], float]
    sends_rows: bool = False
    passes: int = 1
    by_tile: bool = False

    def rounds(self, rows: int, pieces: int, width: int) -> float:
        """Return how often the whole of a sketch is gone through."""
        return max(pieces, rows / tile_rows_for(padded_width(width))) if self.by_tile else pieces

    def copied_bytes(self, width: int) -> float:
        """Return the bytes copied each time for a row of the sketch, apart from other work on it."""
        return 2 * _NUMBER_BYTES * width if self.by_tile else 0.0

    def units(self, width: int) -> int:
        """Return the units of other work for a row of the sketch: samples sort rows, others add entries."""
        return 1 if self.by_tile else width


def _exact_seconds(size: int, width: int, calibration: Calibration) -> float:
    return at_width(calibration.symmetric_product, padded_width(width), 2.0)


def _gaussian_seconds(size: int, width: int, calibration: Calibration) -> float:
    padded = padded_width(width)
    # The per-product time falls with the width and settles.
    return size * (padded * at_width(calibration.product, padded, 0.0) + calibration.normal)


def _probed(kind: str) -> Callable[[int, int, Calibration], float]:
    """Return the seconds of a kind whose work on a row does not depend on m: timed as a whole."""
    return lambda size, width, calibration: width * calibration.sketched_number.get(kind, math.nan)


#: Every kind of sketch. One that is not here is timed as a whole, and its operations are not counted.
SKETCH_COSTS = {
    "triangular": SketchCost(lambda m, q, p: q * (q + 1), _exact_seconds),
    "gaussian": SketchCost(lambda m, q, p: 2 * m * q + m, _gaussian_seconds),
    "srht": SketchCost(lambda m, q, p: q * math.log2(max(2, p)), _probed("srht")),
    "sparse_sign": SketchCost(lambda m, q, p: 2 * 8 * q, _probed("sparse_sign")),
    "count_sketch": SketchCost(lambda m, q, p: 2 * q, _probed("count_sketch")),
    "row_sample": SketchCost(lambda m, q, p: 0.0, _probed("row_sample"), sends_rows=True, by_tile=True),
    "leverage_sample": SketchCost(
        lambda m, q, p: q * (q + 1) + 2 * q * q, _probed("leverage_sample"), sends_rows=True, passes=2, by_tile=True
    ),
}


def sketch_cost(kind: str) -> SketchCost:
    """Return the cost of a kind of sketch."""
    return SKETCH_COSTS.get(kind) or SketchCost(lambda m, q, p: math.nan, _probed(kind))


@dataclass(frozen=True)
class SolvingCost:
    """How often a method does what once the summaries are there: solving, certificate, inference.

    Attributes
    ----------
    overheads, overheads_per_summary
        In units of a partition's way through a fit.
    factorisations
        Singular value decompositions of q×q matrices, per summary.
    tall_factorisations
        How often the rows beyond q of each summary are factored.
    pair_products
        Products of q×q matrices per pair of partitions.
    """

    overheads: float
    overheads_per_summary: float
    factorisations: float
    tall_factorisations: float
    pair_products: float


#: Counted by timing fits with next to no rows, for 4 to 500 columns, 1 to 16 partitions and four sketch sizes.
SOLVING_COSTS = {
    "exact": SolvingCost(2.5, 0.0, 1.7, 0.0, 0.0),
    "average": SolvingCost(1.9, 0.8, 6.7, 0.0, 0.0),
    "partition": SolvingCost(1.4, 1.4, 6.5, 1.1, 1.5),
    "stack": SolvingCost(2.4, 0.7, 6.9, 1.3, 0.0),
    "whole": SolvingCost(2.4, 0.4, 4.3, 1.0, 0.0),
}

#: Small exact factors merged per piece of rows, in decompositions of a q×q matrix.
_FACTORISATIONS_PER_PIECE = 1.0


@dataclass(frozen=True)
class EngineCost:
    """What an engine adds; assumed round figures, not measured here.

    Attributes
    ----------
    seconds_per_task
        Scheduling of one task, borne by the driver.
    bytes_per_second
        Speed at which summaries travel to the driver; infinite where nothing travels.
    """

    seconds_per_task: float
    bytes_per_second: float


ENGINE_COSTS = {
    "local": EngineCost(0.0, math.inf),
    "dask": EngineCost(0.005, 1e8),
    "ray": EngineCost(0.005, 1e8),
    "spark": EngineCost(0.02, 1e8),
}


def row_seconds(work: Work, calibration: Calibration) -> float:
    """Return the seconds of one core for all rows: reading, copying, sketching."""
    numbers = work.rows * work.width
    if work.storage in calibration.decoded_number:
        reading = numbers * calibration.decoded_number[work.storage]
    else:
        # Kinds that are timed as a whole were timed with their reading from memory.
        copied = 0 if work.sketch in calibration.sketched_number else 1
        reading = numbers * _NUMBER_BYTES * calibration.copied_byte * copied
    cost = sketch_cost(work.sketch)
    sketching = work.rows * work.sketches * cost.seconds(work.summary_rows, work.width, calibration)
    entries = work.sketches * work.summary_rows * work.width
    merging = work.tasks * entries * _NUMBER_BYTES * 4 * calibration.copied_byte
    unit = calibration.sketch_unit.get(work.sketch, 0.0)
    per_row = cost.units(work.width) * unit + cost.copied_bytes(work.width) * calibration.copied_byte
    merging += cost.rounds(work.rows, work.tasks, work.width) * work.sketches * work.summary_rows * per_row
    if work.sketch == "gaussian":
        # Every piece of rows starts with a new buffer for its part of the random matrix.
        strip = min(_STRIP_NUMBERS, work.summary_rows * min(4096, math.ceil(work.rows / work.tasks)))
        merging += work.tasks * work.sketches * strip * _NUMBER_BYTES * calibration.fresh_byte
    if work.sketch == "triangular":
        factorisation = at_width(calibration.small_factorisation, work.width, 3.0)
        merging = work.tasks * _FACTORISATIONS_PER_PIECE * factorisation
    readings = cost.passes + work.extra_passes + _COUNTING_SHARE * work.counting_passes
    return reading * readings + sketching + merging


def solving_seconds(work: Work, calibration: Calibration) -> float:
    """Return the seconds, on one core, from the summaries to the model with its certificate."""
    cost = SOLVING_COSTS[work.method]
    count, width = work.summaries, work.width
    overhead = calibration.summary_overhead * (cost.overheads + cost.overheads_per_summary * count)
    factorisation = cost.factorisations * at_width(calibration.small_factorisation, width, 3.0)
    beyond = max(0, work.summary_rows - width) * width * width * calibration.tall_factorisation
    pairs = cost.pair_products * count * count * width**3 * at_width(calibration.product, width, 0.0)
    return overhead + work.targets * (count * (factorisation + cost.tall_factorisations * beyond) + pairs)


def seconds(work: Work, calibration: Calibration, engine: str = "local") -> float:
    """Return the predicted time of a fit on a warm interpreter; NaN when the kind of sketch was never timed."""
    extra = ENGINE_COSTS.get(engine, ENGINE_COSTS["local"])
    workers = min(calibration.cores, work.tasks)
    share = (workers - 1) / (calibration.cores - 1) if calibration.cores > 1 else 0.0
    speedup = 1 + share * (calibration.speedup - 1)
    travelling = work.tasks * extra.seconds_per_task + summary_bytes(work) * work.summaries / extra.bytes_per_second
    return row_seconds(work, calibration) / speedup + solving_seconds(work, calibration) + travelling


def flops(work: Work) -> float:
    """Return the floating-point operations for the rows and for solving the summaries."""
    partition_rows = work.rows // (work.partitions if METHODS[work.method].by_partition else 1)
    rows = work.rows * work.sketches * sketch_cost(work.sketch).flops(work.summary_rows, work.width, partition_rows)
    return rows + 2 * work.summaries * work.summary_rows * work.width**2


def passes(work: Work) -> int:
    """Return how often the rows are read."""
    return sketch_cost(work.sketch).passes + work.extra_passes + work.counting_passes


def summary_bytes(work: Work) -> int:
    """Return the bytes of what one partition contributes as summaries: one matrix, or all k sketches of the whole."""
    return work.summary_rows * work.width * work.sketches * _NUMBER_BYTES


def sent_bytes(work: Work) -> int:
    """Return the bytes that the estimator itself needs from each partition: coefficients where fits are averaged.

    An average needs no more than the d coefficients of each partition's fit; engines and sketch files send the whole
    summary, so that the fit can state its own loss.
    """
    method = METHODS[work.method]
    if method.by_partition and method.combines_by == "average":
        return work.columns * work.targets * _NUMBER_BYTES
    return summary_bytes(work)


def peak_bytes(work: Work, cores: int) -> float:
    """Return by how much the memory of a process grows at most during a fit.

    The program itself and rows that are in memory anyway are not counted; what readers and allocators hold on to is.
    """
    workers = min(cores, work.tasks)
    padded = padded_width(work.width)
    tile = 2 * tile_rows_for(padded) * padded * _NUMBER_BYTES
    strip = 0
    if work.sketch == "gaussian":
        strip = min(_STRIP_NUMBERS, work.summary_rows * tile_rows_for(padded)) * work.sketches * _NUMBER_BYTES
    one = summary_bytes(work)
    # Pieces that wait to be merged, and every summary.
    held = 2 * workers * one + work.summaries * one / work.sketches
    # Scaled and factored copies of what is solved at once, and the small matrices of certificate and inference.
    solved_rows = work.summary_rows * (work.summaries if work.method == "stack" else 1)
    solving = (6 * solved_rows + 12 * work.width + 4 * work.width * work.summaries) * work.width * _NUMBER_BYTES
    return workers * (tile + strip + 2 * one + _reading_bytes(work)) + held + solving


def _reading_bytes(work: Work) -> float:
    """Return what a worker holds of a file: blocks of rows, and what they are decoded from."""
    if work.storage == "memory":
        return 0.0
    column = work.group_rows * _NUMBER_BYTES
    block = 2 * min(work.rows, _BLOCK_ROWS) * work.width * _NUMBER_BYTES
    if work.storage == "Parquet":
        # A page or, if that is smaller, a column of the row group: compressed, decoded, and its dictionary.
        return block + 3 * min(column, _PAGE_BYTES) * work.width
    if work.storage == "Feather":
        # A whole record batch: as it was read, decompressed, and the one before.
        return block + 3 * column * work.width
    return block + _CSV_READER_BYTES
