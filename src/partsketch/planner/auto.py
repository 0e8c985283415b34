"""`method="auto"`: the plan of a fit, made and taken on the way to it."""

from __future__ import annotations

from dataclasses import replace

from partsketch.common.errors import InputError
from partsketch.common.units import bytes_text
from partsketch.fitting.limits import Limits, limits_from
from partsketch.fitting.options import FitOptions
from partsketch.fitting.refinement.routes import is_sparse
from partsketch.fitting.sketch_size import choose_sketch_size
from partsketch.model.methods import METHODS
from partsketch.planner.calibration import calibration
from partsketch.planner.candidates import exact_candidate
from partsketch.planner.choice import free_memory, make_plan, options_from
from partsketch.planner.plan import Plan
from partsketch.planner.survey import Survey, are_scattered, look
from partsketch.sources.base import Source


def choose_options(source: Source, options: FitOptions, engine: str) -> tuple[FitOptions, dict[str, str]]:
    """Return the options with a method in place of "auto", and the reasons for the record.

    Without limits the fit is exact: whoever wants the answer of a random sketch asks for it, by a limit or by name.
    """
    columns = len(source.feature_names) + int(options.fit_intercept)
    if options.sketch_size is not None:
        # Of an unknown number of partitions as many may be stacked as are asked for.
        stacked = int(options.n_partitions) if options.partition_by in ("order", "shuffle") else 1
        choose_sketch_size(options.sketch_size, columns, None, options.alpha > 0, options.sketch, stacked)
    limits = limits_from(options.limits)
    if not limits.any:
        _check_memory_of_exact(source, options, engine)
        reason = "No limit was given, and exact least squares loses nothing: no reason to sketch."
        return replace(options, method="exact", limits=None), _reasons(options, limits, "exact", reason)
    plan = plan_fit(source, options, engine)
    if plan.recommended is None:
        raise InputError(plan.reason)
    chosen = plan.recommended
    if options.alpha > 0 and METHODS[chosen.method].sketched:
        raise InputError(
            "method='auto' with a ridge penalty chooses exact least squares only, and it breaks a limit: name a method."
        )
    reasons = _reasons(options, limits, chosen.name, plan.reason)
    if chosen.sketch is not None:
        reasons["sketch_size"] = f"chosen with the method: {chosen.sketch_size} rows; excess {chosen.excess_reason}"
    return options_from(chosen, options), reasons


def _reasons(options: FitOptions, limits: Limits, chosen: str, why: str) -> dict[str, str]:
    asked = ", ".join(f"{name}={value}" for name, value in limits.to_dict().items() if value)
    reasons = {"limits": asked or "none", "method": f"method='auto' chose {chosen}. {why}"}
    if chosen == "exact" and options.sketch_size is not None:
        reasons["sketch_size"] = (
            f"sketch_size={options.sketch_size} is not used, for exact least squares makes no sketch: name a method "
            "('stack', 'partition' or 'whole') to have one"
        )
    return reasons


def _check_memory_of_exact(source: Source, options: FitOptions, engine: str) -> None:
    """Refuse a fit whose factor cannot be held."""
    survey, free = look_as_needed(source, options, Limits()), free_memory()
    needed = exact_candidate(survey, engine).peak_bytes
    # Sparse rows may be fitted without a factor.
    if needed > free and not is_sparse(source):
        raise InputError(
            f"Exact least squares of {survey.columns:,} columns takes about {bytes_text(needed)} of memory, and "
            f"{bytes_text(free)} are free: choose fewer features (--features) or use a machine with more memory; "
            "method='exact' tries it all the same."
        )


def plan_fit(source: Source, options: FitOptions, engine: str) -> Plan:
    """Return the plan of a fit with these options: their partitions, and everything that a certificate needs sent."""
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
    targets, scattered = len(source.target_names), are_scattered(options)
    return Survey(source.row_count, columns, targets, scattered=scattered, description=source.description)
