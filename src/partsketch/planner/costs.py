"""The cost model: how long every way to fit a model takes and what it sends, all terms in this one place.

Amounts of work (products, random numbers, numbers decoded, small factorisations, bytes) follow from the sizes of the
problem. How long a unit of each takes on a machine is in its `Calibration`. Seconds are the sum of amount × unit, with
the work on rows shared by the cores. Constants here count how often a fit does something; they are the same on any
machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from partsketch.common.linalg.blas import padded_width
from partsketch.engines.base import ENGINES, Engine
from partsketch.model.methods import METHODS
from partsketch.planner.calibration import Calibration, at_width
from partsketch.planner.work import Work
from partsketch.sketches.base import SEGMENT_ROWS, Sketch, get_sketch
from partsketch.sketches.cost import NUMBER_BYTES

#: What finding the ends of all lines and converting one column costs, as a part of converting all.
_COUNTING_SHARE = 0.4


def _as_exact(sketch: Sketch) -> bool:
    """Tell whether rows go the way of the exact summary."""
    return not sketch.is_random or sketch.cost.as_exact


def _sketching_seconds(work: Work, calibration: Calibration) -> float:
    """Return the seconds of one core for a row of data in one sketch; NaN when the kind was never timed."""
    padded = padded_width(work.width)
    sketch = get_sketch(work.sketch)
    if _as_exact(sketch):
        return at_width(calibration.symmetric_product, padded, 2.0)
    if sketch.cost.is_dense:
        # The per-product time falls with the width and settles.
        return work.summary_rows * (padded * at_width(calibration.product, padded, 0.0) + calibration.normal)
    # The work of the others on a row hardly depends on m.
    return work.width * calibration.sketched_number.get(work.sketch, math.nan)


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


#: Bytes that are read and written for every number that is added to the sums of a level, with twice the digits.
_BYTES_PER_SUM = 32
#: How often a piece of coded rows goes through a matrix of all its columns.
_MATRICES_PER_PIECE = 10


def _coded_seconds(work: Work, calibration: Calibration) -> float:
    """Return the seconds of one core for the exact summary of all rows of which most columns are codes."""
    dense = work.width - work.codes.columns
    row = at_width(calibration.exact_row, padded_width(dense), 2.0)
    row += work.codes.entries * dense * _BYTES_PER_SUM * calibration.copied_byte
    piece = _MATRICES_PER_PIECE * work.width**2 * NUMBER_BYTES * calibration.fresh_byte
    others = work.codes.columns * (work.codes.entries - 1) // max(work.codes.entries, 1)
    piece += at_width(calibration.small_factorisation, others, 3.0) if others else 0.0
    return work.rows * row + max(work.tasks, work.rows / SEGMENT_ROWS) * piece


def row_seconds(work: Work, calibration: Calibration) -> float:
    """Return the seconds of one core for all rows: reading, copying, sketching."""
    # A column of codes is read once, however many indicators it becomes.
    numbers = work.rows * (work.width - work.codes.columns + work.codes.entries)
    sketch = get_sketch(work.sketch)
    cost = sketch.cost
    sketching = work.rows * work.accumulations * _sketching_seconds(work, calibration)
    if work.storage in calibration.decoded_number:
        reading = numbers * calibration.decoded_number[work.storage]
    elif work.storage != "memory":
        # Nobody knows how long the opener of another package takes.
        reading = math.nan
    elif cost.is_dense:
        reading = numbers * NUMBER_BYTES * calibration.copied_byte
    else:
        # The others were timed with their reading from memory.
        reading = 0.0
        if _as_exact(sketch):
            sketching = work.rows * at_width(calibration.exact_row, padded_width(work.width), 2.0)
    if work.by_code:
        sketching = _coded_seconds(work, calibration)
    entries = work.accumulations * work.summary_rows * work.width
    merging = work.tasks * entries * NUMBER_BYTES * 4 * calibration.copied_byte
    unit = calibration.sketch_unit.get(work.sketch, 0.0)
    per_row = cost.units(work.width) * unit + cost.copied_bytes(work.width) * calibration.copied_byte
    merging += cost.rounds(work.rows, work.tasks, work.width) * work.accumulations * work.summary_rows * per_row
    # Every piece of rows starts with a new buffer for its part of the random matrix.
    merging += work.tasks * work.accumulations * cost.buffer_numbers * NUMBER_BYTES * calibration.fresh_byte
    if _as_exact(sketch):
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
    # An engine that has no name here was given as an object, and is reckoned as adding nothing.
    extra = (ENGINES.get(engine, Engine) or Engine).cost
    share = 0.0
    if calibration.cores > 1:
        share = (work.evenness(calibration.cores) - 1) / (calibration.cores - 1)
    speedup = 1 + share * (calibration.speedup - 1)
    travelling = work.tasks * extra.seconds_per_task + summary_bytes(work) * work.summaries / extra.bytes_per_second
    return row_seconds(work, calibration) / speedup + solving_seconds(work, calibration) + travelling


def flops(work: Work) -> float:
    """Return the floating-point operations for the rows and for solving the summaries."""
    partition_rows = work.rows // (work.partitions if METHODS[work.method].by_partition else 1)
    per_row = get_sketch(work.sketch).cost.flops(work.summary_rows, work.width, partition_rows)
    if work.by_code:
        dense = work.width - work.codes.columns
        per_row = dense * (dense + 1) + 8 * work.codes.entries * dense
    return work.rows * work.accumulations * per_row + 2 * work.summaries * work.summary_rows * work.width**2


def passes(work: Work) -> int:
    """Return how often the rows are read."""
    return get_sketch(work.sketch).cost.passes + work.extra_passes + work.counting_passes


def summary_bytes(work: Work) -> int:
    """Return the bytes of what one partition contributes as summaries: one matrix, or all k sketches of the whole."""
    return work.summary_rows * work.width * work.sketches * NUMBER_BYTES


def sent_bytes(work: Work) -> int:
    """Return the bytes that the estimator itself needs from each partition: coefficients where fits are averaged.

    An average needs no more than the d coefficients of each partition's fit; engines and sketch files send the whole
    summary, so that the fit can state its own loss.
    """
    method = METHODS[work.method]
    if method.by_partition and method.combines_by == "average":
        return work.columns * work.targets * NUMBER_BYTES
    return summary_bytes(work)
