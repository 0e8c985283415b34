"""Verdicts follow from rules: change the numbers and the verdict changes."""

from __future__ import annotations

from typing import Any

import pytest

from partsketch.paper.claims import FAILS, HOLDS, PARTLY, UNKNOWN, Claim, Verdict, check_claims, judge, within_chance
from partsketch.paper.results import Result
from partsketch.paper.settings import quick_study
from partsketch.paper.study import Study


def study(**units: dict[str, list[dict[str, Any]]]) -> Study:
    """A study with made-up tables; underscores and double underscores stand for hyphens and dots."""
    results = {}
    for name, tables in units.items():
        unit = name.replace("__", ".").replace("_", "-")
        results[unit] = Result(unit, "", {}, tables, {}, 0.0)
    return Study(quick_study(), results)


def answer(name: str, given: Study) -> Claim:
    return next(claim for claim in check_claims(given) if claim.name == name)


def test_judge() -> None:
    assert judge({"a": True, "b": True}) == Verdict(HOLDS)
    assert judge({"a": False, "b": False}) == Verdict(FAILS)
    assert str(judge({"a": True, "b": False, "c": True})) == "holds only when a; c"


def test_within_chance() -> None:
    assert within_chance([3.9, -3.9]).word == HOLDS
    assert within_chance([0.0, -4.1]).word == FAILS


def test_nothing_measured_nothing_claimed() -> None:
    claims = check_claims(study())
    assert len(claims) >= 20
    assert {claim.verdict.word for claim in claims} == {UNKNOWN}
    assert len({claim.name for claim in claims}) == len(claims)


@pytest.mark.parametrize(("z", "word"), [(1.0, HOLDS), (-9.0, FAILS)])
def test_theorem(z: float, word: str) -> None:
    cell = {"design": "iid", "k": 2, "sketch_size": 12, "formula": 1.0}
    cells = [{**cell, "estimator": "partition", "z": 0.3}, {**cell, "estimator": "partition", "z": z}]
    assert answer("theorem-3.3", study(figure_4__iid={"cells": cells})).verdict.word == word


def curve(k: int, whole: float, partition: float, **more: Any) -> dict[str, Any]:
    row = {"k": k, "whole": whole, "partition": partition, "stack_approximate": 0.1, "minimal_loss": 1.0, "rank": 8}
    return {**row, "features": 8, "singular_partitions": 0, "smallest_partition_rank": 8, **more}


def losses(**data: list[tuple[float, float]]) -> Study:
    tables = {
        f"figure_1__{name}": {"curves": [curve(2**place, *pair) for place, pair in enumerate(pairs)], "summaries": []}
        for name, pairs in data.items()
    }
    return study(**tables)


def test_theta_outperforms_needs_every_data_set_and_every_k() -> None:
    wins, loses = [(8.0, 8.0), (4.0, 3.0), (2.0, 1.0)], [(8.0, 8.0), (4.0, 5.0), (2.0, 3.0)]
    mixed = [(8.0, 8.0), (4.0, 5.0), (2.0, 1.0)]
    assert answer("theta-outperforms", losses(digits=wins, house=wins, cover=wins)).verdict == Verdict(HOLDS)
    assert answer("theta-outperforms", losses(digits=loses, house=loses, cover=loses)).verdict == Verdict(FAILS)
    # Two data sets cannot confirm a claim about three.
    assert str(answer("theta-outperforms", losses(digits=wins, house=wins)).verdict) == "holds only when Digits; House"
    verdict = answer("theta-outperforms", losses(digits=wins, house=loses, cover=mixed)).verdict
    assert str(verdict) == "holds only when Digits; Cover at k = 4"


def test_gap_shape() -> None:
    hump, falling = [(8.0, 8.0), (4.0, 1.0), (2.0, 1.5)], [(8.0, 8.0), (4.0, 5.0), (2.0, 9.0)]
    assert str(answer("gap-shape", losses(digits=hump, house=falling)).verdict) == "holds only when Digits"
    assert answer("gap-shape", losses(digits=falling)).verdict.word == FAILS
    assert str(answer("gap-shape", losses(digits=hump)).verdict) == "holds only when Digits"


def stacks(**data: dict[str, float]) -> Study:
    """Mean losses by estimator at k = 2, known to a tenth (orthogonal ones to a thousandth), beside a bound of one.

    Draws of the same sketch have nearly the same loss: ratios of them are known to a thousandth.
    """
    tables = {}
    for name, means in data.items():
        errors = {"orthogonal": 0.001}
        rows = [
            {"estimator": key, "k": 2, "mean": mean, "standard_error": errors.get(key, 0.1)}
            for key, mean in means.items()
        ]
        draws = [
            {"estimator": key, "k": 2, "draw": draw, "excess_loss": mean + draw + 0.001 * draw * (key == "weighted")}
            for key, mean in means.items()
            for draw in (-1, 1)
        ]
        curves = [curve(2, 9.0, 9.0, bound=1.0)]
        tables[f"figure_1_shuffled__{name}"] = {"curves": curves, "summaries": rows, "draws": draws}
    return study(**tables)


GOOD = {"partition": 9.0, "stack": 2.0, "weighted": 2.09, "orthogonal": 1.05}


@pytest.mark.parametrize(
    ("claim", "worse"),
    [
        ("weights-cost", {"weighted": 2.11}),
        ("weights-cost", {"partition": 1.9}),
        ("orthogonal-outperforms", {"orthogonal": 2.7}),
        ("near-bound", {"orthogonal": 1.11}),
    ],
)
def test_stacked_sketches(claim: str, worse: dict[str, float]) -> None:
    assert answer(claim, stacks(digits=GOOD, house=GOOD, cover=GOOD)).verdict == Verdict(HOLDS)
    assert str(answer(claim, stacks(digits=GOOD, house=GOOD)).verdict) == "holds only when Digits; House"
    given = stacks(digits=GOOD, house=GOOD | worse, cover=GOOD)
    assert str(answer(claim, given).verdict) == "holds only when Digits; Cover"


def test_few_draws_decide_nothing() -> None:
    """A ratio that is above its limit by less than chance allows does not speak against the claim."""
    given = stacks(digits=GOOD, house=GOOD, cover=GOOD | {"weighted": 2.3, "orthogonal": 1.2})
    tables: Any = given.results["figure-1-shuffled.cover"].tables
    for row in tables["draws"]:
        row["excess_loss"] = 2.0 + 0.5 * row["draw"] * (row["estimator"] == "weighted")
    for row in tables["summaries"]:
        row["standard_error"] = 0.1
    assert answer("weights-cost", given).verdict == Verdict(HOLDS)
    assert answer("near-bound", given).verdict == Verdict(HOLDS)
    assert "1.150 ± 0.250 times" in answer("weights-cost", given).measured


@pytest.mark.parametrize(
    ("gaps", "word"), [((0.0, -1.0, -2.0), FAILS), ((0.0, 5.0, 1.0), HOLDS), ((0.0, 5.0, 6.0), FAILS)]
)
def test_inverted_u(gaps: tuple[float, ...], word: str) -> None:
    rows = [
        {"design": "iid", "k": k, "gap_corrected": gap, "gap": gap, "gap_printed": 1.0 * k, "d": 2}
        | {"divergence_over_d": 1.0, "expected_over_d": 1.0, "standard_error": 1.0}
        | {"largest_winning_divergence_over_d": 1.1}
        for k, gap in zip((1, 2, 4), gaps, strict=True)
    ]
    designs = [{"design": "iid", "k": 1, "divergence": 2.0, "burg_divergence": None}]
    designs.append({"design": "iid", "k": 2, "divergence": 3.0, "burg_divergence": 1.0})
    tables = {"averages": rows, "designs": designs, "copies": []}
    assert answer("inverted-u", study(figure_5__designs=tables)).verdict.word == word


def times(srht: dict[int, float]) -> Study:
    rows = []
    for n, ratio in srht.items():
        entry = {"n": n, "k": 1, "sketch_size": 10, "seconds": 1.0}
        rows.append({**entry, "estimator": "whole", "sketching_seconds": 1.0})
        rows.append({**entry, "estimator": "srht", "sketching_seconds": ratio})
        rows.append({**entry, "estimator": "ols", "sketching_seconds": 0.0})
        rows.append({**entry, "estimator": "partition", "seconds": 0.5, "sketching_seconds": 0.1})
    return study(figure_3__digits={"times": rows})


def test_srht() -> None:
    assert answer("srht", times({16: 2.0, 1024: 0.5})).verdict == Verdict(HOLDS)
    assert answer("srht", times({16: 0.9, 1024: 0.5})).verdict == Verdict(PARTLY, "n ≥ 8m (SRHT faster)")
    assert answer("srht", times({16: 0.9, 1024: 1.5})).verdict == Verdict(FAILS)
    assert answer("partition-most-efficient", times({16: 2.0, 1024: 0.6})).verdict == Verdict(HOLDS)


def test_polynomial_time_and_slower_whole_sketch() -> None:
    def rows(floor: float, exact: float) -> list[dict[str, Any]]:
        base = {"features": 8, "sketch_size": 10, "k": 1}
        fixed = [{**base, "estimator": name, "seconds": exact} for name in ("ols", "ols_gram", "ols_factor")]
        fixed.append({**base, "estimator": "whole", "seconds": 1.0})
        falling = [
            {**base, "k": k, "estimator": name, "seconds": 1 / k + floor, "sketching_seconds": 1 / k}
            for name in ("partition", "partition_fast", "partition_ols", "partition_gram", "partition_factor")
            for k in (1, 4, 16, 64)
        ]
        return fixed + falling

    clean = study(figure_2__house={"times": rows(0.0, 0.5)})
    assert answer("polynomial-time", clean).verdict == Verdict(HOLDS)
    assert answer("whole-slower", clean).verdict == Verdict(HOLDS)
    floored = study(figure_2__house={"times": rows(0.5, 2.0)})
    assert str(answer("polynomial-time", floored).verdict) == "holds only when House, sketching alone"
    assert answer("whole-slower", floored).verdict == Verdict(FAILS)
    # Equal times are not longer times.
    assert answer("never-cheaper", clean).verdict == Verdict(FAILS)
