"""From a finished combination to the model with its record."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch._version import __version__
from partsketch.certificate import Certificate, certify
from partsketch.combine import Combination, Regression
from partsketch.gathering import Gathered
from partsketch.inference import Inference, infer
from partsketch.model import Model
from partsketch.options import METHODS, FitOptions
from partsketch.record import PartitionRecord, Record
from partsketch.sources.base import Source
from partsketch.summarise import SummaryRequest
from partsketch.wording import alias_warnings, constant_target_warnings, size_warnings

FloatArray = NDArray[np.float64]


def build_model(
    source: Source,
    options: FitOptions,
    engine_name: str,
    request: SummaryRequest,
    gathered: Gathered,
    combination: Combination,
    regression: Regression,
    rows_left_out: int,
    reasons: dict[str, str],
) -> Model:
    """Return the model: coefficients cut into intercept and features, and the record of how they came about."""
    method = METHODS[options.method]
    names = request.partitioning.names
    if not method.by_partition:
        names = tuple(f"sketch {number}" for number in range(len(gathered.summaries))) if method.sketched else ("all",)
    columns = combination.coefficients.shape[0]
    warnings: list[str] = []
    if request.specification.size is not None and options.alpha == 0:
        warnings += size_warnings(request.specification.size, columns)
    warnings += alias_warnings(combination.solutions, columns)
    warnings += constant_target_warnings(gathered.target_range, source.target_names)
    if gathered.rows_dropped:
        warnings.append(f"{gathered.rows_dropped} rows with missing values were dropped.")
    if rows_left_out:
        warnings.append(f"The last {rows_left_out} rows were left out so that all partitions have the same size.")
    conditions = [solution.condition for solution in combination.solutions]
    record = Record(
        options=_plain_options(options, engine_name),
        seed=options.seed,
        sketch_size=request.specification.size,
        row_count=sum(gathered.row_counts),
        weight_sum=sum(gathered.weight_sums),
        rows_dropped=gathered.rows_dropped,
        rows_left_out=rows_left_out,
        rank=min(solution.rank for solution in combination.solutions),
        condition=_finite_or_none(max((c for c in conditions if np.isfinite(c)), default=np.nan)),
        tolerance=max(float(solution.tolerance) for solution in combination.solutions),
        aliased=_aliased_everywhere(combination),
        partitions=_partition_records(names, gathered, combination),
        reasons=reasons,
        warnings=tuple(warnings),
        versions=_versions(),
        data=source.description,
    )
    first = int(options.fit_intercept)

    def intercept(coefficients: FloatArray) -> FloatArray:
        return coefficients[0] if first else np.zeros(len(source.target_names))

    certificates, inferences = _judge(options, gathered, combination, regression)
    return Model(
        feature_names=source.feature_names,
        target_names=source.target_names,
        coefficients=combination.coefficients[first:],
        intercept=intercept(combination.coefficients),
        partition_coefficients=np.stack([solution.coefficients[first:] for solution in combination.solutions]),
        partition_intercepts=np.stack([intercept(solution.coefficients) for solution in combination.solutions]),
        certificates=certificates,
        inferences=inferences,
        record=record,
        encoding=source.encoding,
    )


def _judge(
    options: FitOptions, gathered: Gathered, combination: Combination, regression: Regression
) -> tuple[tuple[Certificate, ...], tuple[Inference, ...]]:
    """Return a certificate and what is needed for inference, for every target."""
    common = (options.method, gathered.summaries, combination, regression)
    numbers = range(len(regression.targets))
    return tuple(certify(*common, number) for number in numbers), tuple(infer(*common, number) for number in numbers)


def _aliased_everywhere(combination: Combination) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the columns that are aliased in every fit, with what they depend on in the first."""
    in_all = set.intersection(*({alias.column for alias in solution.aliased} for solution in combination.solutions))
    return tuple((alias.column, alias.others) for alias in combination.solutions[0].aliased if alias.column in in_all)


def _partition_records(
    names: tuple[str, ...], gathered: Gathered, combination: Combination
) -> tuple[PartitionRecord, ...]:
    rows = [summary.row_count for summary in gathered.summaries]
    if len(combination.solutions) != len(rows):
        return tuple(PartitionRecord(name, count, None, None) for name, count in zip(names, rows, strict=True))
    return tuple(
        PartitionRecord(name, count, solution.rank, _finite_or_none(solution.condition))
        for name, count, solution in zip(names, rows, combination.solutions, strict=True)
    )


def _plain_options(options: FitOptions, engine_name: str) -> dict[str, Any]:
    """Return the options as numbers and texts that JSON knows, NumPy integers included."""
    values = asdict(options)
    values["n_partitions"] = int(options.n_partitions)
    values["sketch_size"] = None if options.sketch_size is None else int(options.sketch_size)
    values["alpha"] = float(options.alpha)
    return {**values, "engine": engine_name}


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
