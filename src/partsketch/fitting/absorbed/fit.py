"""From sums by level to a model: common slopes, an intercept for every level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.free_memory import available_memory
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.units import bytes_text
from partsketch.engines.base import Engine
from partsketch.engines.gather import Collector, Gathered, make_tasks
from partsketch.engines.run import run_tasks
from partsketch.engines.tolerance import Tolerance
from partsketch.fitting.absorbed.less_means import LessMeans
from partsketch.fitting.absorbed.level_pass import LevelRequest, segment_rows_for
from partsketch.fitting.fit import Fit, finish_fit
from partsketch.fitting.options import FitOptions
from partsketch.fitting.robust.asked import check_replayable
from partsketch.fitting.robust.errors import RowErrors
from partsketch.fitting.robust.vcov import IID, clusters_of
from partsketch.fitting.robust.within import Absorbed
from partsketch.model.model import Model
from partsketch.model.record import PartitionRecord
from partsketch.sketches.absorbed import within_levels
from partsketch.sketches.gram import Products
from partsketch.sources.base import Source
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import Piece

FloatArray = NDArray[np.float64]

#: Coefficients of levels, slopes included, up to which a model keeps them: beyond, its file would have many megabytes.
MOST_EFFECTS = 100_000
#: What is left of a column within levels, as a part of its sum of squares: below, rounding is all there is.
_CONSTANT = 2.0**-84
#: Sums with twice the digits are rounded by 2⁻⁹⁵ (of few rows) to 2⁻⁸⁵ of themselves. What is left between these parts
#: lost digits, or is not told from nothing.
_DIGITS_LOST = (2.0**-92, 2.0**-60)
#: Copies of the sums of levels at once: two that are merged, the result, and those that wait.
_COPIES = 5


@dataclass(frozen=True)
class _Within:
    """Columns less the means of their levels; `lost` names one that keeps too few digits, if there is any."""

    summary: Summary
    means: FloatArray
    absorbed: Absorbed
    notes: tuple[str, ...]
    lost: str | None


def fit_absorbed(source: Source, options: FitOptions, engine: Engine, chosen: Mapping[str, str] | None = None) -> Fit:
    """Fit common slopes to rows of which each level of the absorbed column has an intercept of its own."""
    levels = source.partition_count
    width = 1 + len(source.feature_names) + len(source.target_names)
    if options.vcov != IID:
        check_replayable(source, options.vcov)
    if not source.target_names:
        raise InputError("There is nothing to fit: no target.")
    needed = _COPIES * 8 * levels * (2 + 2 * width)
    if needed > available_memory():
        raise InputError(
            f"absorb={options.absorb!r} keeps {2 + 2 * width} numbers for each of {levels:,} levels, and "
            f"{bytes_text(needed)} are not free: use fewer features, or a column with fewer values."
        )
    with one_thread_each():
        whole, dropped = _summed(source, levels, width, engine)
        by_level = options.absorb in clusters_of(options.vcov)
        rows, within = source, _within(source, whole, by_level)
        if within.lost is not None:
            _check_second_pass(source, within.lost, options.absorb)
            rows, means = LessMeans(source, within.means), within.means
            within = _within(source, _summed(rows, levels, width, engine)[0], by_level)
            within = replace(within, means=means + within.means)
        gathered = Gathered(
            (within.summary,), ("all",), (whole.row_count,), (whole.weight_sum,), whole.target_range, dropped
        )
        reasons = {
            "method": "exact least squares with an intercept for every level",
            "absorb": (
                f"{within.absorbed.levels:,} levels of {options.absorb!r} have an intercept each, by sums of rows; "
                "R² and the intercept of the model are those within levels"
            ),
            **(chosen or {}),
        }
        errors = None
        if options.vcov != IID:
            errors = RowErrors(rows, single_partition(source.row_count), engine, options.vcov, within.absorbed)
        plain = replace(options, fit_intercept=False)
        fit = finish_fit(source, plain, engine.name, gathered, None, reasons, within.notes, errors=errors)
    # Columns that are constant within levels are zero only here: what is said of zero columns is not true of them.
    told = tuple(sentence for sentence in fit.model.record.warnings if "is zero in every row" not in sentence)
    model = replace(fit.model, record=replace(fit.model.record, warnings=told))
    return replace(fit, model=_with_effects(model, source, within, whole))


def _summed(source: Source, levels: int, width: int, engine: Engine) -> tuple[Piece, int]:
    rows, clustered = segment_rows_for(levels, width), source.cluster_count > 0
    request = LevelRequest(single_partition(source.row_count), levels, width, rows, clustered)
    tasks = make_tasks(source, request.partitioning, segment_rows=request.segment_rows)
    collected = Collector(request, tasks)
    for outcome in run_tasks(engine, source, request, tasks, range(len(tasks)), Tolerance()):
        collected.add(outcome)
    whole = collected.fold.take(0)
    if whole is None:
        raise InputError(f"There are no rows to fit in {source.description}.")
    if whole.weight_sum <= 0:
        raise InputError("All sample weights are zero: at least one must be positive.")
    return whole, collected.dropped


def _within(source: Source, whole: Piece, by_level: bool) -> _Within:
    """Take the means of levels out of the columns; levels may be clusters themselves."""
    matrix, lines = whole.matrices[:2]
    before = Products.read(matrix)
    left, means = within_levels(matrix, lines)
    parts = np.diagonal(left.high)[1:] / np.where(np.diagonal(before.high)[1:] > 0, np.diagonal(before.high)[1:], 1.0)
    lost = np.flatnonzero((parts > _DIGITS_LOST[0]) & (parts < _DIGITS_LOST[1]))
    # The ones are gone, and so is every column that is constant within levels.
    gone = np.diagonal(left.high) <= _CONSTANT * np.diagonal(before.high)
    high, low = left.high.copy(), np.zeros_like(left.high) if left.low is None else left.low.copy()
    for part in (high, low):
        part[gone] = 0.0
        part[:, gone] = 0.0
    rows, rest = Products(left.scale[1:], high[1:, 1:], low[1:, 1:]).factor(len(source.feature_names))
    alone = int((lines[:, 1] == 1).sum())
    levels = int((lines[:, 2] > 0).sum()) - alone
    used = whole.row_count - alone
    if not levels:
        raise InputError(
            "Every level of the absorbed column has one row only: nothing is left to compare within levels."
        )
    columns = (*source.feature_names, *source.target_names)
    summary = Summary(
        matrix=rows,
        low=rest,
        columns=columns,
        kind="triangular",
        parts=(),
        # Every level has cost a degree of freedom; rows that are alone in theirs say nothing.
        row_count=used - levels,
        weight_sum=whole.weight_sum,
    )
    centre = np.zeros(len(columns) + 1) if whole.centre is None else whole.centre
    means = means + centre
    numbers, single = lines[:, 0].astype(np.int64), np.zeros(source.partition_count, dtype=bool)
    all_means = np.zeros((source.partition_count, len(columns)))
    all_means[numbers], single[numbers] = means[:, 1:], lines[:, 1] == 1
    nested = by_level or not (len(whole.matrices) > 2 and (whole.matrices[2] < 0).any())
    absorbed = Absorbed(all_means, single, levels, source.cluster_count > 0, nested)
    notes = tuple(_notes(source, gone[1:], alone))
    return _Within(summary, all_means, absorbed, notes, columns[lost[0]] if len(lost) else None)


def _check_second_pass(source: Source, column: str, absorb: str | None) -> None:
    """Refuse rows that lie elsewhere: the means of their levels cannot be taken off here."""
    if source.on_cluster:
        raise InputError(
            f"Column {column!r} lies so much farther apart between the levels of {absorb!r} than within them that one "
            "pass over the rows loses its digits: take a value off it in each level, or pass files or a table."
        )


def _notes(source: Source, gone: NDArray[np.bool_], alone: int) -> list[str]:
    columns = (*source.feature_names, *source.target_names)
    features = len(source.feature_names)
    notes = [
        f"Column {name!r} is constant within the levels that are absorbed: their intercepts say all that it says."
        for name in np.array(columns, dtype=object)[:features][gone[:features]]
    ]
    notes += [
        f"The target {name!r} is constant within the levels that are absorbed."
        for name in np.array(columns, dtype=object)[features:][gone[features:]]
    ]
    if alone:
        rows = "1 row is alone in a level and says" if alone == 1 else f"{alone:,} rows are alone in a level and say"
        notes.append(f"{rows} nothing of slopes: left out of all counts, as pyfixest does.")
    return notes


def _with_effects(model: Model, source: Source, within: _Within, whole: Piece) -> Model:
    """Return the model with the intercepts of levels, unless these are too many to keep."""
    lines = whole.matrices[1]
    if source.partition_count * (1 + len(source.feature_names)) > MOST_EFFECTS:
        return model
    names = source.partition_values
    features = len(source.feature_names)
    effects = within.means[:, features:] - within.means[:, :features] @ model.coefficients
    counts = np.zeros(len(names), dtype=np.int64)
    counts[lines[:, 0].astype(np.int64)] = lines[:, 1]
    partitions = tuple(PartitionRecord(name, int(rows), None, None) for name, rows in zip(names, counts, strict=True))
    return replace(
        model,
        record=replace(model.record, partitions=partitions),
        partition_intercepts=effects,
        partition_coefficients=np.repeat(model.coefficients[None], len(names), axis=0),
    )
