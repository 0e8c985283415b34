"""From a finished combination to the model with its record."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch._version import __version__
from partsketch.model.cancellation import cancellation_warnings
from partsketch.model.certificate import Certificate, certify
from partsketch.model.checks import check_coefficients, check_solutions, checked_certificate, checked_inference
from partsketch.model.inference import Inference, infer
from partsketch.model.methods import METHODS
from partsketch.model.model import Model
from partsketch.model.moments import FitMoments
from partsketch.model.outlook_curves import planned_outlook
from partsketch.model.record import PartitionRecord, Record
from partsketch.model.regression import Combination, Regression, pooled_aliases, restored
from partsketch.model.sentences import (
    alias_warnings,
    dropped_rows,
    left_out_warnings,
    rounding_warnings,
    size_warnings,
    unknown_loss_warnings,
)
from partsketch.sources.base import PartitionLeftOut
from partsketch.sources.encoding import Encoding
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Circumstances:
    """What the record tells of a fit beyond what the summaries and their combination show.

    Attributes
    ----------
    options
        The options as plain data; at least "method" and "fit_intercept".
    seed
        The seed of all summaries; None when they do not share one.
    names
        One name per summary.
    row_count, weight_sum, rows_dropped, rows_left_out
        Rows and weight behind the fit; rows dropped for missing values; rows left out as remainder.
    reasons, warnings
        As in the record; warnings about the combination are added to these.
    data
        Description of the rows.
    encoding
        One-hot encoding of text columns.
    partitions_left_out
        Partitions that could not be read or came too late.
    """

    options: dict[str, Any]
    seed: int | None
    names: tuple[str, ...]
    row_count: int
    weight_sum: float
    rows_dropped: int
    rows_left_out: int
    reasons: dict[str, str]
    warnings: tuple[str, ...]
    data: str
    encoding: Encoding
    partitions_left_out: tuple[PartitionLeftOut, ...] = ()


def build_model(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    circumstances: Circumstances,
) -> Model:
    """Return the model: coefficients cut into intercept and features, and the record of how they came about."""
    columns, first = len(regression.features), int(INTERCEPT in regression.features)
    record = _record(method, summaries, combination, regression, circumstances)

    def intercept(coefficients: FloatArray) -> FloatArray:
        return coefficients[0] if first else np.zeros(len(regression.targets))

    whole = len(combination.solutions) != len(circumstances.names)
    check_solutions(combination.solutions, ("all",) * len(combination.solutions) if whole else circumstances.names)
    raw = restored(combination, regression, inverses=False)
    check_coefficients(raw.coefficients, combination, regression)
    coordinates = regression.coordinates
    centre, level = np.zeros(columns - first), intercept(raw.coefficients)
    if coordinates is not None and first:
        centre, level = coordinates.centre[first:columns], coordinates.levels(combination.coefficients)
    common = (method, summaries, combination, regression)
    certificates, inferences = _judged(*common)
    unknown = unknown_loss_warnings(certificates, regression.penalty)
    if told := unknown or cancellation_warnings(combination, summaries, regression):
        record = replace(record, warnings=(*record.warnings, *told))
    return Model(
        feature_names=regression.features[first:],
        target_names=regression.targets,
        coefficients=raw.coefficients[first:],
        intercept=intercept(raw.coefficients),
        partition_coefficients=np.stack([solution.coefficients[first:] for solution in raw.solutions]),
        partition_intercepts=np.stack([intercept(solution.coefficients) for solution in raw.solutions]),
        certificates=certificates,
        inferences=inferences,
        record=record,
        centre=centre,
        level=level,
        encoding=circumstances.encoding,
        look_ahead=planned_outlook(*common, certificates),
    )


def _judged(
    method: str, summaries: Sequence[Summary], combination: Combination, regression: Regression
) -> tuple[tuple[Certificate, ...], tuple[Inference, ...]]:
    """Return what a fit loses and how sure its coefficients are, for each target."""
    common = (method, summaries, combination, regression)
    # Sketches that were solved each by itself are not solved again.
    alone = METHODS[method].sketched and METHODS[method].combines_by != "stack" and regression.penalty == 0
    solutions = combination.solutions if alone else ()
    moments = [
        FitMoments(summaries, regression.features, target, regression.free_columns, solutions, number)
        for number, target in enumerate(regression.targets)
    ]
    coordinates, columns = regression.coordinates, len(regression.features)
    target_units = np.ones(len(moments)) if coordinates is None else coordinates.unit[columns:]
    # Partitions of wildly different sizes overflow in some numbers: these are then not stated.
    with np.errstate(over="ignore", invalid="ignore"):
        certified = [certify(*common, number, shared) for number, shared in enumerate(moments)]
        inferences = tuple(
            checked_inference(infer(*common, number, shared, certified[number]))
            for number, shared in enumerate(moments)
        )
        certificates = tuple(
            checked_certificate(certificate, float(np.square(unit)))
            for certificate, unit in zip(certified, target_units, strict=True)
        )
    return certificates, inferences


def _record(
    method: str,
    summaries: Sequence[Summary],
    combination: Combination,
    regression: Regression,
    circumstances: Circumstances,
) -> Record:
    """Return how the coefficients came about, with the warnings that this gives reason to."""
    size = summaries[0].height if METHODS[method].sketched else None
    stacked = len(summaries) if method == "stack" else 1
    conditions = [solution.condition for solution in combination.solutions]
    aliased = _aliased_everywhere(summaries, combination, regression)
    rows = [summary.row_count for summary in summaries] or [circumstances.row_count]
    return Record(
        options=circumstances.options,
        seed=circumstances.seed,
        sketch_size=size,
        row_count=circumstances.row_count,
        weight_sum=circumstances.weight_sum,
        rows_dropped=circumstances.rows_dropped,
        rows_left_out=circumstances.rows_left_out,
        rank=min(solution.rank for solution in combination.solutions),
        condition=_finite_or_none(max((c for c in conditions if np.isfinite(c)), default=np.nan)),
        tolerance=max(float(solution.tolerance) for solution in combination.solutions),
        aliased=aliased,
        partitions=_partition_records(circumstances.names, rows, combination),
        reasons={**circumstances.reasons, **_weighting_reasons(method, regression, combination)},
        warnings=tuple(_warnings(size, stacked, combination, regression, circumstances, aliased)),
        versions=library_versions(),
        data=circumstances.data,
        partitions_left_out=circumstances.partitions_left_out,
    )


def _weighting_reasons(method: str, regression: Regression, combination: Combination) -> dict[str, str]:
    """Say how stacked sketches were weighted and why, for each target where they differ."""
    if method != "stack":
        return {}
    told = [f"{choice.taken}: {choice.reason}" for choice in combination.stacking]
    if len(set(told)) == 1:
        return {"weighting": told[0]}
    return {"weighting": "; ".join(f"{target}: {text}" for target, text in zip(regression.targets, told, strict=True))}


def _warnings(
    size: int | None,
    stacked: int,
    combination: Combination,
    regression: Regression,
    circumstances: Circumstances,
    aliased: Sequence[tuple[str, tuple[str, ...]]],
) -> Iterator[str]:
    columns = len(regression.features)
    if size is not None and regression.penalty == 0:
        yield from size_warnings(size, columns, stacked)
    mean_weight = circumstances.weight_sum / max(circumstances.row_count, 1)
    yield from alias_warnings(combination.solutions, columns, mean_weight, size is not None)
    if (found := regression.coordinates) is not None:
        places, spreads = found.centre[:columns], found.unit[:columns]
        if not found.free:
            # Columns are measured from zero then; what the others leave of one is at least this.
            conditions = [1e16 if solution.aliased else solution.condition for solution in combination.solutions]
            places, spreads = spreads, spreads / np.clip(max(conditions), 1.0, 1e16)
        else:
            constant = {name for name, others in aliased if others == (INTERCEPT,)}
            spreads = np.where([name in constant for name in regression.features], 0.0, spreads)
        yield from rounding_warnings(regression.features, places, spreads)
    yield from circumstances.warnings
    if circumstances.rows_dropped:
        yield dropped_rows(circumstances.rows_dropped)
    if circumstances.rows_left_out:
        yield f"The last {circumstances.rows_left_out} rows were left out so that all partitions have the same size."
    yield from left_out_warnings(circumstances.partitions_left_out, len(circumstances.names))


def _aliased_everywhere(
    summaries: Sequence[Summary], combination: Combination, regression: Regression
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the columns that depend on others in all rows together, with what they depend on.

    What every partition by itself calls dependent says less: which column of several that is depends on their order.
    """
    solutions = combination.solutions
    if any(solution.rank == len(regression.features) for solution in solutions):
        return ()
    aliases = solutions[0].aliased if len(solutions) == 1 else pooled_aliases(summaries, regression)
    return tuple((alias.column, alias.others) for alias in aliases)


def _partition_records(
    names: tuple[str, ...], rows: Sequence[int], combination: Combination
) -> tuple[PartitionRecord, ...]:
    if len(combination.solutions) != len(rows):
        return tuple(PartitionRecord(name, count, None, None) for name, count in zip(names, rows, strict=True))
    return tuple(
        PartitionRecord(name, count, solution.rank, _finite_or_none(solution.condition))
        for name, count, solution in zip(names, rows, combination.solutions, strict=True)
    )


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def library_versions() -> dict[str, str]:
    """Return the versions of partsketch and of what computes for it."""
    return dict(_found_versions())


@cache
def _found_versions() -> dict[str, str]:
    import numba
    import scipy

    return {
        "partsketch": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
    }
