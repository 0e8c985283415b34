"""Whether answers belong to a question and to the sketches behind it, and do not contradict themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.special import chdtri
from partsketch.sites.agreement import Named
from partsketch.sites.rounds.answer import Answer
from partsketch.sites.rounds.question import Question, SiteName
from partsketch.sketches.base import law_of_kind
from partsketch.summaries.summary import Summary

#: Part of a loss by which what a site says of it may contradict its gradients: rounding, with plenty of room.
_CONTRADICTION = 1e-6

#: Chance that a sketch makes a column look so short that a right answer is refused.
_CHANCE = 1e-9


def places_of(summary: Summary) -> tuple[SiteName, ...]:
    """Return the sites and labels behind a summary."""
    return tuple(dict.fromkeys((part.site, part.label) for part in summary.parts))


def spoken(place: SiteName) -> str:
    """Return a site and its label as people say it."""
    return repr(" ".join(filter(None, place)) or "unnamed")


def check_answers(
    named: Sequence[Named], question: Question, answers: Sequence[Answer], standard: Sequence[Summary]
) -> tuple[Answer, ...]:
    """Refuse answers that do not belong together; return them in the order of the question's sites.

    `standard` are the summaries in the coordinates of the question.
    """
    found: dict[SiteName, Answer] = {}
    for answer in answers:
        where = f"The answer of {spoken(answer.place)}"
        if answer.question != question.digest:
            raise InputError(
                f"{where} is to another question (round {answer.number}): have the site answer that of round "
                f"{question.number} of these rounds."
            )
        if answer.place not in question.sites:
            raise InputError(f"{where} was not asked for: the question is to {_listed(question.sites)}.")
        if answer.place in found:
            raise InputError(f"{where} is in twice: leave one out.")
        if answer.number != question.number or answer.gradient.shape != question.coefficients.shape:
            raise InputError(f"{where} has another round or other columns than its question: have it made again.")
        if answer.losses is not None and len(answer.losses) != len(question.targets):
            raise InputError(f"{where} has {len(answer.losses)} losses for {len(question.targets)} targets.")
        if not np.isfinite(answer.gradient).all() or not (answer.losses is None or np.all(answer.losses >= 0)):
            raise InputError(f"{where} holds a gradient or a loss that is no number: have it made again.")
        found[answer.place] = answer
    missing = [place for place in question.sites if place not in found]
    if missing:
        raise InputError(f"There is no answer of {_listed(missing)}: every site must answer before a step.")
    _check_counts(named, found)
    _check_sizes(question, found, standard)
    return tuple(found[place] for place in question.sites)


def _listed(places: Sequence[SiteName]) -> str:
    more = f" and {len(places) - 10} more" if len(places) > 10 else ""
    return ", ".join(spoken(place) for place in places[:10]) + more


def _check_counts(named: Sequence[Named], found: dict[SiteName, Answer]) -> None:
    """Refuse answers from other rows than the sketches were made of, as far as counts show it."""
    of_place: dict[SiteName, list[Summary]] = defaultdict(list)
    for _, summary in named:
        places = places_of(summary)
        if len(places) == 1:
            of_place[places[0]].append(summary)
        else:
            for place in places:
                # Of a file of several sites nobody knows whose rows are how many.
                found = {known: answer for known, answer in found.items() if known != place}
    for place, answer in found.items():
        files = of_place[place]
        rows, weight = sum(file.row_count for file in files), sum(file.weight_sum for file in files)
        multiple = max(answer.rounded_to, *(file.about.rounded_to for file in files))
        said, tolerance = answer.row_count, len(files) * multiple if multiple > 1 else 0
        if abs(said - rows) > tolerance:
            raise InputError(
                f"The answer of {spoken(place)} stands for {said:,} rows, its sketch for {rows:,}: it must answer from "
                "the rows that were sketched."
            )
        if abs(answer.weight_sum - weight) > (0.2 if multiple > 1 else 1e-9) * weight + tolerance:
            raise InputError(
                f"The answer of {spoken(place)} has a sum of weights of {answer.weight_sum:g}, its sketch "
                f"{weight:g}: it must answer from the rows that were sketched."
            )


def _check_sizes(question: Question, found: dict[SiteName, Answer], standard: Sequence[Summary]) -> None:
    """Refuse gradients that no rows with these squares and this loss have (Cauchy and Schwarz)."""
    squares: dict[SiteName, NDArray[np.float64]] = {}
    for summary in standard:
        places, rows = places_of(summary), summary.matrix.shape[0]
        if len(places) > 1 or not law_of_kind(summary.kind).is_exact:
            return
        columns = summary.select(question.columns)
        most = np.sum(columns**2, axis=0) * rows / max(float(chdtri(rows, 1 - _CHANCE)), 1e-300)
        squares[places[0]] = most + squares.get(places[0], np.zeros(len(most)))
    for place, answer in found.items():
        if answer.losses is None:
            continue
        # A loss beyond what doubles hold, times squares, allows for any gradient.
        with np.errstate(over="ignore"):
            most = np.outer(squares[place], answer.losses) * (1 + 1e-6)
        if (answer.gradient**2 > most).any():
            raise InputError(
                f"The answer of {spoken(place)} has a gradient that its rows cannot have, by its sketch and its loss: "
                "have it made again from the rows that were sketched."
            )


def check_history(before: Sequence[Answer], after: Sequence[Answer], questions: Sequence[Question]) -> None:
    """Refuse answers of two rounds that no rows can give: losses and gradients of a square contradict each other."""
    move = questions[1].coefficients - questions[0].coefficients
    for first, second in zip(before, after, strict=True):
        rounds = f"rounds {first.number} and {second.number}"
        fault = f"What {spoken(first.place)} answers in {rounds} cannot be of the same rows"
        curvature = np.sum((first.gradient - second.gradient) * move, axis=0)
        slope = np.sum((first.gradient + second.gradient) * move, axis=0)
        size = np.sum((np.abs(first.gradient) + np.abs(second.gradient)) * np.abs(move), axis=0)
        if first.row_count != second.row_count or first.weight_sum != second.weight_sum:
            raise InputError(f"{fault}: their numbers differ; answer from the rows that were sketched.")
        if (curvature < -_CONTRADICTION * size).any():
            raise InputError(f"{fault}: the gradient grows where it must fall; answer again from the same rows.")
        if first.losses is None or second.losses is None:
            continue
        missed = np.abs(second.losses - first.losses + slope)
        if (missed > _CONTRADICTION * (first.losses + second.losses + size)).any():
            raise InputError(f"{fault}: losses and gradients contradict each other; answer again from the same rows.")
