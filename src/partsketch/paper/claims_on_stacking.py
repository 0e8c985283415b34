"""Claims about what came after the paper: stacked sketches with weights, orthogonal sketches, and the least loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from partsketch.paper.claims import FAILS, HOLDS, LARGEST_Z, PARTLY, Question, Verdict, judge
from partsketch.paper.data_sets import NAMES, TITLES
from partsketch.paper.results import Row

if TYPE_CHECKING:
    from partsketch.paper.study import Study

Measured = tuple[str, Verdict] | None

_STEPS = ("figure-1", "figure-1-shuffled", "figure-1-larger")

#: What weights may cost where they gain nothing, and how near to the least loss counts as near.
_MOST_COST, _NEAR = 1.05, 1.1


Comparison = tuple[dict[str, Row], float]


def _comparisons(study: Study) -> dict[str, list[Comparison]]:
    """Return by data set, for every k > 1 in all orders and sizes, the summaries of all estimators and the bound."""
    found: dict[str, list[Comparison]] = {}
    for name in NAMES:
        for step in _STEPS:
            summaries = study.rows(step, "summaries", name)
            for curve in study.rows(step, "curves", name):
                rows = {str(row["estimator"]): row for row in summaries if row["k"] == curve["k"]}
                if rows and curve["k"] != 1:
                    found.setdefault(name, []).append((rows, cast(float, curve["bound"])))
    return found


def _mean(row: Row) -> float:
    return cast(float, row["mean"])


def _verdict(cases: dict[str, bool]) -> Verdict:
    """Judge; a claim on three data sets holds only when all three were measured."""
    verdict = judge(cases)
    return Verdict(PARTLY, "; ".join(cases)) if verdict.word == HOLDS and len(cases) < len(NAMES) else verdict


def _weights_cost(study: Study) -> Measured:
    words, cases = [], {}
    for name, comparisons in _comparisons(study).items():
        ratios = [
            _mean(rows["weighted"]) / min(_mean(rows["stack"]), _mean(rows["partition"])) for rows, _ in comparisons
        ]
        words.append(f"{TITLES[name]}: {min(ratios):.3f} to {max(ratios):.3f} times in {len(ratios)} comparisons")
        cases[TITLES[name]] = max(ratios) <= _MOST_COST
    return ("; ".join(words), _verdict(cases)) if cases else None


def _orthogonal_gain(study: Study) -> Measured:
    words, cases = [], {}
    for name, comparisons in _comparisons(study).items():
        ratios, distances = [], []
        for rows, _ in comparisons:
            ours, theirs = rows["orthogonal"], rows["weighted"]
            ratios.append(_mean(ours) / _mean(theirs))
            errors = [cast(float, row["standard_error"]) for row in (ours, theirs)]
            distances.append((_mean(ours) - _mean(theirs)) / math.hypot(*errors))
        words.append(
            f"{TITLES[name]}: {min(ratios):.2f} to {max(ratios):.2f} times, at most {max(distances):.1f} standard "
            "errors above"
        )
        cases[TITLES[name]] = max(distances) <= LARGEST_Z
    return ("; ".join(words), _verdict(cases)) if cases else None


def _near_bound(study: Study) -> Measured:
    words, cases = [], {}
    for name, comparisons in _comparisons(study).items():
        # A sketch with as many rows as the data loses nothing, and neither may any fit.
        logs = [math.log(_mean(rows["orthogonal"]) / bound) for rows, bound in comparisons if bound > 0]
        ratio = math.exp(sum(logs) / len(logs))
        words.append(f"{TITLES[name]}: {ratio:.3f} times, the geometric mean of {len(logs)} settings")
        cases[TITLES[name]] = ratio <= _NEAR
    return ("; ".join(words), _verdict(cases)) if cases else None


STACKING_QUESTIONS: tuple[Question, ...] = (
    Question(
        "weights-cost",
        "not in the paper",
        "Stacking with weights by data loses at most 1.05 times what the better of θ̄ and the plain stack does, from "
        "the same sketches of even partitions.",
        "a data set counts when the ratio of the mean losses is at most 1.05 at every k > 1, in both orders and at "
        "m = 2d",
        _weights_cost,
        {
            HOLDS: "Even partitions leave weights little to gain, and they do not lose. Their gain is where sites are "
            "uneven, which these partitions are not.",
            PARTLY: "Even partitions leave weights little to gain; what is mixed in of the average is chosen from few "
            "sketch rows.",
        },
    ),
    Question(
        "orthogonal-outperforms",
        "not in the paper",
        "Orthogonal sketches of the same size lose no more than Gaussian ones.",
        "a data set counts when no mean loss of orthogonal sketches is more than 4 standard errors above that of "
        "Gaussian ones, for all k > 1, in both orders and at m = 2d",
        _orthogonal_gain,
        {
            HOLDS: "S Sᵀ is a multiple of the identity, so that the stack is generalised least squares. It gains the "
            "factor (p − m)/(p − r): nothing on Cover and House, where m is a small part of the rows, much on Digits "
            "with many partitions, and all once m = p.",
        },
    ),
    Question(
        "near-bound",
        "not in the paper",
        "Stacked orthogonal sketches lose no more than 1.1 times the least that any unbiased linear fit to them can.",
        "a data set counts when the geometric mean of mean loss over bound is at most 1.1 over all k > 1, both orders "
        "and m = 2d",
        _near_bound,
        {
            HOLDS: "The bound is attained where partitions share coefficients and noise (Gauss and Markov).",
            PARTLY: "The bound is that of partitions with shared coefficients and noise, which these do not all have.",
            FAILS: "The bound is that of partitions with shared coefficients and noise, which these do not have.",
        },
    ),
)
