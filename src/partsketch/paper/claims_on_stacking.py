"""Claims about what came after the paper: stacked sketches with weights, orthogonal sketches, and the least loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from partsketch.paper.claims import FAILS, HOLDS, LARGEST_Z, PARTLY, Question, Verdict, judge
from partsketch.paper.data_sets import NAMES, TITLES
from partsketch.paper.results import Row, Value

if TYPE_CHECKING:
    from partsketch.paper.study import Study

Measured = tuple[str, Verdict] | None

_STEPS = ("figure-1", "figure-1-shuffled", "figure-1-larger")

#: What weights may cost where they gain nothing, and how near to the least loss counts as near.
_MOST_COST, _NEAR = 1.05, 1.1


class Comparison(NamedTuple):
    """Summaries of all estimators at one k, the bound, and the losses of the draws by estimator."""

    rows: dict[str, Row]
    bound: float
    draws: dict[str, list[float]]


def _comparisons(study: Study) -> dict[str, list[Comparison]]:
    """Return by data set, for every k > 1 in all orders and sizes, the summaries of all estimators and the bound."""
    found: dict[str, list[Comparison]] = {}
    for name in NAMES:
        for step in _STEPS:
            summaries, draws = study.rows(step, "summaries", name), study.rows(step, "draws", name)
            for curve in study.rows(step, "curves", name):
                rows = {str(row["estimator"]): row for row in summaries if row["k"] == curve["k"]}
                if rows and curve["k"] != 1:
                    drawn = {key: [_loss(row) for row in draws if _belongs(row, key, curve["k"])] for key in rows}
                    found.setdefault(name, []).append(Comparison(rows, cast(float, curve["bound"]), drawn))
    return found


def _belongs(row: Row, estimator: str, k: Value) -> bool:
    return row["estimator"] == estimator and row["k"] == k


def _loss(row: Row) -> float:
    return cast(float, row["excess_loss"])


def _mean(row: Row) -> float:
    return cast(float, row["mean"])


def _cost(comparison: Comparison) -> tuple[float, float]:
    """Return what weights lose, as a part of what the better of θ̄ and the plain stack does, and its standard error."""
    rows = comparison.rows
    better = min(("stack", "partition"), key=lambda name: _mean(rows[name]))
    differences = np.subtract(comparison.draws["weighted"], comparison.draws[better])
    # Both are fits to the same sketches.
    error = float(np.std(differences, ddof=1) / math.sqrt(len(differences)))
    return _mean(rows["weighted"]) / _mean(rows[better]), error / _mean(rows[better])


def _verdict(cases: dict[str, bool]) -> Verdict:
    """Judge; a claim on three data sets holds only when all three were measured."""
    verdict = judge(cases)
    return Verdict(PARTLY, "; ".join(cases)) if verdict.word == HOLDS and len(cases) < len(NAMES) else verdict


def _weights_cost(study: Study) -> Measured:
    words, cases = [], {}
    for name, comparisons in _comparisons(study).items():
        costs = [_cost(comparison) for comparison in comparisons]
        most, error = max(costs)
        words.append(
            f"{TITLES[name]}: {min(costs)[0]:.3f} to {most:.3f} ± {error:.3f} times in {len(costs)} comparisons"
        )
        cases[TITLES[name]] = all(ratio - LARGEST_Z * error <= _MOST_COST for ratio, error in costs)
    return ("; ".join(words), _verdict(cases)) if cases else None


def _orthogonal_gain(study: Study) -> Measured:
    words, cases = [], {}
    for name, comparisons in _comparisons(study).items():
        ratios, distances = [], []
        for rows, *_ in comparisons:
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
        settings = [(rows["orthogonal"], bound) for rows, bound, _ in comparisons if bound > 0]
        ratio = math.exp(sum(math.log(_mean(row) / bound) for row, bound in settings) / len(settings))
        errors = [cast(float, row["standard_error"]) / _mean(row) for row, _ in settings]
        error = ratio * math.hypot(*errors) / len(settings)
        words.append(f"{TITLES[name]}: {ratio:.3f} ± {error:.3f} times, the geometric mean of {len(settings)} settings")
        cases[TITLES[name]] = ratio - LARGEST_Z * error <= _NEAR
    return ("; ".join(words), _verdict(cases)) if cases else None


STACKING_QUESTIONS: tuple[Question, ...] = (
    Question(
        "weights-cost",
        "not in the paper",
        "Stacking with weights by data loses at most 1.05 times what the better of θ̄ and the plain stack does, from "
        "the same sketches of even partitions.",
        "a data set counts when the ratio of the mean losses is at no k > 1 more than 4 standard errors above 1.05, in "
        "both orders and at m = 2d",
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
        "a data set counts when the geometric mean of mean loss over bound, over all k > 1, both orders and m = 2d, is "
        "not more than 4 standard errors above 1.1",
        _near_bound,
        {
            HOLDS: "The bound is attained where partitions share coefficients and noise (Gauss and Markov).",
            PARTLY: "The bound is that of partitions with shared coefficients and noise, which these do not all have.",
            FAILS: "The bound is that of partitions with shared coefficients and noise, which these do not have.",
        },
    ),
)
