"""`partsketch.diagnose`: one pass over the rows, and what it says about a partitioning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.solve import solve_least_squares
from partsketch.engines.gather import gather
from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest, as_formula_says
from partsketch.fitting.extremes import within_doubles
from partsketch.fitting.keywords import FitKeywords
from partsketch.fitting.memory import Sizes, check_memory
from partsketch.fitting.options import FitOptions
from partsketch.fitting.sketch_size import choose_sketch_size
from partsketch.model.coordinates import Coordinates, standardise
from partsketch.model.moments import exact_moments
from partsketch.planner.diagnosis.advice import advise
from partsketch.planner.diagnosis.losses import loss_curve, method_losses
from partsketch.planner.diagnosis.results import Diagnosis
from partsketch.planner.diagnosis.rows import SeenRows
from partsketch.planner.diagnosis.unlikeness import divergence_ratio, partition_diagnoses
from partsketch.planner.diagnosis.watched_source import WatchedSource
from partsketch.planner.notes import warn_of_columns
from partsketch.sketches.base import GROUPS, SketchSpecification
from partsketch.sketches.groups import group_segment_rows
from partsketch.sources.base import Source
from partsketch.summaries.partitions import Partitioning, make_partitioning
from partsketch.summaries.tasks import INTERCEPT, SummaryRequest
from partsketch.theory.design import gaussian_design_divergence_of_sizes
from partsketch.theory.heterogeneity import Heterogeneity, partition_heterogeneity
from partsketch.theory.many_moments import many_moments
from partsketch.theory.moments import PartitionMoments, pooled_moments, trace_products


def diagnose(
    data: Any,
    target: str,
    features: Sequence[str] | None = None,
    *,
    n_partitions: int = 8,
    partition_by: str = "order",
    sketch_size: int | None = None,
    fit_intercept: bool = True,
    weights: str | None = None,
    encode: bool = False,
    missing: Literal["error", "drop"] = "error",
    seed: int = 0,
) -> Diagnosis:
    """Say how unlike the partitions are, which rows make them so, what each method would lose, and what to do.

    The rows are read once. In that pass partitions are summarised exactly, random partitions of the same rows beside
    them, and every row is found whose leverage in its own partition is at least 0.1 and three times the average.

    Parameters
    ----------
    data, target, features, weights, encode, missing
        The data, as in `partsketch.fit`, with one target.
    n_partitions, partition_by
        The partitioning, as in `partsketch.fit`.
    sketch_size
        Rows of each sketch in what sketched methods would lose; None takes the size that a fit would choose.
    fit_intercept
        Whether the model has an intercept.
    seed
        Seed of the random partitions.

    Returns
    -------
    Diagnosis
        Prints as tables; `to_dict` gives plain data.

    Examples
    --------
    >>> import numpy as np, partsketch as ps
    >>> rows = np.random.default_rng(0).normal(size=(2000, 4))
    >>> found = ps.diagnose(rows, target="x3", n_partitions=4)
    >>> round(found.divergence_ratio, 2), len(found.influential_rows)
    (1.01, 0)
    """
    keywords = FitKeywords(
        "average",
        n_partitions=n_partitions,
        partition_by=partition_by,
        sketch_size=sketch_size,
        fit_intercept=fit_intercept,
        random_state=seed,
    )
    if not isinstance(target, str):
        raise InputError("A diagnosis has one target: name a single column.")
    return diagnose_data(DataRequest(data, target, features, weights, encode, missing), keywords)


def diagnose_data(request: DataRequest, keywords: FitKeywords) -> Diagnosis:
    """Diagnose the partitioning that the keywords of a fit describe."""
    options = FitOptions.made_of(keywords)
    source = request.open_for(options)
    warn_of_columns(source)
    return diagnose_source(source, options)


def diagnose_source(source: Source, options: FitOptions) -> Diagnosis:
    """Diagnose the partitioning that the options of a fit describe."""
    options = as_formula_says(options, source)
    if len(source.target_names) != 1:
        raise InputError("A diagnosis has one target: name a single column.")
    if options.partition_by in ("order", "file") and source.row_count is None:
        source = source.counted()
    if options.partition_by == "order" and options.n_partitions > (source.row_count or 0):
        raise InputError(f"n_partitions={options.n_partitions} is larger than the number of rows, {source.row_count}.")
    partitioning = make_partitioning(source, options.partition_by, options.n_partitions, "spread", options.seed)
    names = tuple(str(number) for number in range(partitioning.count))
    shuffled = None if options.partition_by == "shuffle" else Partitioning(names, shuffle_seed=options.seed)
    watched = WatchedSource(source, partitioning, shuffled, options.fit_intercept)
    features = ((INTERCEPT,) if options.fit_intercept else ()) + source.feature_names
    free, target = int(options.fit_intercept), source.target_names[0]
    # All partitions together are solved as an exact fit is.
    sizes = Sizes("exact", len(features) + 1, source.row_count, 1, None)
    check_memory(sizes, ways_out="choose fewer features (--features)")
    request = SummaryRequest(SketchSpecification("triangular"), partitioning, options.fit_intercept)
    if partitioning.bounds is None and options.fit_intercept:
        # Values of a column may be thousands: they are summed side by side.
        rows = group_segment_rows(len(features) + 1, partitioning.count)
        request = replace(request, specification=SketchSpecification(GROUPS), segment_rows=rows)
    with one_thread_each(), within_doubles(source):
        gathered = gather(watched, request, LocalEngine())
        empty = [name for name, rows in zip(partitioning.names, gathered.row_counts, strict=True) if rows == 0]
        if empty:
            raise InputError(f"Partition {empty[0]!r} has no rows: use fewer partitions.")
        coordinates, standard = standardise(gathered.summaries, features, (target,), free)
        moments = exact_moments(standard, features, target, free)
        random_moments = _random_moments(watched, coordinates)
        return _judge(source, options, partitioning.names, features, moments, random_moments, watched, coordinates)


def _random_moments(watched: WatchedSource, coordinates: Coordinates) -> list[PartitionMoments]:
    """Return the moments of the random partitions in the coordinates of the real ones."""
    found = watched.random_factors()
    if found is None:
        return []
    # Without an intercept the ones are no column of the regression.
    ones = found.centres.shape[1] - len(coordinates.centre)
    off = np.concatenate([np.zeros(ones), coordinates.centre])
    factors = []
    for number in range(len(found.groups)):
        rows = DoubleDouble.of(*found.factor(number)).moved(found.centres[number] - off).high
        factors.append(rows[:, ones:] / coordinates.unit)
    return many_moments(factors, found.counts.tolist(), coordinates.free)


def _judge(
    source: Source,
    options: FitOptions,
    names: tuple[str, ...],
    features: tuple[str, ...],
    moments: list[PartitionMoments],
    random_moments: list[PartitionMoments],
    watched: WatchedSource,
    coordinates: Coordinates,
) -> Diagnosis:
    pooled = pooled_moments(moments)
    # A constant is zero in these coordinates: only its location tells it from a column of zeros.
    free, locations = int(options.fit_intercept), coordinates.locations
    solution = solve_least_squares(pooled.factor, features, 1, free, locations=locations)
    assert watched.centre is not None
    units = coordinates.unit[: len(features)]
    seen = SeenRows(watched.influential, [part.row_count for part in moments], watched.centre, units)
    rows = seen.influential(names, features)
    heavy = tuple(row.row for row in rows if row.outweighs)
    traces = trace_products(moments)
    full_rank = all(part.rank == part.columns for part in moments)
    smallest = min(part.row_count for part in moments)
    size, _ = choose_sketch_size(options.sketch_size, len(features), smallest)
    shuffled_full = random_moments and all(part.rank == pooled.rank for part in random_moments)
    ratio = divergence_ratio(moments)
    found = Diagnosis(
        data=source.description,
        target=source.target_names[0],
        row_count=pooled.row_count,
        columns=len(features),
        rank=pooled.rank,
        condition=float(solution.condition),
        aliased=tuple((alias.column, alias.others) for alias in solution.aliased),
        partitions=partition_diagnoses(moments, names),
        divergence_matrix=tuple(tuple(row) for row in traces.tolist()),
        divergence_ratio=ratio,
        random_divergence_ratio=_random_ratio([part.row_count for part in moments], pooled.rank),
        shuffled_divergence_ratio=divergence_ratio(random_moments) if shuffled_full else None,
        ratio_without_rows=seen.ratio_without([row.row for row in rows]),
        ratio_without_heavy_rows=seen.ratio_without(heavy),
        burg_divergence=float(traces.mean() - pooled.columns) if full_rank else None,
        influential_rows=rows,
        heterogeneity=_heterogeneity(options.partition_by, moments, random_moments),
        losses=method_losses(moments, random_moments, size),
        curve=loss_curve(moments, size),
        advice=(),
    )
    return advise(found)


def _random_ratio(sizes: list[int], rank: int) -> float | None:
    try:
        return gaussian_design_divergence_of_sizes(sizes, rank) / rank
    except InputError:
        return None


def _heterogeneity(
    partition_by: str, moments: list[PartitionMoments], random_moments: list[PartitionMoments]
) -> Heterogeneity | None:
    if len(moments) < 2:
        return None
    if partition_by == "shuffle":
        return Heterogeneity.unavailable("the partitions are random, and share their coefficients by design")
    return partition_heterogeneity(moments, random_moments)
