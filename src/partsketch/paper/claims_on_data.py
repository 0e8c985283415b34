"""Claims about the three data sets: who wins, the shape of the gap, singular partitions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from partsketch.paper.claims import FAILS, HOLDS, PARTLY, Question, Verdict, judge
from partsketch.paper.data_sets import NAMES, TITLES
from partsketch.paper.drawing import column

if TYPE_CHECKING:
    from partsketch.paper.study import Study

Measured = tuple[str, Verdict] | None


def _winners(step: str, winner: str, loser: str) -> Callable[[Study], Measured]:
    """Compare two exact curves on every data set, for every k > 1."""

    def measure(study: Study) -> Measured:
        words, cases = [], {}
        for name in study.units(step):
            rows = [row for row in study.rows(step, "curves", name) if row["k"] != 1 and row[winner] is not None]
            wins = [cast(int, row["k"]) for row in rows if cast(float, row[winner]) < cast(float, row[loser])]
            middle = rows[len(rows) // 2]
            loss = cast(float, middle["minimal_loss"])
            words.append(
                f"{TITLES[name]}: {len(wins)} of {len(rows)} values of k (at k = {middle['k']}: "
                f"{cast(float, middle[winner]) / loss:.2f} ℓ against {cast(float, middle[loser]) / loss:.2f} ℓ)"
            )
            cases[_named(name, wins, [cast(int, row["k"]) for row in rows])] = bool(wins)
        return ("; ".join(words), _complete(cases)) if cases else None

    return measure


def _drawn_winners(winner: str, loser: str) -> Callable[[Study], Measured]:
    """Compare medians of draws on every data set, for every k > 1 at which both were drawn."""

    def measure(study: Study) -> Measured:
        words, cases = [], {}
        for name in study.units("figure-1"):
            rows = study.rows("figure-1", "summaries", name)
            median = {(str(row["estimator"]), cast(int, row["k"])): cast(float, row["median"]) for row in rows}
            counts = [k for (estimator, k) in median if estimator == winner and k != 1 and (loser, k) in median]
            if not counts:
                continue
            wins = [k for k in counts if median[winner, k] < median[loser, k]]
            factors = [median[loser, k] / median[winner, k] for k in counts]
            low, high = (f"{value:,.0f}" if value >= 10 else f"{value:.2g}" for value in (min(factors), max(factors)))
            words.append(
                f"{TITLES[name]}: {len(wins)} of {len(counts)} values of k (better by factors of {low} to {high})"
            )
            cases[_named(name, wins, counts)] = bool(wins)
        return ("; ".join(words), _complete(cases)) if cases else None

    return measure


def _named(name: str, wins: list[int], counts: list[int]) -> str:
    """Name a data set, and the values of k where it is not all of them."""
    return TITLES[name] if len(wins) in (0, len(counts)) else f"{TITLES[name]} at k = {', '.join(map(str, wins))}"


def _complete(cases: dict[str, bool]) -> Verdict:
    """Judge, where a claim on three data sets holds only when all three were measured and none is limited to some k."""
    verdict = judge(cases)
    if verdict.word == HOLDS and (len(cases) < len(NAMES) or any(" at k" in name for name in cases)):
        return Verdict(PARTLY, "; ".join(cases))
    return verdict


def _shape(study: Study) -> Measured:
    words, cases = [], {}
    for name in study.units("figure-1"):
        rows = study.rows("figure-1", "curves", name)
        gap = [
            (whole - partition) / loss
            for whole, partition, loss in zip(
                column(rows, "whole"), column(rows, "partition"), column(rows, "minimal_loss"), strict=True
            )
        ]
        top = gap.index(max(gap))
        rises = 0 < top < len(gap) - 1 and gap[top] > max(gap[0], gap[-1], 0)
        single = all(a <= b for a, b in pairwise(gap[: top + 1])) and all(a >= b for a, b in pairwise(gap[top:]))
        cases[f"{TITLES[name]}"] = rises and single
        turns = "one maximum" if rises and single else "several turns" if rises else "no interior maximum"
        words.append(f"{TITLES[name]}: from {gap[0]:.1f} ℓ, highest {gap[top]:.1f} ℓ at k = {rows[top]['k']}, last "
                     f"{gap[-1]:.1f} ℓ ({turns})")  # fmt: skip
    return ("; ".join(words), _complete(cases)) if cases else None


def _singular(study: Study) -> Measured:
    words, found = [], False
    for name in study.units("figure-1"):
        rows = study.rows("figure-1", "curves", name)
        count, total = sum(column(rows, "singular_partitions")), sum(column(rows, "k"))
        smallest = min(column(rows, "smallest_partition_rank"))
        found = found or count > 0
        words.append(
            f"{TITLES[name]}: {count:.0f} of {total:.0f} partitions over all k (smallest rank {smallest:.0f} of "
            f"{rows[0]['features']}, all rows {rows[0]['rank']})"
        )
    return ("; ".join(words), Verdict(HOLDS if found else FAILS)) if words else None


_WINNER_RULE = "a data set counts when the exact curve of the first lies below that of the second at every k > 1"

DATA_QUESTIONS: tuple[Question, ...] = (
    Question(
        "theta-outperforms",
        "Figure 1",
        "θ̄ outperforms β̄ on Digits, House and Cover (m = d + 2, default order).",
        _WINNER_RULE + "; otherwise the values of k at which it does are named",
        _winners("figure-1", "partition", "whole"),
        {
            HOLDS: "Partitions have lost columns: m − r_i − 1 is larger than m − r − 1.",
            PARTLY: "Where it wins the cause is rank: partitions have lost columns, so m − r_i − 1 grows while the "
            "whole data stay at m − r − 1 of 1 or 2. Where it loses, partitions are unlike: rows sorted by area on "
            "House and Cover, and a few rows of extreme leverage on House.",
            FAILS: "Partitions are unlike one another.",
        },
    ),
    Question(
        "theta-outperforms-median",
        "Figure 1",
        "The same, judged by medians of the draws instead of exact means.",
        "a data set counts when the median of θ̄ lies below that of β̄ at every k > 1 that was drawn; otherwise the "
        "values of k at which it does are named",
        _drawn_winners("partition", "whole"),
        {
            PARTLY: "Medians do not suffer from the infinite variance at m = d + 2. They lead to much the "
            "same picture.",
            HOLDS: "Medians do not suffer from the infinite variance at m = d + 2.",
            FAILS: "Medians do not suffer from the infinite variance at m = d + 2, and do not favour θ̄ either.",
        },
    ),
    Question(
        "theta-outperforms-shuffled",
        "Figure 1, shuffled order",
        "θ̄ outperforms β̄ when the rows are in random order, as i.i.d. data would be.",
        _WINNER_RULE + "; otherwise the values of k at which it does are named",
        _winners("figure-1-shuffled", "partition", "whole"),
        {
            PARTLY: "With like partitions θ̄ is slightly worse until partitions lose rare columns; from then on rank "
            "helps it. On House shuffling does not help: a few rows of extreme leverage fall into some partition.",
            FAILS: "Partitions are unlike in any order.",
            HOLDS: "Partitions have lost columns.",
        },
    ),
    Question(
        "theta-outperforms-larger",
        "Figure 1, m = 2d",
        "θ̄ outperforms β̄ with sketches of m = 2d rows.",
        _WINNER_RULE + "; otherwise the values of k at which it does are named",
        _winners("figure-1-larger", "partition", "whole"),
        {
            FAILS: "At m = 2d the few dimensions that partitions lose hardly matter to m − r − 1, and what is left is "
            "the price of unlike partitions.",
            PARTLY: "At m = 2d rank matters little.",
        },
    ),
    Question(
        "stack-outperforms",
        "not in the paper",
        "One fit on the stacked partition sketches is better than the average of fits on them (m = d + 2).",
        "a data set counts when the median of the stacked fit lies below that of θ̄, from the same sketches, at every "
        "k > 1",
        _drawn_winners("stack", "partition"),
        {
            HOLDS: "Stacked sketches are one sketch of km rows of all data: no partition has to decide alone a "
            "direction that it hardly sees.",
        },
    ),
    Question(
        "gap-shape",
        "Figure 1",
        "On the data sets the gap between β̄ and θ̄ first increases and then decreases.",
        "a data set counts when the exact gap has one maximum, inside the range of k, above zero and above both ends",
        _shape,
        {
            PARTLY: "Where it is seen it comes from rank, not from F: at k = 1 the gap is zero, then partitions lose "
            "columns, then β̄ improves as 1/k.",
            FAILS: "The exact gaps do not have that shape.",
            HOLDS: "At k = 1 the gap is zero, then partitions lose columns, then β̄ improves as 1/k.",
        },
    ),
    Question(
        "singular",
        "Appendix C",
        "Some X_iᵀX_i are not invertible.",
        "holds when at least one partition of some data set has a rank below d",
        _singular,
        {HOLDS: "Pixels that are blank in a partition, and indicator columns that are absent from it or sum to one."},
    ),
)
