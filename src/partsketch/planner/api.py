"""`partsketch.plan`: which method, sketch, size and number of partitions, before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from partsketch.common.counts import refuse_too_many
from partsketch.common.errors import InputError
from partsketch.common.signatures import divided, passes_on
from partsketch.engines.base import engine_class
from partsketch.fitting.data_request import DataKeywords, DataRequest, as_formula_says
from partsketch.fitting.extremes import within_doubles
from partsketch.fitting.keywords import FitKeywords, choices_of
from partsketch.fitting.limits import Limits
from partsketch.fitting.options import FitOptions
from partsketch.planner.calibration import Calibration
from partsketch.planner.calibration import calibration as calibrated
from partsketch.planner.choice import free_memory, make_plan
from partsketch.planner.notes import warn_of_columns
from partsketch.planner.plan import Plan
from partsketch.planner.survey import Survey, look, survey_of_sizes
from partsketch.sources.base import Source
from partsketch.summaries.file_header import MOST_SKETCH_ROWS
from partsketch.theory.arguments import require_count

#: Formulas take the sketch size of every partition.
_MOST_PARTITIONS = 1_000_000


class PlanKeywords(DataKeywords, total=False):
    """Keywords of `plan`, typed; their defaults are those of `PlanOptions` and `DataRequest`."""

    limits: Limits | Mapping[str, Any] | None
    n_partitions: int | None
    partition_by: str
    sketch_size: int | None
    fit_intercept: bool
    weighting: str
    engine: str
    delta: float | None
    recalibrate: bool
    calibration: Calibration | None


@dataclass(frozen=True)
class PlanOptions:
    """What may be asked of a plan, in the words of `plan`."""

    limits: Limits | Mapping[str, Any] | None = None
    n_partitions: int | None = None
    partition_by: str = FitKeywords.partition_by
    sketch_size: int | None = None
    fit_intercept: bool = FitKeywords.fit_intercept
    weighting: str = FitKeywords.weighting
    engine: str = "local"
    delta: float | None = None
    recalibrate: bool = False
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        # Refuses names that no engine has.
        engine_class(self.engine)
        if self.n_partitions is not None:
            require_count("n_partitions", self.n_partitions)
        refuse_too_many(_MOST_PARTITIONS, n_partitions=self.n_partitions)
        refuse_too_many(MOST_SKETCH_ROWS, sketch_size=self.sketch_size)
        if self.weighting not in choices_of("weighting"):
            raise InputError(f"weighting is {self.weighting!r}: choose from {', '.join(choices_of('weighting'))}.")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta}: it is the probability of failure, strictly between 0 and 1.")

    @property
    def engine_name(self) -> str:
        """The engine without its address."""
        return engine_class(self.engine).name


@passes_on(PlanKeywords, DataRequest, PlanOptions)
def plan(
    data: Any = None,
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    *,
    rows: int | None = None,
    columns: int | None = None,
    **keywords: Unpack[PlanKeywords],
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
    weighting
        How stacked sketches are weighted, as in `partsketch.fit`; it matters where all rows are looked at.
    engine
        "local", "dask", "ray", "spark", or the name of an engine of another package.
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
    asked_of_data, asked = divided(keywords, PlanKeywords, DataRequest, "plan")
    return plan_for(DataRequest(data, target, features, **asked_of_data), rows, columns, PlanOptions(**asked))


def plan_for(request: DataRequest, rows: int | None, columns: int | None, options: PlanOptions) -> Plan:
    """Make a plan for data, or for so many rows and columns."""
    partitions = options.n_partitions
    source: Source | None = None
    if request.data is None:
        if rows is None or columns is None:
            raise InputError("There is nothing to plan for: give data and a target, or rows and columns.")
        survey = survey_of_sizes(rows, columns, options.fit_intercept)
    elif rows is not None or columns is not None:
        raise InputError("Give either data, or rows and columns: not both.")
    else:
        survey, partitions, source = _looked_at(request, options)
    if options.sketch_size is not None and options.sketch_size * (partitions or 1) < survey.columns + 2:
        stacked = "" if partitions is None else f", or {-(-(survey.columns + 2) // partitions)} to be stacked"
        raise InputError(
            f"sketch_size={options.sketch_size} is too small: with {survey.columns} columns to estimate (intercept "
            f"included) it must be at least {survey.columns + 2}{stacked}."
        )
    with within_doubles(source):
        return make_plan(
            survey,
            options.limits,
            partitions=partitions,
            sketch_size=options.sketch_size,
            engine=options.engine_name,
            delta=options.delta,
            calibration=options.calibration or calibrated(again=options.recalibrate),
            memory_available=free_memory(),
        )


def _looked_at(request: DataRequest, options: PlanOptions) -> tuple[Survey, int | None, Source]:
    """Return what a look at the data says, the number of partitions if it is known, and the rows."""
    if request.target is None:
        raise InputError("Name the target column: target='y', or --target y.")
    keywords = FitKeywords(
        "exact",
        n_partitions=options.n_partitions or 1,
        partition_by=options.partition_by,
        fit_intercept=options.fit_intercept,
        random_state=0,
    )
    as_fit = FitOptions.made_of(keywords)
    source = request.open_for(as_fit)
    warn_of_columns(source)
    as_fit = as_formula_says(as_fit, source)
    with within_doubles(source):
        survey = look(source, as_fit, seed_of_fit=False, weighting=options.weighting)
    if options.partition_by == "file" and source.files:
        return survey, len(source.files), source
    if as_fit.partition_column is not None:
        return survey, len(source.partition_values), source
    return survey, options.n_partitions, source
