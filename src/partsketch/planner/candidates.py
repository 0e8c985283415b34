"""Every candidate: methods × sketches × sizes × numbers of partitions, costed and held against the limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from partsketch.common.units import bytes_text, percentage, seconds_text
from partsketch.engines.local import usable_cores
from partsketch.fitting.limits import Limits
from partsketch.fitting.sketch_size import choose_sketch_size
from partsketch.model.methods import METHODS
from partsketch.planner import costs
from partsketch.planner.calibration import Calibration
from partsketch.planner.excess import expected_excess
from partsketch.planner.inverse import smallest_size_for
from partsketch.planner.memory import peak_bytes
from partsketch.planner.plan import Candidate
from partsketch.planner.survey import Survey
from partsketch.planner.work import Work
from partsketch.sketches.base import get_sketch, sketch_kinds

_PARTITIONS = (2, 8, 32)


def make_candidates(
    survey: Survey,
    limits: Limits,
    partitions: int | None,
    sketch_size: int | None,
    engine: str,
    calibration: Calibration | None,
    cores: int,
) -> list[Candidate]:
    """Return all candidates for these sizes; `partitions` and `sketch_size` are tried in several values when None."""
    counts = [partitions] if partitions is not None else _partition_counts(survey)
    # What concerns all rows is sent from every place where some of them lie.
    places = 1 if partitions is None else partitions
    found = [_cost(survey, limits, "exact", "triangular", None, 1, engine, calibration, cores, places)]
    for count in counts:
        found.append(_cost(survey, limits, "average", "triangular", None, count, engine, calibration, cores, count))
        for sketch in sketch_kinds():
            for method in (name for name, method in METHODS.items() if method.sketched):
                for size in _sizes(survey, limits, method, sketch, count, sketch_size):
                    found.append(_cost(survey, limits, method, sketch, size, count, engine, calibration, cores, count))
    return found


def exact_candidate(survey: Survey, engine: str) -> Candidate:
    """Return exact least squares, with what it sends and how much memory it takes; its time is not predicted."""
    return _cost(survey, Limits(), "exact", "triangular", None, 1, engine, None, usable_cores(), 1)


def _partition_counts(survey: Survey) -> list[int]:
    if survey.rows is None:
        return list(_PARTITIONS)
    fitting = [count for count in _PARTITIONS if survey.rows // count >= 2 * (survey.columns + 2)]
    return fitting or [2]


def _sizes(survey: Survey, limits: Limits, method: str, sketch: str, count: int, asked: int | None) -> Iterator[int]:
    """Yield sketch sizes: the one asked for; else what just reaches the largest excess allowed, or the usual ones."""
    d, part = survey.columns, _rows_sketched(survey, method, count)
    if asked is not None:
        if asked * (count if method == "stack" else 1) >= d + 2:
            yield asked
        return
    # Two rows more than the error needs, where its distribution has no variance yet; and no more than are sketched.
    least = d + 4
    # Stacked sketches need as many rows together: smaller ones are worth their loss where bytes are counted.
    short = method == "stack" and limits.max_bytes_per_partition is not None
    if short:
        least = -(-least // count)
    most = math.inf if part is None else max(part, least)
    usual = choose_sketch_size(None, d, part, kind=sketch)[0]
    if limits.max_excess is not None:
        size = smallest_size_for(survey, method, sketch, count, limits.max_excess, short)
        sizes = {usual if size is None else size}
    else:
        sizes = {usual, 2 * d + 16, 16 * d + 16}
        if limits.max_bytes_per_partition is not None:
            sketches = 1 if METHODS[method].by_partition else count
            sizes.add(int(limits.max_bytes_per_partition // (8 * (d + survey.targets) * sketches)))
    yield from sorted({int(min(max(size, least), most)) for size in sizes})


def _rows_sketched(survey: Survey, method: str, count: int) -> int | None:
    if survey.rows is None:
        return None
    return survey.rows // count if METHODS[method].by_partition else survey.rows


def _cost(
    survey: Survey,
    limits: Limits,
    method: str,
    sketch: str,
    size: int | None,
    count: int,
    engine: str,
    calibration: Calibration | None,
    cores: int,
    places: int,
) -> Candidate:
    counted = METHODS[method].by_partition or get_sketch(sketch).needs_row_count
    work = Work(
        rows=survey.rows or 0,
        columns=survey.columns,
        targets=survey.targets,
        method=method,
        sketch=sketch,
        partitions=count,
        sketch_size=size,
        storage=survey.storage,
        extra_passes=survey.extra_passes,
        counting_passes=survey.counting_passes * int(counted),
        splittable=survey.splittable,
        group_rows=survey.group_rows,
        codes=survey.codes,
    )
    excess = expected_excess(survey, method, sketch, size, count)
    summary = costs.summary_bytes(work)
    sent = summary if limits.certified else costs.sent_bytes(work)
    predicted = None
    if calibration is not None and survey.rows is not None:
        predicted = _known(costs.seconds(work, calibration, engine))
    candidate = Candidate(
        method=method,
        sketch=sketch if METHODS[method].sketched else None,
        sketch_size=size,
        partitions=count,
        excess=excess.value,
        excess_kind=excess.kind,
        excess_reason=excess.reason,
        bytes_per_partition=sent,
        bytes_in_all=sent * places,
        summary_bytes_per_partition=summary,
        flops=_known(costs.flops(work)) if survey.rows is not None else None,
        passes=costs.passes(work),
        peak_bytes=peak_bytes(work, cores),
        seconds=predicted,
    )
    return _judged(candidate, survey, limits)


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _judged(candidate: Candidate, survey: Survey, limits: Limits) -> Candidate:
    return replace(candidate, breaks=tuple(_broken(candidate, survey, limits)))


def _broken(candidate: Candidate, survey: Survey, limits: Limits) -> Iterator[str]:
    least = survey.columns + 2
    short = candidate.method == "stack" and (candidate.sketch_size or 0) < least
    by_partition = METHODS[candidate.method].by_partition and not short
    if survey.rows is not None and by_partition and survey.rows // candidate.partitions < least:
        rows = survey.rows // candidate.partitions
        yield f"{rows} rows per partition, {least} needed"
    if limits.max_excess is not None:
        if candidate.excess is None:
            yield "excess unknown"
        elif candidate.excess > limits.max_excess:
            yield f"excess {percentage(candidate.excess)} > {percentage(limits.max_excess)}"
    most = limits.max_bytes_per_partition
    if most is not None and candidate.bytes_per_partition > most:
        yield f"sends {bytes_text(candidate.bytes_per_partition)} > {bytes_text(most)}"
    if limits.rows_stay and candidate.sketch is not None and get_sketch(candidate.sketch).keeps_rows:
        yield "rows would leave"
    if limits.memory is not None and candidate.peak_bytes > limits.memory:
        yield f"memory {bytes_text(candidate.peak_bytes)} > {bytes_text(limits.memory)}"
    if limits.seconds is not None:
        if candidate.seconds is None:
            yield "time unknown"
        elif candidate.seconds > limits.seconds:
            yield f"time {seconds_text(candidate.seconds)} > {seconds_text(limits.seconds)}"


def ordered(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the candidates, those within the limits first, quickest first."""

    def key(candidate: Candidate) -> tuple[int, float]:
        # Without predicted times the amount of work orders them.
        cost = candidate.seconds if candidate.seconds is not None else candidate.flops
        return len(candidate.breaks), math.inf if cost is None else cost

    return tuple(sorted(candidates, key=key))
