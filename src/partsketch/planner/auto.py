"""`method="auto"`: the plan of a fit, made and taken on the way to it."""

from __future__ import annotations

from partsketch.errors import InputError
from partsketch.fitting import choose_sketch_size
from partsketch.options import METHODS, FitOptions
from partsketch.planner.calibration import calibration
from partsketch.planner.choosing import free_memory, make_plan, options_from
from partsketch.planner.limits import Limits, limits_from
from partsketch.planner.plan import Plan
from partsketch.planner.survey import Survey, look
from partsketch.sources.base import Source


def choose_options(source: Source, options: FitOptions, engine: str) -> tuple[FitOptions, dict[str, str]]:
    """Return the options with a method in place of "auto", and the reasons for the record.

    The machine is calibrated only when times decide: without limits the fit is exact whenever that fits into memory.
    """
    columns = len(source.feature_names) + int(options.fit_intercept)
    if options.sketch_size is not None:
        choose_sketch_size(options.sketch_size, columns, None, options.alpha > 0, options.sketch)
    plan = plan_fit(source, options, engine)
    if plan.recommended is None:
        raise InputError(plan.reason)
    chosen = plan.recommended
    if options.alpha > 0 and METHODS[chosen.method].sketched:
        raise InputError(
            "method='auto' with a ridge penalty chooses exact least squares only, and it breaks a limit: name a method."
        )
    asked = ", ".join(f"{name}={value}" for name, value in limits_from(options.limits).to_dict().items() if value)
    reasons = {"limits": asked or "none"}
    reasons |= {"method": f"method='auto' chose {chosen.name}. {plan.reason}"}
    if chosen.sketch is not None:
        reasons["sketch_size"] = f"chosen with the method: {chosen.sketch_size} rows; excess {chosen.excess_reason}"
    return options_from(chosen, options), reasons


def plan_fit(source: Source, options: FitOptions, engine: str) -> Plan:
    """Return the plan of a fit with these options: their partitions, and everything that a certificate needs sent."""
    from dataclasses import replace

    limits = replace(limits_from(options.limits), certified=True)
    survey = look_as_needed(source, options, limits)
    times = limits.seconds is not None or limits.max_excess is not None
    partitions = int(options.n_partitions)
    if options.partition_by == "file" and source.files:
        partitions = len(source.files)
    elif options.partition_column is not None:
        partitions = max(1, len(source.partition_values))
    return make_plan(
        survey,
        limits,
        partitions=partitions,
        sketch_size=options.sketch_size,
        engine=engine,
        calibration=calibration() if times else None,
        memory_available=free_memory(),
        with_extras=False,
    )


def look_as_needed(source: Source, options: FitOptions, limits: Limits) -> Survey:
    """Look at rows only when a limit makes their losses matter."""
    if limits.any:
        return look(source, options)
    columns = len(source.feature_names) + int(options.fit_intercept)
    return Survey(source.row_count, columns, len(source.target_names), description=source.description)
