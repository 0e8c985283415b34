"""One data set: plans for all its questions, fits of every candidate that may be the quickest, draws of losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.planner.settings import DataSet, Question, questions
from benchmarks.planner.timing import Timing, time_fits
from benchmarks.problem import Arrays
from partsketch import Plan
from partsketch.fitting.options import FitOptions
from partsketch.planner.calibration import Calibration
from partsketch.planner.choice import make_plan, options_from
from partsketch.planner.plan import Candidate
from partsketch.planner.survey import look
from partsketch.simulate import draw_excess_losses, partition_factors
from partsketch.theory import pooled_moments

DRAWS = 2000
#: Drawing sketches of wider problems would take the time of everything else together.
_WIDEST_DRAWN = 60
#: What is predicted to take this many times as long as the quickest is taken not to be it.
PLAUSIBLE = 3.0

Key = tuple[str, str | None, int | None]


@dataclass(frozen=True)
class Answered:
    """A question and its plan."""

    question: Question
    plan: Plan

    @property
    def loss_allowed(self) -> bool:
        """Whether the quickest within the limits is wanted, not the one that loses least."""
        return "max_excess" in self.question.limits


def base_options(data: DataSet) -> FitOptions:
    """Return the options that candidates change."""
    return FitOptions("exact", data.partitions, "order", "spread", "gaussian", None, True, 1)


def check(data: DataSet, calibration: Calibration, repeats: int) -> dict[str, Any]:
    """Plan, fit, draw; return everything that was predicted and measured."""
    arrays = data.arrays()
    source = data.open(arrays)
    options = base_options(data)
    survey = look(source, options)
    on_one_core = replace(calibration, cores=1, speedup=1.0)
    answered: list[Answered] = []
    alone: dict[Key, float | None] = {}
    for question in questions(data):
        parts = data.partitions
        plan = make_plan(survey, question.limits, partitions=parts, calibration=calibration, with_extras=False)
        answered.append(Answered(question, plan))
        slower = make_plan(survey, question.limits, partitions=parts, calibration=on_one_core, with_extras=False)
        alone |= {key(one): one.seconds for one in slower.candidates}
    timed = _to_be_timed(answered)
    times = time_fits(source, [options_from(one, options) for one in timed.values()], repeats)
    measured = dict(zip(timed, times, strict=True))
    fits = [_fit(one, measured[key(one)], alone[key(one)]) for one in timed.values()]
    settings = [_setting(data, one, measured) for one in answered]
    drawn = list(_draw(data, arrays, [one for each in answered for one in each.plan.candidates]))
    return {"data": data.name, "fits": fits, "settings": settings, "drawn": drawn}


def key(candidate: Candidate) -> Key:
    """Return what tells the candidates of a data set apart."""
    return candidate.method, candidate.sketch, candidate.sketch_size


def _to_be_timed(answered: Sequence[Answered]) -> dict[Key, Candidate]:
    """Return the candidates that may be the quickest answer to a question, and the quickest of every kind of sketch."""
    found: dict[Key, Candidate] = {}
    for one in answered:
        if one.plan.recommended is not None:
            found[key(one.plan.recommended)] = one.plan.recommended
        # Without an allowed loss the least loss is taken, not the least time.
        if one.loss_allowed:
            within = [(each.seconds, each) for each in one.plan.candidates if not each.breaks and each.seconds]
            quickest = min((seconds for seconds, _ in within), default=0.0)
            found |= {key(each): each for seconds, each in within if seconds <= PLAUSIBLE * quickest}
    every = [(one.seconds, one) for each in answered for one in each.plan.candidates if one.seconds]
    for kind in {one.sketch for _, one in every}:
        quickest_of_kind = min((pair for pair in every if pair[1].sketch == kind), key=lambda pair: pair[0])[1]
        found.setdefault(key(quickest_of_kind), quickest_of_kind)
    return found


def _fit(candidate: Candidate, measured: Timing, alone: float | None) -> dict[str, Any]:
    return {
        "method": candidate.method,
        "sketch": candidate.sketch,
        "sketch_size": candidate.sketch_size,
        "predicted_seconds": candidate.seconds,
        "seconds": measured.seconds,
        "predicted_processor_seconds": alone,
        "processor_seconds": measured.processor_seconds,
        "others_share": measured.others_share,
    }


def _setting(data: DataSet, answered: Answered, measured: dict[Key, Timing]) -> dict[str, Any]:
    """Return the recommendation beside the truly quickest candidate within the limits."""
    plan, question = answered.plan, answered.question
    within = [one for one in plan.candidates if not one.breaks and key(one) in measured]
    best = min(within, key=lambda one: measured[key(one)].seconds, default=None)
    taken = plan.recommended
    return {
        "setting": f"{data.name}: {question.name}",
        "loss_allowed": answered.loss_allowed,
        "exact_expected": question.exact_expected,
        "reason": plan.reason,
        "recommended": None if taken is None else taken.name,
        "predicted_seconds": None if taken is None else taken.seconds,
        "seconds": None if taken is None else measured[key(taken)].seconds,
        "quickest": None if best is None else best.name,
        "quickest_seconds": None if best is None else measured[key(best)].seconds,
    }


def _draw(data: DataSet, arrays: Arrays, candidates: Sequence[Candidate]) -> Iterator[dict[str, Any]]:
    """Yield the losses that are called exact, beside the mean of draws; timed or not."""
    called_exact = {key(one): one for one in candidates if one.excess_kind == "exact" and one.sketch_size is not None}
    if not called_exact or data.problem.width > _WIDEST_DRAWN:
        return
    design = np.column_stack([np.ones(len(arrays.X)), arrays.X])
    parts = partition_factors(design, arrays.y, [data.partitions])[data.partitions]
    for candidate in called_exact.values():
        assert candidate.sketch_size is not None
        method, size = candidate.method, candidate.sketch_size
        rng = np.random.default_rng(7)
        losses = draw_excess_losses(method, parts, size, DRAWS, rng, n_sketches=data.partitions)
        losses = losses / pooled_moments(parts).loss
        yield {
            "method": method,
            "sketch_size": size,
            "excess": candidate.excess,
            "drawn_excess": float(losses.mean()),
            "drawn_standard_error": float(losses.std(ddof=1) / np.sqrt(DRAWS)),
        }
