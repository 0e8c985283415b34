"""The walk from a source to a model: partition, summarise, solve, combine, and write the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.helpers import sharing_with
from partsketch.engines.base import Engine
from partsketch.engines.gather import Gathered, gather, guided
from partsketch.fitting.memory import Sizes, check_memory, gathering_bytes
from partsketch.fitting.options import FitOptions
from partsketch.fitting.refinement.routes import FACTOR_ROUTE, is_sparse, refine_if_quicker
from partsketch.fitting.robust.asked import check_replayable, errors_asked
from partsketch.fitting.robust.vcov import IID
from partsketch.fitting.sketch_size import choose_sketch_size, counted_if_needed
from partsketch.model.build import Circumstances, build_model
from partsketch.model.checks import check_targets
from partsketch.model.combine import combine_summaries
from partsketch.model.coordinates import standardise
from partsketch.model.methods import METHODS
from partsketch.model.model import Model
from partsketch.model.regression import Combination, Regression, combine_solution, restored
from partsketch.model.sentences import target_warnings
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources.base import PartitionLeftOut, Source
from partsketch.summaries.partitions import Partitioning, check_partition_sizes, make_partitioning, single_partition
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT, SummaryRequest

if TYPE_CHECKING:
    from partsketch.engines.checkpoint import Checkpoint
    from partsketch.fitting.refinement.exact import Refined
    from partsketch.fitting.robust.errors import RowErrors


@dataclass(frozen=True)
class Fit:
    """A model and the summaries it was made from; none when an exact fit was refined without a factor."""

    model: Model
    summaries: tuple[Summary, ...]
    combination: Combination
    gathered: Gathered | None = None


def fit_source(source: Source, options: FitOptions, engine: Engine, chosen: Mapping[str, str] | None = None) -> Fit:
    """Fit a model to the rows of a source; files that could not be opened are those of `source.unreadable`.

    `chosen` holds the reasons of a method that was chosen before.
    """
    method = METHODS[options.method]
    features = estimated_columns(source, options)
    if options.vcov != IID:
        check_replayable(source, options.vcov)
        options = replace(options, route="factor")
    unreadable = source.unreadable
    source, partitioning, left_out = _partition(source, options)
    _check_count(partitioning.count, len(unreadable), options)
    reasons = {"method": f"method={options.method!r} was asked for: {method.description}"}
    specification = SketchSpecification("triangular")
    warnings: tuple[str, ...] = ()
    if method.sketched:
        smallest = _smallest_partition(partitioning, source)
        stacked = partitioning.count if options.method == "stack" else 1
        size, reasons["sketch_size"] = choose_sketch_size(
            options.sketch_size, len(features), smallest, options.alpha > 0, options.sketch, stacked
        )
        reasons["sketch_size"] += _short(size, stacked, len(features))
        specification = SketchSpecification(options.sketch, size, options.seed, options.sparsity)
        warnings = get_sketch(options.sketch).size_warnings(size, len(features))
        if partitioning.bounds is not None and options.fits_each_partition:
            sizes = [int(size) for size in np.diff(partitioning.bounds)]
            check_partition_sizes(sizes, partitioning.names, len(features), options.partition_by, sum(sizes) + left_out)
    else:
        reasons["route"] = FACTOR_ROUTE
    if options.averaging == "inverse_variance":
        reasons["averaging"] = (
            "weights in inverse proportion to each partition's share of the predicted excess loss; "
            f"every partition sends {'its sketch' if method.sketched else 'its factor'}, not its coefficients alone"
        )
    if options.alpha > 0:
        reasons["alpha"] = f"ridge penalty {options.alpha:g} on all rows, shared among partitions by weight" + (
            ", and reduced on sketches so that they shrink like the rows" if method.sketched else ""
        )
    sketches = options.n_partitions if method.sketched and not method.by_partition else 1
    request = SummaryRequest(specification, partitioning, options.fit_intercept, sketches, source.row_count)
    request = replace(request, measures_noise=options.measures_noise(specification, _width(source, options)))
    # Sparse rows may do without a factor; for others the factor, or something of its size, is made.
    may_refine = options.method == "exact" and options.route != "factor"
    if not (may_refine and (is_sparse(source) or options.route == "iterate")):
        _check_memory(source, request, options)
    # One thread for the small problems too: their rounding should not depend on the number of cores.
    with one_thread_each(), sharing_with(engine.threads - 1):
        refined: Refined | None = None
        if options.method == "exact":
            refined, reasons["route"] = refine_if_quicker(source, partitioning, options, engine)
        if refined is not None:
            gathered = refined.gathered
        else:
            _check_memory(source, request, options)
            request = guided(source, request, engine, options.tolerance)
            with _checkpoint(source, request, options) as checkpoint:
                # Clusters are for the second pass.
                rows = source if options.vcov == IID else source.leaving_labels()
                gathered = gather(rows, request, engine, options.tolerance, checkpoint)
        _check_rows(gathered, options, len(features))
        circumstances = ({**reasons, **(chosen or {})}, warnings, left_out, unreadable)
        errors = errors_asked(source, partitioning, engine, options.vcov)
        return finish_fit(source, options, engine.name, gathered, refined, *circumstances, errors=errors)


def _short(size: int, stacked: int, columns: int) -> str:
    """Say of sketches with fewer rows than columns what they have together."""
    return f"; all {stacked} together have {stacked * size} rows for {columns} columns" if size <= columns + 1 else ""


def _check_memory(source: Source, request: SummaryRequest, options: FitOptions) -> None:
    """Refuse a fit for which there is no memory."""
    width = _width(source, options)
    summaries = request.partitioning.count * request.sketches_per_partition
    sizes = Sizes(options.method, width, source.row_count, summaries, request.specification.size)
    check_memory(sizes, gathering_bytes(source, request, options.checkpoint is not None))


def _width(source: Source, options: FitOptions) -> int:
    """Return how many columns the summaries have."""
    return int(options.fit_intercept) + len(source.feature_names) + len(source.target_names)


def estimated_columns(source: Source, options: FitOptions) -> tuple[str, ...]:
    """Return the names of the columns to estimate, the intercept first, or say why there are none."""
    features = ((INTERCEPT,) if options.fit_intercept else ()) + source.feature_names
    if not features:
        raise InputError("There is nothing to fit: no features and no intercept.")
    if options.fit_intercept and INTERCEPT in source.feature_names + source.target_names:
        raise InputError(f"A column is called {INTERCEPT!r}, which names the intercept: rename it.")
    if not source.target_names:
        raise InputError("There is nothing to fit: no target.")
    return features


def finish_fit(
    source: Source,
    options: FitOptions,
    engine_name: str,
    gathered: Gathered,
    refined: Refined | None,
    reasons: dict[str, str],
    warnings: tuple[str, ...] = (),
    rows_left_out: int = 0,
    unreadable: tuple[PartitionLeftOut, ...] = (),
    errors: RowErrors | None = None,
) -> Fit:
    """Solve what was gathered of the rows of a source, or take the refined solution, and write the record.

    `errors` makes standard errors that need one more pass over the rows.
    """
    method = METHODS[options.method]
    features = ((INTERCEPT,) if options.fit_intercept else ()) + source.feature_names
    regression = Regression(
        features,
        source.target_names,
        int(options.fit_intercept),
        float(options.alpha),
        options.averaging,
        weighting=options.weighting,
    )
    if refined is not None:
        standard: Sequence[Summary] = ()
        combination = combine_solution(refined.solution)
    else:
        coordinates, standard = standardise(
            gathered.summaries, features, source.target_names, int(options.fit_intercept)
        )
        regression = replace(regression, coordinates=coordinates)
        combination = combine_summaries(method, standard, regression)
    names = gathered.names
    if not method.by_partition:
        count = len(gathered.summaries)
        names = tuple(f"sketch {number}" for number in range(count)) if method.sketched else ("all",)
    design = source.encoding.design
    of_targets = target_warnings(gathered.target_range, source.target_names)
    check_targets(gathered.target_range, source.target_names, sum(gathered.weight_sums) / sum(gathered.row_counts))
    circumstances = Circumstances(
        options=options.to_dict(engine_name),
        seed=options.seed,
        names=names,
        row_count=sum(gathered.row_counts),
        weight_sum=sum(gathered.weight_sums),
        rows_dropped=gathered.rows_dropped,
        rows_left_out=rows_left_out,
        reasons=reasons if design is None else {**reasons, "formula": f"columns were made by {design.formula!r}"},
        warnings=(*warnings, *source.notes, *of_targets),
        data=source.description,
        encoding=source.encoding,
        partitions_left_out=(*unreadable, *gathered.left_out),
    )
    model = build_model(options.method, standard, combination, regression, circumstances)
    if errors is not None:
        model = errors.noted_in(model, combination.solutions[0], regression)
    return Fit(model, tuple(gathered.summaries), restored(combination, regression), gathered)


def _partition(source: Source, options: FitOptions) -> tuple[Source, Partitioning, int]:
    """Return the source, counted if need be, the partitioning, and how many rows it leaves out."""
    method = METHODS[options.method]
    needs_count = options.remainder == "drop" or (method.by_partition and options.partition_by in ("order", "file"))
    if method.sketched:
        source = counted_if_needed(source, options.sketch)
    if needs_count and (source.row_count is None or any(part.stop is None for part in source.files)):
        source = source.counted()
    rows = source.row_count
    if rows == 0:
        raise InputError(f"There are no rows in {source.description}.")
    left_out = 0
    if options.remainder == "drop":
        assert rows is not None
        if options.n_partitions > rows and not options.fits_each_partition:
            raise InputError(
                f"n_partitions={options.n_partitions} with remainder='drop' would leave out all {rows} rows: give at "
                f"most {rows}."
            )
        left_out = rows % options.n_partitions
    if not method.by_partition:
        return source, single_partition(None if rows is None else rows - left_out), left_out
    if (
        options.partition_by == "order"
        and rows is not None
        and options.n_partitions > rows
        and not options.fits_each_partition
    ):
        raise InputError(
            f"n_partitions={options.n_partitions} is larger than the number of rows, {rows}: give at most {rows}."
        )
    partitioning = make_partitioning(
        source, options.partition_by, options.n_partitions, options.remainder, options.seed
    )
    return source, partitioning, left_out


def _check_count(count: int, unreadable: int, options: FitOptions) -> None:
    least = options.min_partitions or 1
    if count >= least:
        return
    if unreadable:
        raise InputError(
            f"Only {count} of {count + unreadable} files could be opened, fewer than min_partitions={least}: "
            "mend the others, or ask for fewer."
        )
    raise InputError(f"min_partitions={least} is larger than the number of partitions, {count}: give at most {count}.")


def _smallest_partition(partitioning: Partitioning, source: Source) -> int | None:
    """Return the rows of the smallest partition as far as they are known before reading."""
    if source.row_count is None:
        return None
    if partitioning.bounds is None:
        return source.row_count // partitioning.count
    return int(np.diff(partitioning.bounds).min())


def _checkpoint(
    source: Source, request: SummaryRequest, options: FitOptions
) -> AbstractContextManager[Checkpoint | None]:
    """Open the folder that keeps finished tasks, if one is asked for."""
    if options.checkpoint is None:
        return nullcontext()
    from partsketch.engines.checkpoint import open_checkpoint
    from partsketch.fitting.checkpoint_identity import fit_identity

    if not source.replayable:
        raise InputError(f"A checkpoint needs data that can be read again, not a {source.description}: use a file.")
    identity = fit_identity(source, request, options)
    return open_checkpoint(Path(options.checkpoint), identity, options.seed, request.merging)


def _check_rows(gathered: Gathered, options: FitOptions, columns: int) -> None:
    if sum(gathered.row_counts) == 0:
        dropped = f"all {gathered.rows_dropped} rows have missing values or the weight zero"
        raise InputError(f"There are no rows to fit: {dropped if gathered.rows_dropped else 'the input is empty'}.")
    for name, rows in zip(gathered.names, gathered.row_counts, strict=True):
        if rows == 0:
            dropped = " without missing values and with a weight above zero" if gathered.rows_dropped else ""
            raise InputError(f"Partition {name!r} has no rows{dropped}: use fewer partitions.")
    if options.fits_each_partition:
        sizes = list(gathered.row_counts)
        check_partition_sizes(sizes, gathered.names, columns, options.partition_by, sum(sizes))
    elif options.method == "stack" and options.alpha == 0 and sum(gathered.row_counts) < columns + 2:
        raise InputError(
            f"Too few rows: {columns} columns to estimate need at least {columns + 2}, and there are "
            f"{sum(gathered.row_counts)} in all; use method='exact'."
        )
