"""The inverse questions: which m, which k, for a loss that is given."""

from __future__ import annotations

import math

from partsketch.common.units import percentage
from partsketch.planner.excess import expected_excess
from partsketch.planner.plan import Answer
from partsketch.planner.survey import Survey
from partsketch.theory.bounds import high_probability_excess_loss, smallest_sketch_size
from partsketch.theory.design import gaussian_design_divergence

#: No sketch has more rows than this.
_LARGEST_SIZE = 2**31

#: The largest k that is looked at when predictions come from the rows themselves.
_MOST_FACTORED_PARTITIONS = 128


def smallest_size_for(
    survey: Survey, method: str, sketch: str, partitions: int, target: float, short: bool = False
) -> int | None:
    """Return the smallest m whose expected relative excess loss is at most the target; None when no m reaches it.

    With `short`, stacked sketches may have fewer rows than columns.
    """

    def excess(size: int) -> float:
        value = expected_excess(survey, method, sketch, size, partitions).value
        return math.inf if value is None else value

    low, of_low = survey.columns + 1, math.inf
    if short and method == "stack":
        low //= partitions
    high = low + 1
    while (of_high := excess(high)) > target:
        if high >= _LARGEST_SIZE:
            return None
        low, of_low, high = high, of_high, min(2 * high, _LARGEST_SIZE)
    halve = False
    while high - low > 1:
        middle = (low + high) // 2
        if not halve and 0 < of_high < of_low:
            # Losses are nearly a/(m − b), so their inverses are nearly straight lines in m.
            share = (1 / target - 1 / of_low) / (1 / of_high - 1 / of_low)
            middle = min(max(low + 1, math.ceil(low + share * (high - low))), high - 1)
        value = excess(middle)
        width = high - low
        if value <= target:
            high, of_high = middle, value
        else:
            low, of_low = middle, value
        # A guess that hardly narrows the range is followed by a halving.
        halve = not halve and high - low > width // 2
    return high


def largest_partitions_for(
    survey: Survey, method: str, sketch: str | None, sketch_size: int | None, target: float
) -> int | None:
    """Return the largest k whose expected relative excess loss is at most the target; None when no k reaches it.

    Averages over partitions lose first less and then more as k grows, so there is a largest k. For stacked sketches
    and sketches of the whole more is always better, and the answer is the most that the rows allow.
    """
    if survey.rows is None:
        return None

    def reached(count: int) -> bool:
        value = expected_excess(survey, method, sketch or "triangular", sketch_size, count).value
        return value is not None and value <= target

    # Beyond this partitions have too few rows for a sketch; exact predictions factor every partition anew for each k.
    most = max(1, (survey.rows - 1) // (survey.columns + 2))
    if survey.complete:
        most = min(most, _MOST_FACTORED_PARTITIONS)
    counts = _downwards(most)
    place = next((place for place, count in enumerate(counts) if reached(count)), None)
    if place is None or place == 0:
        return None if place is None else most
    low, high = counts[place], counts[place - 1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return low


def _downwards(most: int) -> list[int]:
    """Return counts from the largest down to one, each three quarters of the one before, small ones all."""
    counts = [most]
    while counts[-1] > 1:
        counts.append(counts[-1] * 3 // 4 if counts[-1] > 8 else counts[-1] - 1)
    return counts


def size_for_bound(survey: Survey, partitions: int, delta: float, target: float) -> int | None:
    """Return the smallest m with B'_θ at most `target` times the minimal loss, for Gaussian rows; None without one.

    B'_θ bounds the out-of-sample excess loss of the averaged sketches with probability at least 1 − δ.
    """
    n, d = survey.rows, survey.columns
    if n is None or n <= partitions * (d + 1):
        return None
    divergence = gaussian_design_divergence(n, d, partitions)

    def reached(size: int) -> bool:
        return high_probability_excess_loss(n, d, size, partitions, 1.0, divergence, delta) <= target * (n - d)

    low = smallest_sketch_size(d, partitions, delta) - 1
    high = low + 1
    while not reached(high):
        if high >= _LARGEST_SIZE:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def answers(
    survey: Survey,
    partitions: int | None,
    sketch_size: int | None,
    max_excess: float | None,
    delta: float | None,
    kinds: tuple[str, ...],
) -> tuple[Answer, ...]:
    """Answer the inverse questions that the given numbers allow to ask."""
    found = []
    if max_excess is not None and partitions is not None:
        for method in ("partition", "stack", "whole"):
            for sketch in kinds:
                size = smallest_size_for(survey, method, sketch, partitions, max_excess)
                found.append(_size_answer(method, sketch, size, partitions, max_excess))
    if max_excess is not None:
        methods: list[tuple[str, str | None]] = [("average", None)]
        if sketch_size is not None:
            methods += [("partition", sketch) for sketch in kinds]
        for method, kind in methods:
            count = largest_partitions_for(survey, method, kind, sketch_size, max_excess)
            found.append(_count_answer(method, kind, count, sketch_size, max_excess, survey.complete))
    if delta is not None and partitions is not None:
        found += _bound_answers(survey, partitions, delta, max_excess)
    return tuple(found)


def _size_answer(method: str, sketch: str, size: int | None, partitions: int, target: float) -> Answer:
    result = "no size" if size is None else f"m = {size:,}"
    sentence = f"{method}, {sketch}, k = {partitions}: {result} for an excess of {percentage(target)}"
    return Answer("smallest m", method, sketch, size, sentence)


def _count_answer(
    method: str, sketch: str | None, count: int | None, size: int | None, target: float, complete: bool
) -> Answer:
    how = method if sketch is None else f"{method}, {sketch}, m = {size:,}"
    result = "no k" if count is None else f"at most k = {count:,}"
    if complete and count == _MOST_FACTORED_PARTITIONS:
        result = f"k = {count:,}, the most that was looked at,"
    return Answer("largest k", method, sketch, count, f"{how}: {result} for an excess of {percentage(target)}")


def _bound_answers(survey: Survey, partitions: int, delta: float, target: float | None) -> list[Answer]:
    least = smallest_sketch_size(survey.columns, partitions, delta)
    # The bound is about the noise: it knows nothing of partitions that follow different coefficients.
    chance = f"with probability {1 - delta:g} if all partitions follow the same coefficients"
    start = f"partition, gaussian, k = {partitions}: from m = {least:,} on B'_θ holds {chance}"
    found = [Answer("smallest m with a bound", "partition", "gaussian", least, start)]
    if target is not None:
        size = size_for_bound(survey, partitions, delta, target)
        result = "no size keeps it" if size is None else f"m = {size:,} keeps it"
        sentence = f"partition, gaussian, k = {partitions}: {result} below {percentage(target)} {chance}"
        found.append(Answer("smallest m with a bound below the limit", "partition", "gaussian", size, sentence))
    return found
