"""Plans: the choice follows the limits, predictions are right where they are called exact, questions are answered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError, Plan
from partsketch.common.errors import PartsketchWarning
from partsketch.fitting.options import FitOptions
from partsketch.planner.calibration import calibration
from partsketch.planner.choice import make_plan
from partsketch.planner.excess import expected_excess
from partsketch.planner.inverse import largest_partitions_for, size_for_bound, smallest_size_for
from partsketch.planner.survey import look, survey_of_sizes
from partsketch.simulate import draw_excess_losses, partition_factors
from partsketch.sources.memory.arrays import array_source
from partsketch.theory import high_probability_excess_loss, pooled_moments, smallest_sketch_size
from tests.planner.settings import KINDS, MACHINE


def planned(limits: Any = None, **values: Any) -> Plan:
    settings: dict[str, Any] = {"rows": 1_000_000, "columns": 50, "calibration": MACHINE, **values}
    return ps.plan(limits=limits, **settings)


def test_without_limits_exact_is_recommended_and_the_reason_says_so() -> None:
    plan = planned()
    assert plan.recommended is not None
    assert plan.recommended.method == "exact"
    assert "no reason to sketch" in plan.reason


def test_every_method_and_sketch_is_a_candidate() -> None:
    found = {(candidate.method, candidate.sketch) for candidate in planned().candidates}
    assert {("exact", None), ("average", None)} <= found
    assert {(method, kind) for method in ("partition", "stack", "whole") for kind in KINDS} <= found


def test_the_quickest_within_the_limits_is_taken_when_loss_is_allowed() -> None:
    plan = planned({"max_excess": "5%", "max_bytes_per_partition": "1 kB"}, n_partitions=8)
    within = [candidate for candidate in plan.candidates if not candidate.breaks]
    assert plan.recommended is not None
    assert plan.recommended.seconds == min(candidate.seconds for candidate in within if candidate.seconds)
    for candidate in plan.candidates:
        rejected = candidate.bytes_per_partition > 1000 or candidate.excess is None or candidate.excess > 0.05
        assert bool(candidate.breaks) == rejected
        assert ("sends" in " ".join(candidate.breaks)) == (candidate.bytes_per_partition > 1000)


def test_a_limit_that_exact_meets_does_not_lead_to_sketching() -> None:
    for limits in ({"seconds": 1000}, {"memory": "8 GB"}, {"rows_stay": True}, {"max_bytes_per_partition": "1 MB"}):
        plan = planned(limits)
        assert plan.recommended is not None
        assert plan.recommended.method == "exact"


def test_impossible_limits_have_no_recommendation_and_say_which() -> None:
    plan = planned({"seconds": 1e-6})
    assert plan.recommended is None
    assert "No candidate meets all limits" in plan.reason
    assert "time" in plan.reason
    assert all("time" in " ".join(candidate.breaks) for candidate in plan.candidates)


def test_rows_that_stay_rule_out_sampling_alone() -> None:
    for candidate in planned({"rows_stay": True}).candidates:
        assert ("rows would leave" in candidate.breaks) == (candidate.sketch in ("row_sample", "leverage_sample"))


def test_certified_fits_send_whole_summaries() -> None:
    for candidate in planned({"certified": True}).candidates:
        assert candidate.bytes_per_partition == candidate.summary_bytes_per_partition


def test_plans_are_plain_data_and_print() -> None:
    plan = planned({"max_excess": "1%"}, n_partitions=8, delta=0.05)
    assert json.loads(json.dumps(plan.to_dict()))["recommended"]["method"] == plan.recommended.method  # type: ignore[union-attr]
    text = str(plan)
    for word in ("excess", "sent each", "passes", "memory", "time", "breaks", "Recommended", "Smallest m", "Largest k"):
        assert word in text
    assert max(len(line) for line in text.splitlines()) <= 140


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(3)
    X = rng.standard_t(5, size=(4000, 6)) * np.repeat([1.0, 3.0], 2000)[:, None]
    return X, X @ np.arange(6.0) + rng.normal(size=4000)


@pytest.mark.parametrize("method", ["partition", "whole"])
def test_excess_called_exact_agrees_with_draws(method: str, data: Any) -> None:
    X, y = data
    plan = ps.plan(
        np.column_stack([X, y]), "x6", n_partitions=5, sketch_size=30, fit_intercept=False, calibration=MACHINE
    )
    candidate = next(one for one in plan.candidates if one.method == method and one.sketch == "gaussian")
    assert candidate.excess_kind == "exact"
    parts = partition_factors(X, y, [5])[5]
    draws = 20_000
    losses = draw_excess_losses(method, parts, 30, draws, np.random.default_rng(0), n_sketches=5)
    losses = losses / pooled_moments(parts).loss
    # Four standard errors, which are about 0.4% here: a formula that is off by 2% fails.
    error = 4 * losses.std() / np.sqrt(draws)
    assert error < 0.02 * losses.mean()
    assert candidate.excess == pytest.approx(losses.mean(), abs=error)


def test_average_called_exact_is_what_the_fit_loses(data: Any) -> None:
    X, y = data
    table = np.column_stack([X, y])
    plan = ps.plan(table, "x6", n_partitions=5, calibration=MACHINE)
    candidate = next(one for one in plan.candidates if one.method == "average")
    fitted = ps.fit(table, "x6", method="average", n_partitions=5)
    assert candidate.excess == pytest.approx(fitted.certificates[0].relative_excess_loss, rel=1e-9)


def test_where_columns_lie_does_not_change_what_is_predicted(data: Any) -> None:
    X, y = data
    X = np.round(X * 2**10) / 2**10
    plans = [
        ps.plan(np.column_stack([moved, y]), "x6", n_partitions=5, sketch_size=30, calibration=MACHINE)
        for moved in (X, X + 2.0**30 * np.arange(6))
    ]
    losses = [{(one.method, one.sketch): one.excess for one in plan.candidates} for plan in plans]
    for key, loss in losses[0].items():
        assert losses[1][key] == pytest.approx(loss, rel=1e-6), key


def test_losses_of_shuffled_partitions_are_estimated_over_shuffles(data: Any) -> None:
    """A fit without a seed has a shuffle that no plan can know; what shuffles lose on average can be estimated."""
    X, y = data
    table = np.column_stack([X, y])
    plan = ps.plan(table, "x6", n_partitions=5, partition_by="shuffle", sketch_size=30, calibration=MACHINE)
    kinds = {one.method: one.excess_kind for one in plan.candidates if one.sketch in (None, "gaussian")}
    assert kinds == {
        "exact": "exact",
        "average": "estimated",
        "partition": "estimated",
        "stack": "approximate",
        "whole": "exact",
    }
    (average,) = [one for one in plan.candidates if one.method == "average"]
    losses = []
    for seed in range(4):
        fitted = ps.fit(table, "x6", method="average", n_partitions=5, partition_by="shuffle", random_state=seed)
        losses.append(fitted.certificate.relative_excess_loss or 0.0)
    assert average.excess == pytest.approx(np.mean(losses), rel=1e-9)
    assert min(losses) < 0.97 * max(losses), "shuffles differ"
    assert "mean over 4 shuffles, which gave" in average.excess_reason
    assert "~ " in str(plan)
    assert any("means over 4 shuffles" in note for note in plan.notes)
    by_order = ps.plan(table, "x6", n_partitions=5, sketch_size=30, calibration=MACHINE)
    assert not any("shuffle" in note for note in by_order.notes)
    assert not any(one.excess_kind == "estimated" for one in by_order.candidates)
    one = ps.plan(table, "x6", n_partitions=1, partition_by="shuffle", sketch_size=30, calibration=MACHINE)
    assert not any(candidate.excess_kind == "estimated" for candidate in one.candidates)


def test_auto_looks_at_the_shuffle_that_the_fit_will_have(data: Any) -> None:
    X, y = data
    source = array_source(X, y, None, None, ["y"])
    options = FitOptions("average", 5, "shuffle", "spread", "gaussian", None, True, 11)
    excess = expected_excess(look(source, options), "average", "triangular", None, 5)
    fitted = ps.SketchedRegression("average", n_partitions=5, partition_by="shuffle", random_state=11).fit(X, y)
    assert excess.kind == "exact"
    assert excess.value == pytest.approx(fitted.certificate_.relative_excess_loss, rel=1e-9)


def test_a_look_that_is_not_complete_is_deterministic_and_small(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.planner.survey.WHOLE_LOOK_NUMBERS", 2**13)
    X, y = data
    plans = [ps.plan(np.column_stack([X, y]), "x6", calibration=MACHINE) for _ in range(2)]
    assert plans[0] == plans[1]
    kinds = {one.method: one.excess_kind for one in plans[0].candidates if one.sketch in (None, "gaussian")}
    assert kinds == {
        "exact": "exact",
        "average": "approximate",
        "partition": "approximate",
        "stack": "approximate",
        "whole": "exact",
    }


def test_many_columns_are_planned_from_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at 20,000 columns took 23 GB, whatever memory was allowed, and ended in nothing."""
    rows = np.random.default_rng(0).normal(size=(30, 1500))
    plan = ps.plan(rows, "x0", limits={"memory": "1MB"}, calibration=MACHINE)
    assert plan.recommended is None
    assert "Only sizes are known" in plan.notes[0]
    with pytest.raises(InputError, match=r"breaks .*memory"):
        ps.fit(rows, "x0", method="auto", limits={"memory": "1MB"})


def test_leverage_in_a_few_rows_makes_averages_unknown(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.planner.survey.WHOLE_LOOK_NUMBERS", 2**13)
    X, y = data
    X = X.copy()
    X[0] *= 1e4
    plan = ps.plan(np.column_stack([X, y]), "x6", limits={"max_excess": 0.5}, calibration=MACHINE)
    for candidate in plan.candidates:
        if candidate.method in ("average", "partition"):
            assert candidate.excess is None
            assert "excess unknown" in candidate.breaks


@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_the_smallest_size_reaches_the_target_and_one_less_does_not(method: str) -> None:
    survey = survey_of_sizes(1_000_000, 20)
    size = smallest_size_for(survey, method, "gaussian", 8, 0.01)
    assert size is not None

    def excess(m: int) -> float:
        value = expected_excess(survey, method, "gaussian", m, 8).value
        assert value is not None
        return value

    assert excess(size) <= 0.01 < excess(size - 1)
    if method == "whole":
        assert size == 21 + 1 + -(-21 // 0.08)  # d/(k(m − d − 1)) ≤ 1%


@pytest.mark.parametrize("sketch", KINDS)
@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_every_kind_is_sized_by_its_own_loss(method: str, sketch: str) -> None:
    survey = survey_of_sizes(3_000, 20)
    plan = ps.plan(rows=3_000, columns=20, n_partitions=2, limits={"max_excess": 0.02}, calibration=MACHINE)
    (candidate,) = (one for one in plan.candidates if (one.method, one.sketch) == (method, sketch))
    size = candidate.sketch_size
    assert size is not None
    assert not candidate.breaks
    less = expected_excess(survey, method, sketch, size - 1, 2).value
    assert less is not None
    assert candidate.excess is not None
    assert candidate.excess <= 0.02 < less
    # Samples of so few rows, and rotations of them, lose less than Gaussian sketches of the same size.
    gaussian = smallest_size_for(survey, method, "gaussian", 2, 0.02)
    assert gaussian is not None
    assert (size < gaussian) == (sketch in ("orthogonal", "srht", "row_sample", "leverage_sample"))


def test_a_size_out_of_reach_is_shown_with_the_limit_that_it_breaks() -> None:
    plan = ps.plan(rows=1_000, columns=20, n_partitions=4, limits={"max_excess": 0.001}, calibration=MACHINE)
    shown = {(one.method, one.sketch): one for one in plan.candidates}
    assert {(method, kind) for method in ("partition", "stack", "whole") for kind in KINDS} <= set(shown)
    assert shown["stack", "gaussian"].sketch_size == 250
    assert "excess" in " ".join(shown["stack", "gaussian"].breaks)


def test_kinds_that_need_the_row_count_pay_for_counting() -> None:
    survey = replace(survey_of_sizes(100_000, 20), storage="CSV", counting_passes=1, splittable=False)
    passes = {(one.method, one.sketch): one.passes for one in make_plan(survey, calibration=MACHINE).candidates}
    assert passes["whole", "srht"] == passes["partition", "count_sketch"] == 2
    assert passes["whole", "count_sketch"] == passes["exact", None] == 1


@pytest.mark.parametrize(("method", "size"), [("average", None), ("partition", 3000)])
def test_the_largest_k_reaches_the_target_and_one_more_does_not(method: str, size: int | None) -> None:
    survey = survey_of_sizes(100_000, 20)
    count = largest_partitions_for(survey, method, "gaussian" if size else None, size, 0.001)
    assert count is not None

    def excess(k: int) -> float:
        value = expected_excess(survey, method, "gaussian" if size else "triangular", size, k).value
        assert value is not None
        return value

    assert excess(count) <= 0.001 < excess(count + 1)


def test_targets_out_of_reach_have_no_answer() -> None:
    assert smallest_size_for(survey_of_sizes(1000, 20), "partition", "gaussian", 30, 1e-9) is None
    assert largest_partitions_for(survey_of_sizes(10_000, 20), "partition", "gaussian", 24, 1e-9) is None


def test_the_size_for_the_bound_is_the_smallest() -> None:
    survey = survey_of_sizes(1_000_000, 20)
    size = size_for_bound(survey, 8, 0.05, 0.02)
    assert size is not None

    def bound(m: int) -> float:
        from partsketch.theory import gaussian_design_divergence

        divergence = gaussian_design_divergence(1_000_000, 21, 8)
        return high_probability_excess_loss(1_000_000, 21, m, 8, 1.0, divergence, 0.05) / (1_000_000 - 21)

    assert bound(size) <= 0.02 < bound(size - 1)
    plan = ps.plan(rows=1_000_000, columns=20, n_partitions=8, delta=0.05, calibration=MACHINE)
    assert plan.answers[0].value == smallest_sketch_size(21, 8, 0.05)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "nothing to plan"),
        ({"rows": 10}, "nothing to plan"),
        ({"rows": 0, "columns": 3}, "rows"),
        ({"rows": 100, "columns": 3, "data": np.zeros((3, 3))}, "not both"),
        ({"data": np.zeros((3, 3))}, "target"),
        ({"rows": 100, "columns": 3, "engine": "abacus"}, "abacus"),
        ({"rows": 100, "columns": 3, "delta": 2.0}, "delta"),
        ({"rows": 100, "columns": 30, "sketch_size": 10}, "sketch_size"),
        # As many as a fit refuses.
        ({"rows": 100, "columns": 3, "sketch_size": 2**24 + 1}, "sketch_size is 16777217: give at most 16,777,216"),
        ({"data": np.outer([1.7e308, -1.7e308, -1.7e308], np.ones(3)), "target": "x2"}, "Values are too large"),
        ({"rows": 100, "columns": 3, "n_partitions": 0}, "n_partitions"),
    ],
)
def test_bad_questions_get_one_sentence(values: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ps.plan(calibration=MACHINE, **values)


def test_what_does_not_fit_into_memory_is_not_recommended() -> None:
    plan = make_plan(survey_of_sizes(10**6, 50), calibration=MACHINE, memory_available=1000.0)
    assert plan.recommended is None
    assert "memory" in plan.reason


def test_the_calibration_is_kept_and_made_again_on_request(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def measured(machine: dict[str, str]) -> Any:
        made.append(machine)
        return MACHINE

    monkeypatch.setattr("partsketch.planner.measurement.measure", measured)
    folder = tmp_path / "new" / "folder"
    assert calibration(folder=folder) == calibration(folder=folder) == MACHINE
    assert len(made) == 1
    calibration(again=True, folder=folder)
    assert len(made) == 2
    (path,) = folder.iterdir()
    path.write_text("{damaged")
    assert calibration(folder=folder) == MACHINE
    assert len(made) == 3
    monkeypatch.setattr("partsketch.planner.calibration.describe_machine", lambda: {"processor": "another"})
    calibration(folder=folder)
    assert len(made) == 4


def test_measuring_gives_positive_times() -> None:
    from partsketch.planner.measurement import measure

    found = measure({"processor": "this one"})
    assert found.cores >= 1
    assert 1 <= found.speedup <= found.cores
    for value in (found.normal, found.copied_byte, found.tall_factorisation, found.summary_overhead):
        assert 0 < value < 1
    for table in (
        found.product,
        found.symmetric_product,
        found.exact_row,
        found.small_factorisation,
        found.decoded_number,
    ):
        assert all(value > 0 for value in table.values())
    assert set(found.sketched_number) == set(KINDS) - {"gaussian", "orthogonal"}


@pytest.mark.parametrize("asked", [ps.plan, ps.diagnose])
def test_columns_that_are_left_out_are_told(asked: Any) -> None:
    """Timestamps are no features unless a formula takes what matters of them: whoever plans a fit must know."""
    draw = np.random.default_rng(0)
    when = pa.array(range(40), pa.int64()).cast(pa.timestamp("s"))
    table = pa.table({"when": when, "x": draw.normal(size=40), "y": draw.normal(size=40)})
    with pytest.warns(PartsketchWarning, match=r"Column 'when' holds timestamps and was left out: .* days\(when\)"):
        asked(table, "y", n_partitions=2)
