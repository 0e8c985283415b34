"""The walk from a source to a model: plan the tasks, have them run, merge, solve, combine, and write the record."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from partsketch._version import __version__
from partsketch.combine import Combination, combine_average, combine_stack
from partsketch.engines.base import Engine
from partsketch.errors import InputError
from partsketch.fold import OrderedFold
from partsketch.model import Model, PartitionRecord, Record
from partsketch.options import METHODS, FitOptions
from partsketch.partitions import Partitioning, check_partition_sizes, make_partitioning, single_partition
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources.base import Source
from partsketch.summarise import INTERCEPT, SEGMENT_ROWS, Piece, SummaryRequest, Task
from partsketch.summary import Part, Summary
from partsketch.wording import alias_warnings, constant_target_warnings, size_warning

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """A model and the summaries it was made from."""

    model: Model
    summaries: tuple[Summary, ...]
    combination: Combination


@dataclass(frozen=True)
class _Gathered:
    """Everything that the tasks brought back, merged by partition."""

    matrices: list[tuple[FloatArray, ...]]
    row_counts: list[int]
    weight_sums: list[float]
    target_range: FloatArray
    dropped: int
    rows_seen: int


def fit_source(source: Source, options: FitOptions, engine: Engine) -> Fit:
    """Fit a model to the rows of a source."""
    method = METHODS[options.method]
    features = (*((INTERCEPT,) if options.fit_intercept else ()), *source.feature_names)
    if not features:
        raise InputError("There is nothing to fit: no features and no intercept.")
    if not source.target_names:
        raise InputError("There is nothing to fit: no target.")
    source, partitioning, left_out = _partition(source, options)
    warnings: list[str] = []
    reasons: dict[str, str] = {"method": f"method={options.method!r} was asked for: {method.description}"}
    specification = SketchSpecification("triangular")
    if method.sketched:
        smallest = _smallest_known_size(partitioning, source)
        size, reasons["sketch_size"] = choose_sketch_size(options.sketch_size, len(features), smallest)
        if warning := size_warning(size, len(features)):
            warnings.append(warning)
        specification = SketchSpecification(options.sketch, size, options.seed)
        if partitioning.bounds is not None and source.row_count is not None and method.by_partition:
            sizes = [int(size) for size in np.diff(partitioning.bounds)]
            check_partition_sizes(sizes, partitioning.names, len(features), options.partition_by)
    request = SummaryRequest(
        specification, partitioning, options.fit_intercept, 1 if method.by_partition or not method.sketched else options.n_partitions
    )
    with threadpool_limits(limits=1):
        # One thread for the small problems too: their rounding should not depend on the number of cores.
        gathered = _gather(source, request, engine)
        _check_rows(gathered, partitioning, options, len(features))
        summaries = _summaries(gathered, request, features + source.target_names)
        combine = combine_stack if method.combines_by == "stack" else combine_average
        combination = combine(summaries, features, source.target_names, int(options.fit_intercept))
    names = partitioning.names if method.by_partition else tuple(f"sketch {i}" for i in range(len(summaries)))
    warnings += alias_warnings(combination.solutions, names if method.sketched or method.by_partition else ("all",), len(features))
    warnings += constant_target_warnings(gathered.target_range, source.target_names)
    if gathered.dropped:
        warnings.append(f"{gathered.dropped} rows with missing values were dropped.")
    if left_out:
        warnings.append(f"The last {left_out} rows were left out so that all partitions have the same size.")
    if not method.sketched and gathered.row_counts:
        reasons["route"] = (
            "each block of rows takes the fast Gram route while no variance inflation factor exceeds 10,000, "
            "and is divided by the factor of the rows before it otherwise"
        )
    worst = max(combination.solutions, key=lambda solution: solution.condition)
    record = Record(
        options=_plain_options(options, engine),
        seed=options.seed,
        sketch_size=specification.size,
        row_count=sum(gathered.row_counts),
        weight_sum=sum(gathered.weight_sums),
        rows_dropped=gathered.dropped,
        rows_left_out=left_out,
        rank=min(solution.rank for solution in combination.solutions),
        condition=_finite_or_none(worst.condition),
        tolerance=float(worst.tolerance),
        aliased=_aliased(combination),
        partitions=_partition_records(combination, summaries, names, partitioning, gathered),
        reasons=reasons,
        warnings=tuple(warnings),
        versions=_versions(),
        data=source.description,
    )
    model = _model(combination, source, options, record)
    return Fit(model, summaries, combination)


def choose_sketch_size(asked: int | None, columns: int, smallest_partition: int | None) -> tuple[int, str]:
    """Return the number of sketch rows and the reason for it; refuse sizes at which the error has no mean."""
    if asked is not None:
        if asked <= columns + 1:
            raise InputError(
                f"sketch_size={asked} is too small: with {columns} columns to estimate (intercept included) it must be "
                f"at least {columns + 2}, and at least {columns + 4} for a finite variance."
            )
        return int(asked), f"sketch_size={asked} was asked for"
    size = max(4 * columns, columns + 16)
    reason = f"four rows per column to estimate ({columns}), far from the sizes at which errors have heavy tails"
    if smallest_partition is not None and smallest_partition < size:
        size = max(columns + 4, smallest_partition)
        reason = (
            f"as many rows as the smallest partition ({smallest_partition}), "
            f"but at least {columns + 4}, where errors have a finite variance"
        )
    return size, reason


def _partition(source: Source, options: FitOptions) -> tuple[Source, Partitioning, int]:
    """Return the source, counted if need be, the partitioning, and how many rows it leaves out."""
    method = METHODS[options.method]
    needs_count = options.remainder == "drop" or (method.by_partition and options.partition_by in ("order", "file"))
    if needs_count and (source.row_count is None or any(part.stop is None for part in source.files)):
        source = source.counted()
    rows = source.row_count
    if rows == 0:
        raise InputError(f"There are no rows in {source.description}.")
    left_out = 0
    if options.remainder == "drop":
        assert rows is not None
        left_out = rows % options.n_partitions
    if not method.by_partition:
        return source, single_partition(None if rows is None else rows - left_out), left_out
    if options.partition_by == "order" and rows is not None and options.n_partitions > rows:
        raise InputError(
            f"n_partitions={options.n_partitions} is larger than the number of rows, {rows}: give at most {rows}."
        )
    partitioning = make_partitioning(
        source, options.partition_by, options.n_partitions, options.remainder, options.seed
    )
    return source, partitioning, left_out


def _smallest_known_size(partitioning: Partitioning, source: Source) -> int | None:
    if source.row_count is None:
        return None
    if partitioning.bounds is None:
        return source.row_count // partitioning.count
    return int(np.diff(partitioning.bounds).min())


def make_tasks(source: Source, partitioning: Partitioning) -> list[Task]:
    """Cut the rows into tasks of whole segments; one task when the source can only be read from its beginning."""
    stop = partitioning.bounds[-1] if partitioning.bounds is not None else source.row_count
    if not source.random_access or source.row_count is None:
        return [Task(0, None if stop is None or stop >= 2**62 else stop)]
    assert stop is not None
    bounds = partitioning.bounds if partitioning.bounds is not None else (0, stop)
    starts = [
        start
        for first, last in zip(bounds[:-1], bounds[1:], strict=True)
        for start in range(first, last, SEGMENT_ROWS)
    ]
    # Starting inside a row group means decoding it from its beginning: take all segments that start in one together.
    natural = source.boundaries
    if natural:
        group = np.searchsorted(np.asarray(natural), starts, side="right")
        starts = [start for i, start in enumerate(starts) if i == 0 or group[i] != group[i - 1]]
    return [Task(start, end) for start, end in zip(starts, [*starts[1:], stop], strict=True)]


def _gather(source: Source, request: SummaryRequest, engine: Engine) -> _Gathered:
    count, sketches = request.partitioning.count, request.sketches_per_partition
    sketch = get_sketch(request.specification.kind)

    def merge(first: tuple[FloatArray, ...], second: tuple[FloatArray, ...]) -> tuple[FloatArray, ...]:
        return tuple(sketch.merge(a, b) for a, b in zip(first, second, strict=True))

    folds: list[OrderedFold[tuple[FloatArray, ...]]] = [OrderedFold(merge) for _ in range(count)]
    rows, weights = [0] * count, [0.0] * count
    target_range = np.array([[np.inf], [-np.inf]]) * np.ones(len(source.target_names))
    dropped = seen = 0
    for result in engine.run(source, request, make_tasks(source, request.partitioning)):
        for piece in result.pieces:
            _add(piece, folds, rows, weights, target_range)
        dropped += result.dropped
        seen += result.rows_seen
    width = int(request.fit_intercept) + len(source.feature_names) + len(source.target_names)
    empty = tuple(sketch.accumulator(request.specification, 0, width, len(source.target_names)).finish() for _ in range(sketches))
    return _Gathered(
        [fold.result() or empty for fold in folds], rows, weights, target_range, dropped, seen
    )


def _add(
    piece: Piece,
    folds: Sequence[OrderedFold[tuple[FloatArray, ...]]],
    rows: list[int],
    weights: list[float],
    target_range: FloatArray,
) -> None:
    folds[piece.partition].push(piece.segment, piece.matrices)
    rows[piece.partition] += piece.row_count
    weights[piece.partition] += piece.weight_sum
    target_range[0] = np.minimum(target_range[0], piece.target_range[0])
    target_range[1] = np.maximum(target_range[1], piece.target_range[1])


def _check_rows(gathered: _Gathered, partitioning: Partitioning, options: FitOptions, columns: int) -> None:
    if sum(gathered.row_counts) == 0:
        why = f"all {gathered.dropped} rows have missing values" if gathered.dropped else "the input has none"
        raise InputError(f"There are no rows to fit: {why}.")
    if sum(gathered.weight_sums) <= 0:
        raise InputError("All sample weights are zero: at least one must be positive.")
    method = METHODS[options.method]
    if method.sketched and method.by_partition:
        check_partition_sizes(gathered.row_counts, partitioning.names, columns, options.partition_by)
    for name, rows in zip(partitioning.names, gathered.row_counts, strict=True):
        if rows == 0:
            raise InputError(f"Partition {name!r} has no rows: use fewer partitions.")


def _summaries(gathered: _Gathered, request: SummaryRequest, columns: tuple[str, ...]) -> tuple[Summary, ...]:
    bounds = request.partitioning.bounds
    summaries = []
    for partition, matrices in enumerate(gathered.matrices):
        start, stop = (bounds[partition], bounds[partition + 1]) if bounds is not None else (0, gathered.rows_seen)
        for number, matrix in enumerate(matrices):
            part = Part(
                origin="",
                stream=partition * request.sketches_per_partition + number,
                start=start,
                stop=min(stop, max(gathered.rows_seen, start)) if stop >= 2**62 else stop,
                size=matrix.shape[0],
                seed=request.specification.seed,
            )
            summaries.append(
                Summary(
                    matrix=matrix,
                    columns=columns,
                    kind=request.specification.kind,
                    parts=(part,),
                    row_count=gathered.row_counts[partition],
                    weight_sum=gathered.weight_sums[partition],
                )
            )
    return tuple(summaries)


def _aliased(combination: Combination) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the columns that are aliased in every fit, with what they depend on in the first."""
    first, *others = combination.solutions
    everywhere = [
        alias
        for alias in first.aliased
        if all(alias.column in {other.column for other in solution.aliased} for solution in others)
    ]
    return tuple((alias.column, alias.others) for alias in everywhere)


def _partition_records(
    combination: Combination,
    summaries: Sequence[Summary],
    names: tuple[str, ...],
    partitioning: Partitioning,
    gathered: _Gathered,
) -> tuple[PartitionRecord, ...]:
    if len(combination.solutions) == len(summaries):
        return tuple(
            PartitionRecord(name, summary.row_count, solution.rank, _finite_or_none(solution.condition))
            for name, summary, solution in zip(names, summaries, combination.solutions, strict=True)
        )
    return tuple(
        PartitionRecord(name, rows, None, None)
        for name, rows in zip(partitioning.names, gathered.row_counts, strict=True)
    )


def _model(combination: Combination, source: Source, options: FitOptions, record: Record) -> Model:
    first = int(options.fit_intercept)
    targets = len(source.target_names)

    def intercept(coefficients: FloatArray) -> FloatArray:
        return coefficients[0] if first else np.zeros(targets)

    return Model(
        feature_names=source.feature_names,
        target_names=source.target_names,
        coefficients=combination.coefficients[first:],
        intercept=intercept(combination.coefficients),
        partition_coefficients=np.stack([s.coefficients[first:] for s in combination.solutions]),
        partition_intercepts=np.stack([intercept(s.coefficients) for s in combination.solutions]),
        record=record,
        encoding=source.encoding,
    )


def _plain_options(options: FitOptions, engine: Engine) -> dict[str, Any]:
    values = asdict(replace(options, sketch_size=None if options.sketch_size is None else int(options.sketch_size)))
    values["n_partitions"] = int(options.n_partitions)
    values["fit_intercept"] = bool(options.fit_intercept)
    return {**values, "engine": engine.name}


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _versions() -> dict[str, str]:
    import numba
    import scipy

    return {
        "partsketch": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
