"""A cheap look at the data: sizes from metadata, and a few rows, always the same ones."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.counts import MOST_ROWS, refuse_too_many
from partsketch.common.errors import InputError
from partsketch.engines.gather import gather
from partsketch.engines.local import LocalEngine
from partsketch.fitting.options import FitOptions
from partsketch.model.coordinates import standardise
from partsketch.model.moments import exact_moments
from partsketch.planner.given import GivenRows
from partsketch.sketches.base import SEGMENT_ROWS, SketchSpecification
from partsketch.sources.base import NO_CODES, Codes, Source
from partsketch.sources.files.paths import COMPRESSED
from partsketch.summaries.feeder import TOO_LARGE
from partsketch.summaries.partitions import make_partitioning
from partsketch.summaries.tasks import INTERCEPT, SummaryRequest
from partsketch.theory.arguments import require_count
from partsketch.theory.moments import PartitionMoments

FloatArray = NDArray[np.float64]

#: Data of at most this many numbers (16 MB) are looked at as a whole: then every exact formula applies.
WHOLE_LOOK_NUMBERS = 2**21
#: Moments of more columns would take memory and time as a fit does, and the rows of a look are too few to judge them.
_MOST_COLUMNS = 1024
_RUNS = 8
_SAMPLE_ROWS = 4096
#: A row of the sample with this leverage, and many times the average, says that a few rows decide.
_UNEVEN_LEVERAGE, _UNEVEN_TIMES = 0.1, 8.0
CSV_PEEK_BYTES = 2**20
#: Shuffles over which losses are averaged when nobody knows yet how a fit will shuffle.
_SHUFFLES = 4


@dataclass(frozen=True)
class Survey:
    """What a plan knows of the data.

    Attributes
    ----------
    rows, columns, targets
        Rows n (None when only reading tells), columns d to estimate with the intercept, targets.
    rows_estimated
        Whether the row count is an estimate from the size of files.
    storage
        "memory" or the format of the files.
    extra_passes, counting_passes
        Passes over the rows before any fit; and before one that needs to know the row count.
    splittable
        Whether several workers may read at once.
    group_rows
        Most rows of a row group or record batch, where the files have them.
    codes
        Columns that are held as codes.
    rows_seen
        Rows looked at.
    rank
        Rank of the rows looked at; None when there were none.
    uneven_leverage
        Whether a few of the rows looked at decide a direction.
    complete
        Whether all rows were looked at.
    given
        For k partitions, what the rows say of losses, for every target and every shuffle that was tried; only with a
        complete look.
    shuffles
        How many shuffles were tried where rows are shuffled but not as the fit will shuffle them; 0 otherwise.
    scattered
        Whether rows of one partition lie among those of others: rows are shuffled, or cut by a column.
    description
        The data in a phrase.
    """

    rows: int | None
    columns: int
    targets: int = 1
    rows_estimated: bool = False
    storage: str = "memory"
    extra_passes: int = 0
    counting_passes: int = 0
    splittable: bool = True
    group_rows: int = SEGMENT_ROWS
    codes: Codes = NO_CODES
    rows_seen: int = 0
    rank: int | None = None
    uneven_leverage: bool = False
    complete: bool = False
    given: Callable[[int], list[list[GivenRows]]] = field(default=lambda k: [], compare=False, repr=False)
    shuffles: int = 0
    scattered: bool = False
    description: str = ""


def survey_of_sizes(rows: int, columns: int, fit_intercept: bool = True, targets: int = 1) -> Survey:
    """Return what sizes alone tell; `columns` counts features, without the intercept."""
    require_count("rows", rows)
    require_count("columns", columns)
    refuse_too_many(MOST_ROWS, rows=rows)
    refuse_too_many(columns=columns)
    return Survey(rows, columns + int(fit_intercept), targets, description=f"{rows:,} rows, {columns:,} columns")


def look(source: Source, options: FitOptions, seed_of_fit: bool = True, weighting: str | None = None) -> Survey:
    """Look at a source: no more than its metadata and a few thousand rows, or all of them when they are few.

    Parameters
    ----------
    seed_of_fit
        Whether the seed of the options will be that of the fit, and its shuffle so the one to look at.
    weighting
        How stacked sketches will be weighted; by default as the options say.
    """
    weighted = weighting or options.weighting
    sizes = sizes_of(source, options)
    columns, width = sizes.columns, sizes.columns + sizes.targets
    if sizes.rows_estimated and sizes.rows is not None and sizes.rows * width <= WHOLE_LOOK_NUMBERS:
        source = source.counted()
        sizes = replace(sizes, rows=source.row_count, rows_estimated=False)
    if not source.replayable or columns > _MOST_COLUMNS:
        return sizes
    complete = source.row_count is not None and source.row_count * width <= WHOLE_LOOK_NUMBERS
    sample = _read(source, _runs(source, width, complete), options.fit_intercept, width)
    if not len(sample):
        return sizes
    seen = _centred(sample[:, :columns]) if options.fit_intercept else sample[:, :columns]
    # The rows are finite: sources refuse others. The differences of large ones need not be.
    if not np.isfinite(seen).all():
        raise InputError(TOO_LARGE)
    # Columns of one size: the least norm of a dependent column among far smaller ones would be their rounding.
    seen = np.ldexp(seen, -np.frexp(np.abs(seen).max(axis=0))[1])
    features = PartitionMoments(np.column_stack([seen, np.zeros(len(seen))]), len(seen))
    leverage = float(np.sum((seen @ features.inverse_root) ** 2, axis=1).max())
    uneven = leverage > max(_UNEVEN_LEVERAGE, _UNEVEN_TIMES * features.rank / len(sample))
    known: dict[int, list[list[GivenRows]]] = {}
    shuffles = 0 if seed_of_fit or options.partition_by != "shuffle" else _SHUFFLES

    def given(count: int) -> list[list[GivenRows]]:
        if count not in known:
            tried = [replace(options, seed=options.seed + number) for number in range(max(1, shuffles))]
            found = [_moments(source, shuffled, count) for shuffled in tried]
            known[count] = [
                [GivenRows(moments, weighted, sizes.scattered) for moments in of_target]
                for of_target in zip(*found, strict=True)
            ]
        return known[count]

    return replace(
        sizes,
        rows_seen=len(sample),
        rank=features.rank,
        uneven_leverage=uneven,
        complete=complete,
        given=given,
        shuffles=shuffles if complete else 0,
    )


def sizes_of(source: Source, options: FitOptions) -> Survey:
    """Return what is known of a source without a look at its rows."""
    rows = source.row_count
    if rows is None and source.replayable:
        rows = _rows_from_size(source)
    return Survey(
        rows=rows,
        columns=len(source.feature_names) + int(options.fit_intercept),
        targets=len(source.target_names),
        rows_estimated=rows is not None and source.row_count is None,
        storage="memory" if source.opened_files is None else source.opened_files.format,
        extra_passes=int(bool(source.encoding.needs_pass or source.partition_values)),
        counting_passes=int(source.row_count is None),
        splittable=source.random_access,
        group_rows=_group_rows(source),
        codes=source.codes,
        scattered=are_scattered(options),
        description=source.description,
    )


def are_scattered(options: FitOptions) -> bool:
    """Tell whether rows of one partition lie among those of others."""
    return options.partition_by not in ("order", "file")


def _centred(rows: FloatArray) -> FloatArray:
    """Take a value in the middle off each column but the ones, so that its location costs no digits of its spread."""
    roots = rows[:, :1]
    counted = roots[:, 0] > 0
    middle = np.median(rows[counted, 1:] / roots[counted], axis=0)
    with np.errstate(over="ignore"):
        return np.asarray(rows - roots * np.concatenate([[0.0], middle]))


def _group_rows(source: Source) -> int:
    if not source.boundaries:
        return SEGMENT_ROWS
    return int(np.diff([*source.boundaries, source.row_count or 0]).max(initial=1))


def _runs(source: Source, width: int, complete: bool) -> list[tuple[int, int | None]]:
    """Return which rows to look at: runs spread evenly over the data where reading may start anywhere."""
    if complete:
        return [(0, None)]
    wanted = min(max(_SAMPLE_ROWS, 8 * width), max(WHOLE_LOOK_NUMBERS // width, _RUNS))
    if not source.random_access or source.row_count is None:
        return [(0, wanted)]
    each = math.ceil(wanted / _RUNS)
    starts = [round(number * (source.row_count - each) / (_RUNS - 1)) for number in range(_RUNS)]
    if source.boundaries:
        # Starting inside a row group would decode it from its beginning.
        places = np.searchsorted(np.asarray(source.boundaries), starts, side="right") - 1
        starts = [source.boundaries[place] for place in sorted(set(places.tolist()))]
        each = math.ceil(wanted / len(starts))
    return [(start, min(start + each, source.row_count)) for start in starts]


def _read(source: Source, runs: list[tuple[int, int | None]], fit_intercept: bool, width: int) -> FloatArray:
    first = int(fit_intercept)
    parts = [np.empty((0, width))]
    for start, stop in runs:
        for block in source.read(start, stop):
            columns = np.ones((width, len(block)))
            block.copy_into(columns[first:], 0, len(block))
            if block.weights is not None:
                columns *= np.sqrt(block.weights)
            parts.append(columns.T)
    return np.vstack(parts)


def _moments(source: Source, options: FitOptions, count: int) -> list[list[PartitionMoments]]:
    partitioning = make_partitioning(source, options.partition_by, count, options.remainder, options.seed)
    request = SummaryRequest(SketchSpecification("triangular"), partitioning, options.fit_intercept)
    gathered = gather(source, request, LocalEngine())
    if min(gathered.row_counts) == 0:
        raise InputError(f"A partition has no rows: {count} partitions are too many.")
    features = ((INTERCEPT,) if options.fit_intercept else ()) + source.feature_names
    free = int(options.fit_intercept)
    _, standard = standardise(gathered.summaries, features, source.target_names, free)
    return [exact_moments(standard, features, target, free) for target in source.target_names]


def _rows_from_size(source: Source) -> int | None:
    """Return about how many lines local CSV files have, from their sizes and the length of their first lines."""
    data_files = source.opened_files
    if data_files is None or data_files.format != "CSV":
        return None
    if not data_files.is_local or any(path.lower().endswith(COMPRESSED) for path in data_files.paths):
        return None
    rows = 0.0
    for path in data_files.paths:
        with open(path, "rb") as file:
            start = file.read(CSV_PEEK_BYTES)
        lines = max(1, start.count(b"\n"))
        # The first line has the names, unless there are none.
        rows += os.path.getsize(path) * lines / max(1, len(start)) - int(data_files.csv.header)
    return max(1, round(rows))
