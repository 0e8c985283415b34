"""Fits that go on: rows come in batches, and each batch becomes a partition, or adds to the last one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.solve import factor_of_rows
from partsketch.engines.base import Engine
from partsketch.engines.gather import Gathered, gather
from partsketch.fitting.fit import Fit, estimated_columns, finish_fit
from partsketch.fitting.keywords import AUTO
from partsketch.fitting.memory import Sizes, check_memory
from partsketch.fitting.options import FitOptions
from partsketch.fitting.refinement.routes import FACTOR_ROUTE
from partsketch.fitting.robust.vcov import IID
from partsketch.fitting.sketch_size import choose_sketch_size
from partsketch.model.methods import METHODS
from partsketch.model.model import Model
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources.base import Source
from partsketch.sources.shifted import ShiftedSource
from partsketch.summaries.measured import measured_noise, with_noise
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.summary import Summary, common_centre, joined_rows
from partsketch.summaries.tasks import SummaryRequest


@dataclass(frozen=True)
class Batches:
    """What has been gathered of the rows so far.

    Attributes
    ----------
    gathered
        The summaries and what goes with them.
    rows
        Number of rows so far: the number of the next one.
    seed
        Seed of the sketches.
    """

    gathered: Gathered
    rows: int
    seed: int


#: Why batches are fitted exactly when no method is named.
_WHY_EXACT = "method='auto' chose exact. Its factor keeps everything, so it can go on with any batch."


def options_of_batch(options: FitOptions, before: Model | None) -> tuple[FitOptions, str | None]:
    """Return the options with a method in place of "auto", and why: that of the model before, or "exact" at first."""
    if options.method != AUTO:
        return options, None
    if before is None:
        if options.limits is not None and options.limits.any:
            raise InputError(
                "limits are kept by looking at all rows before a fit: name a method for partial_fit, or fit."
            )
        return replace(options, method="exact", limits=None), _WHY_EXACT
    used = before.record.options
    if used["method"] == "whole":
        raise InputError(
            "method='auto' chose 'whole', which makes every sketch of all rows and cannot go on: name 'stack'."
        )
    names = ("method", "sketch", "sketch_size", "sparsity")
    options = replace(options, **{name: used[name] for name in names}, limits=None)
    return options, before.record.reasons["method"]


def check_batches(options: FitOptions) -> None:
    """Refuse options with which a fit cannot go on."""
    method = METHODS[options.method]
    if options.partition_by != "order":
        raise InputError(
            f"partial_fit makes partitions of batches, and partition_by={options.partition_by!r} asks for others: use "
            "partition_by='order', or fit."
        )
    if options.vcov != IID:
        raise InputError(
            f"vcov={options.vcov!r} reads the rows twice: partial_fit has each batch once; use vcov='iid'."
        )
    if options.remainder != "spread" or options.route == "iterate" or options.checkpoint is not None:
        raise InputError("partial_fit goes with remainder='spread', no checkpoint, and any route but 'iterate'.")
    sketch = get_sketch(options.sketch)
    if method.sketched and sketch.first_pass(SketchSpecification(options.sketch, 2, 0), 1) is not None:
        raise InputError(f"sketch={options.sketch!r} reads the rows twice: partial_fit has each batch once.")


def add_batch(
    before: Batches | None,
    source: Source,
    options: FitOptions,
    engine: Engine,
    new_partition: bool,
    why_method: str | None = None,
) -> tuple[Fit, Batches]:
    """Summarise a batch, add it to what was there before, and solve."""
    check_batches(options)
    method, features = METHODS[options.method], estimated_columns(source, options)
    options = options if before is None else replace(options, seed=before.seed)
    offset = 0 if before is None else before.rows
    rows = ShiftedSource(source, offset)
    count = 0 if before is None else len(before.gathered.summaries)
    extends = count > 0 and (not method.by_partition or not new_partition)
    reasons = {
        "method": why_method or f"method={options.method!r} was asked for: {method.description}",
        "batches": "rows came in batches"
        + (", each a partition of its own unless it was to add to the last" if method.by_partition else ""),
    }
    specification = SketchSpecification("triangular")
    warnings: tuple[str, ...] = ()
    if method.sketched:
        if before is None:
            asked, known = options.sketch_size, source.row_count
            _check_first_size(asked, len(features), options)
            size, reasons["sketch_size"] = choose_sketch_size(
                asked, len(features), known, options.alpha > 0, options.sketch
            )
        else:
            size = before.gathered.summaries[0].matrix.shape[0]
            reasons["sketch_size"] = f"sketch_size={size} as for the batches before"
        specification = SketchSpecification(options.sketch, size, options.seed, options.sparsity)
        warnings = get_sketch(options.sketch).size_warnings(size, len(features))
        _check_rows(rows.row_count - offset, len(features), extends, options)
        if extends and not get_sketch(options.sketch).is_summable:
            raise InputError(
                f"sketch={options.sketch!r} depends on how many rows a partition has: it cannot grow; use "
                "new_partition=True."
            )
    else:
        reasons["route"] = FACTOR_ROUTE
    partition = count - 1 if extends else count
    names = tuple(str(number) for number in range(partition + 1)) if method.by_partition else ("all",)
    bounds = (*[offset] * len(names), rows.row_count)
    width = len(features) + len(source.target_names)
    request = SummaryRequest(
        specification,
        Partitioning(names, bounds),
        options.fit_intercept,
        row_count=rows.row_count - offset,
        measures_noise=options.measures_noise(specification, width),
    )
    check_memory(Sizes(options.method, width, rows.row_count, len(names), specification.size))
    with one_thread_each():
        batch = gather(rows, request, engine)
        merged = _merged(None if before is None else before.gathered, batch, names, extends)
        fit = finish_fit(rows, options, engine.name, merged, None, reasons, warnings)
    return fit, Batches(merged, rows.row_count, options.seed)


def _check_first_size(asked: int | None, columns: int, options: FitOptions) -> None:
    """Refuse a first batch whose one sketch leaves columns open, and say how to begin with such sketches."""
    if options.method == "stack" and options.alpha == 0 and asked is not None and 2 <= asked <= columns + 1:
        raise InputError(
            f"sketch_size={asked} is too small for a first batch: partial_fit solves after every batch, and one sketch "
            f"of {asked} rows leaves {columns} columns open (intercept included); begin with fit and n_partitions="
            f"{-(-(columns + 2) // asked)} or more, and go on with partial_fit, or give at least {columns + 2}."
        )


def _check_rows(rows: int, columns: int, extends: bool, options: FitOptions) -> None:
    least = columns + 2
    if options.alpha == 0 and not extends and rows < least:
        raise InputError(
            f"This batch has {rows} rows, and a partition of its own needs at least {least} ({columns} columns to "
            "estimate, plus 2): give larger batches, or add it to the last partition with new_partition=False."
        )


def _merged(before: Gathered | None, batch: Gathered, names: tuple[str, ...], extends: bool) -> Gathered:
    """Put a batch to what was there before."""
    counts = [*(() if before is None else before.row_counts), *(() if extends else (0,))]
    weights = [*(() if before is None else before.weight_sums), *(() if extends else (0.0,))]
    counts[-1] += sum(batch.row_counts)
    weights[-1] += sum(batch.weight_sums)
    if before is None:
        return replace(batch, names=names, row_counts=tuple(counts), weight_sums=tuple(weights))
    summaries, new, exact = list(before.summaries), batch.summaries[0], batch.last_exact
    if extends:
        summaries[-1] = _extended(summaries[-1], new)
        if before.last_exact is not None and exact is not None:
            # What two batches leave together is not the sum of what each leaves alone: it takes the sums of both.
            exact = _extended(before.last_exact, exact)
            summaries[-1] = with_noise(summaries[-1], measured_noise(exact, _targets(exact, batch)))
    else:
        summaries.append(new)
    low = np.minimum(before.target_range[0], batch.target_range[0])
    high = np.maximum(before.target_range[1], batch.target_range[1])
    target_range = np.stack([low, high])
    return Gathered(tuple(summaries), names, tuple(counts), tuple(weights), target_range, 0, last_exact=exact)


def _targets(exact: Summary, batch: Gathered) -> tuple[str, ...]:
    return exact.columns[len(exact.columns) - batch.target_range.shape[1] :]


def _extended(summary: Summary, new: Summary) -> Summary:
    if get_sketch(summary.kind).is_random:
        return summary.sum(new)
    centre = common_centre((summary, new))
    rows = factor_of_rows(joined_rows(centre, summary, new)).moved(centre)
    return replace(
        summary,
        matrix=rows.high,
        low=rows.low,
        centre=centre,
        parts=(replace(summary.parts[0], stop=new.parts[0].stop),),
        row_count=summary.row_count + new.row_count,
        weight_sum=summary.weight_sum + new.weight_sum,
    )
