"""`partsketch.plan`: which method, sketch, size and number of partitions, before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from partsketch.common.counts import refuse_too_many
from partsketch.common.errors import InputError
from partsketch.fitting.extremes import within_doubles
from partsketch.fitting.limits import Limits
from partsketch.fitting.options import FitOptions
from partsketch.planner.calibration import Calibration
from partsketch.planner.calibration import calibration as calibrated
from partsketch.planner.choosing import free_memory, make_plan
from partsketch.planner.costs import ENGINE_COSTS
from partsketch.planner.plan import Plan
from partsketch.planner.survey import look, survey_of_sizes
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.theory.arguments import require_count

#: Formulas take the sketch size of every partition.
_MOST_PARTITIONS = 1_000_000


def plan(
    data: Any = None,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    columns: int | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    n_partitions: int | None = None,
    partition_by: str = "order",
    sketch_size: int | None = None,
    fit_intercept: bool = True,
    engine: str = "local",
    delta: float | None = None,
    weights: str | None = None,
    encode: bool = False,
    missing: Literal["error", "drop"] = "error",
    recalibrate: bool = False,
    calibration: Calibration | None = None,
) -> Plan:
    """Compare every way to fit a model, before doing it: what each loses, sends and costs; and which to take.

    Parameters
    ----------
    data, target, features, weights, encode, missing
        The data, as in `partsketch.fit`; only metadata and a few thousand rows are read (all rows when they are few).
    rows, columns
        Instead of data: how many rows, and how many feature columns.
    limits
        What may not be exceeded: a `Limits`, or a mapping such as `{"max_excess": "1%", "seconds": 10}`.
    n_partitions
        The number k of partitions; several are tried when None.
    partition_by
        How the partitions are made, as in `partsketch.fit`.
    sketch_size
        The number m of sketch rows; several are tried when None.
    fit_intercept
        Whether the model has an intercept.
    engine
        "local", "dask", "ray" or "spark".
    delta
        Ask for the sketch size from which the bound B'_θ holds with probability 1 − δ.
    recalibrate
        Whether to measure the speed of this machine anew; it is measured once otherwise, in about two seconds.
    calibration
        The speeds to reckon with, instead of this machine's.

    Returns
    -------
    Plan
        Prints as a table; `to_dict` gives plain data.

    Examples
    --------
    >>> import partsketch as ps
    >>> answer = ps.plan(rows=10_000_000, columns=50)
    >>> answer.recommended.method
    'exact'
    """
    if engine.split(":", 1)[0] not in ENGINE_COSTS:
        raise InputError(f"engine is {engine!r}: plans are made for {', '.join(ENGINE_COSTS)}.")
    if n_partitions is not None:
        require_count("n_partitions", n_partitions)
    refuse_too_many(_MOST_PARTITIONS, n_partitions=n_partitions)
    refuse_too_many(sketch_size=sketch_size)
    if delta is not None and not 0 < delta < 1:
        raise InputError(f"delta is {delta}: it is the probability of failure, strictly between 0 and 1.")
    source: Source | None = None
    if data is None:
        if rows is None or columns is None:
            raise InputError("There is nothing to plan for: give data and a target, or rows and columns.")
        survey = survey_of_sizes(rows, columns, fit_intercept)
    else:
        if rows is not None or columns is not None:
            raise InputError("Give either data, or rows and columns: not both.")
        if target is None:
            raise InputError("Name the target column: target='y', or --target y.")
        options = FitOptions(
            method="exact",
            n_partitions=n_partitions or 1,
            partition_by=partition_by,
            remainder="spread",
            sketch="gaussian",
            sketch_size=None,
            fit_intercept=fit_intercept,
            seed=0,
        )
        source = open_source(
            data,
            target=target,
            features=features,
            weights=weights,
            partition_column=options.partition_column,
            encode=encode,
            missing=missing,
            fit_intercept=fit_intercept,
        )
        with within_doubles(source):
            survey = look(source, options, seed_of_fit=False)
        if partition_by == "file" and source.files:
            n_partitions = len(source.files)
        elif options.partition_column is not None:
            n_partitions = len(source.partition_values)
    if sketch_size is not None and sketch_size < survey.columns + 2:
        raise InputError(
            f"sketch_size={sketch_size} is too small: with {survey.columns} columns to estimate (intercept included) "
            f"it must be at least {survey.columns + 2}."
        )
    with within_doubles(source):
        return make_plan(
            survey,
            limits,
            partitions=n_partitions,
            sketch_size=sketch_size,
            engine=engine.split(":", 1)[0],
            delta=delta,
            calibration=calibration or calibrated(again=recalibrate),
            memory_available=free_memory(),
        )
