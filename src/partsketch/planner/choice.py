"""From limits to a plan: look at the data, cost the candidates, choose one and say why."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from partsketch.common.free_memory import available_memory
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.units import bytes_text, percentage, seconds_text
from partsketch.engines.local import usable_cores
from partsketch.fitting.limits import Limits, limits_from
from partsketch.fitting.options import FitOptions
from partsketch.fitting.sketch_size import choose_sketch_size
from partsketch.planner.calibration import Calibration
from partsketch.planner.candidates import make_candidates, ordered
from partsketch.planner.excess import expected_excess
from partsketch.planner.inverse import answers
from partsketch.planner.plan import Candidate, Curve, Plan
from partsketch.planner.survey import Survey
from partsketch.sketches.base import get_sketch, sketch_kinds

#: Exact least squares is taken when it needs at most this much more time than the quickest way to lose something.
_WORTH_BEING_EXACT = 1.1

#: The last k of curves.
_CURVE_PARTITIONS = 64


def make_plan(
    survey: Survey,
    limits: Limits | Mapping[str, Any] | None = None,
    partitions: int | None = None,
    sketch_size: int | None = None,
    engine: str = "local",
    delta: float | None = None,
    calibration: Calibration | None = None,
    memory_available: float | None = None,
    with_extras: bool = True,
) -> Plan:
    """Return the plan for what a survey knows. Pure: nothing is measured and nothing read but what the survey has.

    Parameters
    ----------
    survey
        What is known of the data.
    limits
        What may not be exceeded.
    partitions, sketch_size
        k and m when they are given; several are tried otherwise.
    engine
        "local", "dask", "ray" or "spark".
    delta
        Asks for the m at which the bound B'_θ holds with probability 1 − δ.
    calibration
        Speeds of the machine; without it no times are predicted.
    memory_available
        Bytes that exist: what "fits" means when no limit is set.
    with_extras
        Whether to answer the inverse questions and to compute the curves against k, too.
    """
    chosen_limits = limits_from(limits)
    cores = usable_cores() if calibration is None else calibration.cores
    kinds = tuple(sketch_kinds())
    # Many small matrices: threads of the linear algebra libraries would spend their time waiting for one another.
    with one_thread_each():
        found = ordered(make_candidates(survey, chosen_limits, partitions, sketch_size, engine, calibration, cores))
        asked = answers(survey, partitions, sketch_size, chosen_limits.max_excess, delta, kinds) if with_extras else ()
        curves = _curves(survey, sketch_size) if with_extras else ()
    recommended, reason = choose(found, chosen_limits, memory_available)
    return Plan(
        rows=survey.rows,
        columns=survey.columns,
        targets=survey.targets,
        data=survey.description,
        engine=engine,
        limits=chosen_limits,
        candidates=found,
        recommended=recommended,
        reason=reason,
        answers=asked,
        curves=curves,
        notes=(*_notes(survey, engine, calibration, chosen_limits), *_size_notes(found)),
    )


def _curves(survey: Survey, sketch_size: int | None) -> tuple[Curve, ...]:
    """Return the expected excess loss of every method for k = 1, 2, 4, … as far as the rows allow."""
    if survey.rows is None:
        return ()
    size = sketch_size or choose_sketch_size(None, survey.columns, None)[0]
    most = min(_CURVE_PARTITIONS, survey.rows // max(size, survey.columns + 2))
    counts = [2**power for power in range(max(0, most).bit_length())]
    curves = []
    for method in ("partition", "whole", "stack", "average"):
        sketch, m = ("triangular", None) if method == "average" else ("gaussian", size)
        values = [(count, expected_excess(survey, method, sketch, m, count).value) for count in counts]
        points = tuple((count, value) for count, value in values if value is not None)
        curves.append(Curve(method, m, points))
    return tuple(curves)


def choose(
    candidates: Sequence[Candidate], limits: Limits, memory_available: float | None = None
) -> tuple[Candidate | None, str]:
    """Return the candidate to take, and why in one sentence.

    Where a loss is allowed (`max_excess`), the quickest candidate within the limits, but exact least squares when it
    takes hardly longer. Otherwise the candidate that loses least, which is exact least squares whenever it meets the
    limits.
    """
    within = [candidate for candidate in candidates if not candidate.breaks]
    if memory_available is not None:
        within = [candidate for candidate in within if candidate.peak_bytes <= memory_available]
    exact = next(candidate for candidate in candidates if candidate.method == "exact")
    if not within:
        return None, _why_none(candidates, exact, memory_available)
    if exact in within:
        quickest = min((candidate.seconds for candidate in within if candidate.seconds is not None), default=None)
        if limits.max_excess is None or quickest is None or exact.seconds is None:
            where = "meets every limit" if limits.any else "fits"
            return exact, f"Exact least squares {where}{_cost_words(exact)} and loses nothing: no reason to sketch."
        if exact.seconds <= _WORTH_BEING_EXACT * quickest:
            return exact, (
                f"Exact least squares is the quickest within the limits, or nearly so{_cost_words(exact)}, and loses "
                "nothing: no reason to sketch."
            )
    if limits.max_excess is not None:
        best = min(within, key=lambda candidate: (_or_infinite(candidate.seconds), _or_infinite(candidate.excess)))
        if best.seconds is not None:
            return best, f"The quickest within the limits{_cost_words(best)}: {_against(best, exact)}."
    best = min(within, key=lambda candidate: (_or_infinite(candidate.excess), _or_infinite(candidate.seconds)))
    loses = "unknown" if best.excess is None else percentage(best.excess)
    return best, f"The least excess loss within the limits ({loses}): {_against(best, exact)}."


def _against(best: Candidate, exact: Candidate) -> str:
    if exact.breaks:
        return f"exact least squares breaks one ({'; '.join(exact.breaks)})"
    if exact.seconds is None or best.seconds is None:
        return "exact least squares does not fit into memory"
    loses = "" if best.excess is None else f" and loses {percentage(best.excess)}"
    return f"{best.method} takes {seconds_text(best.seconds)}{loses}, exact least squares {seconds_text(exact.seconds)}"


def _cost_words(candidate: Candidate) -> str:
    if candidate.seconds is None:
        return f" ({bytes_text(candidate.peak_bytes)} of memory)"
    return f" ({seconds_text(candidate.seconds)}, {bytes_text(candidate.peak_bytes)} of memory)"


def _why_none(candidates: Sequence[Candidate], exact: Candidate, memory_available: float | None) -> str:
    closest = min(candidates, key=lambda candidate: (len(candidate.breaks), candidate is not exact))
    if not closest.breaks and memory_available is not None:
        return (
            f"No candidate fits into the {bytes_text(memory_available)} of memory that are free: the smallest needs "
            f"{bytes_text(min(candidate.peak_bytes for candidate in candidates))}."
        )
    return (
        f"No candidate meets all limits: closest is {closest.name}, which breaks {'; '.join(closest.breaks)}; "
        "relax a limit."
    )


def _or_infinite(value: float | None) -> float:
    return math.inf if value is None else value


def _notes(survey: Survey, engine: str, calibration: Calibration | None, limits: Limits) -> list[str]:
    notes = []
    if survey.complete:
        notes.append(f"All {survey.rows_seen:,} rows were looked at: losses called exact hold for this very data.")
        if survey.shuffles:
            notes.append(
                f"Losses of shuffled partitions (~) are means over {survey.shuffles} shuffles; a fit has a shuffle of "
                "its own, and loses more or less."
            )
    elif survey.rows_seen:
        notes.append(
            f"{survey.rows_seen:,} rows were looked at: losses called exact hold for any data with independent columns."
        )
        if survey.uneven_leverage:
            notes.append(
                "A few of these rows carry the leverage: what averages would lose is not predictable from them."
            )
    else:
        notes.append("Only sizes are known: losses called exact hold for any data with independent columns.")
    if survey.rows_estimated:
        notes.append("The number of rows is an estimate from the size of the files.")
    if calibration is not None:
        notes.append(f"Times are for {calibration.sentence()}.")
    if engine != "local":
        notes.append(f"Times on {engine} assume as many cores, and add round figures for scheduling and network.")
    if not limits.certified:
        notes.append(
            "Averages need only coefficients to be sent; a fit that states its own loss sends whole summaries."
        )
    return notes


def _size_notes(candidates: Sequence[Candidate]) -> list[str]:
    """Say when sketches are larger than the exact summary, which loses nothing."""
    exact = next(candidate for candidate in candidates if candidate.method == "exact")
    larger = [
        candidate
        for candidate in candidates
        if candidate.sketch is not None and candidate.summary_bytes_per_partition >= exact.summary_bytes_per_partition
    ]
    if not larger:
        return []
    return [
        f"The exact summary of a partition takes {bytes_text(exact.summary_bytes_per_partition)}: sketches of as many "
        "bytes or more are larger and lose something; smaller ones save bytes."
    ]


def options_from(candidate: Candidate, options: FitOptions) -> FitOptions:
    """Return the options of a fit with what the candidate says."""
    from dataclasses import replace

    sketched = candidate.sketch is not None
    return replace(
        options,
        method=candidate.method,
        sketch=candidate.sketch or options.sketch,
        sketch_size=candidate.sketch_size if sketched else options.sketch_size,
        sparsity=options.sparsity if get_sketch(candidate.sketch or options.sketch).default_sparsity else None,
        averaging=options.averaging if candidate.method in ("average", "partition") else "equal",
        weighting=options.weighting if candidate.method == "stack" else "rows",
        noise=options.noise if candidate.method == "stack" else "auto",
        limits=None,
    )


def free_memory() -> float:
    """Return the memory that plans may count on: most of what is free."""
    return 0.9 * available_memory()
