"""Where the planner's choices turn: margins, limits met exactly, and the largest k."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partsketch import Limits
from partsketch.common.free_memory import available_memory
from partsketch.fitting.options import FitOptions
from partsketch.planner.choice import choose, free_memory, make_plan, options_from
from partsketch.planner.excess import expected_excess
from partsketch.planner.inverse import answers, largest_partitions_for, size_for_bound, smallest_size_for
from partsketch.planner.plan import Candidate
from partsketch.planner.survey import look, survey_of_sizes
from partsketch.sources import array_source
from tests.planner.settings import MACHINE


def candidate(method: str, seconds: float | None, excess: float | None = 0.0, **changes: Any) -> Candidate:
    values: dict[str, Any] = {
        "method": method, "sketch": None if method in ("exact", "average") else "gaussian",
        "sketch_size": None if method in ("exact", "average") else 50, "partitions": 4, "excess": excess,
        "excess_kind": "exact", "excess_reason": "", "bytes_per_partition": 100, "bytes_in_all": 400,
        "summary_bytes_per_partition": 100, "flops": 1.0, "passes": 1, "peak_bytes": 1000.0, "seconds": seconds,
        **changes,
    }  # fmt: skip
    return Candidate(**values)


@pytest.mark.parametrize(("seconds", "taken"), [(1.0, "exact"), (1.099, "exact"), (1.101, "stack"), (0.5, "exact")])
def test_exact_is_taken_up_to_a_tenth_more_time(seconds: float, taken: str) -> None:
    exact, stack = candidate("exact", seconds), candidate("stack", 1.0, 0.01)
    chosen, reason = choose([exact, stack], Limits(max_excess=0.05))
    assert chosen is not None
    assert chosen.method == taken
    assert ("no reason to sketch" in reason) == (taken == "exact")


def test_without_a_loss_that_is_welcome_exact_is_taken_however_long_it_takes() -> None:
    for limits in (Limits(), Limits(seconds=1000.0), Limits(memory=1e9)):
        chosen, _ = choose([candidate("exact", 500.0), candidate("stack", 1.0, 0.01)], limits)
        assert chosen is not None
        assert chosen.method == "exact"


def test_the_quickest_when_loss_is_welcome_the_least_loss_when_exact_is_ruled_out() -> None:
    exact = candidate("exact", 10.0, breaks=("time",))
    slow, quick = candidate("stack", 2.0, 0.01), candidate("whole", 1.0, 0.03)
    assert choose([exact, slow, quick], Limits(max_excess=0.05))[0] is quick
    assert choose([exact, slow, quick], Limits(seconds=5.0))[0] is slow
    # Of equally quick ones the better, of equally good ones the quicker.
    better = candidate("partition", 1.0, 0.02)
    assert choose([exact, quick, better], Limits(max_excess=0.05))[0] is better
    again = candidate("partition", 1.5, 0.01)
    assert choose([exact, slow, again], Limits(seconds=5.0))[0] is again
    unknown = candidate("average", 0.1, None)
    assert choose([exact, unknown, slow], Limits(seconds=5.0))[0] is slow


def test_memory_is_met_exactly_or_not() -> None:
    exact, small = candidate("exact", 1.0, peak_bytes=2000.0), candidate("stack", 9.0, 0.2, peak_bytes=500.0)
    assert choose([exact, small], Limits(), 2000.0)[0] is exact
    assert choose([exact, small], Limits(), 1999.0)[0] is small
    assert choose([exact, small], Limits(), 500.0)[0] is small
    chosen, reason = choose([exact, small], Limits(), 499.0)
    assert chosen is None
    assert "499 B" in reason
    assert "500 B" in reason


def test_nine_tenths_of_free_memory_are_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partsketch.planner.choice.available_memory", lambda: 1000.0)
    assert free_memory() == pytest.approx(900.0)


@pytest.mark.parametrize(("most", "used", "left"), [("5000", "3000", 2000), ("5000", "6000", 0), ("max", "3000", None)])
def test_the_share_of_a_container_bounds_what_is_free(
    most: str, used: str, left: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partsketch.common.free_memory.CONTROL_GROUP", tmp_path)
    of_machine = available_memory()
    # Other programs take and give back meanwhile; nobody takes all of it in this moment.
    assert of_machine > 1e6
    (tmp_path / "memory.max").write_text(f"{most}\n")
    (tmp_path / "memory.current").write_text(f"{used}\n")
    assert available_memory() == left if left is not None else available_memory() > of_machine / 2


@pytest.mark.parametrize(("name", "field"), [("seconds", "seconds"), ("memory", "peak_bytes"),
                                             ("max_bytes_per_partition", "bytes_per_partition"),
                                             ("max_excess", "excess")])  # fmt: skip
def test_a_limit_is_broken_above_it_and_not_at_it(name: str, field: str) -> None:
    survey = survey_of_sizes(100_000, 20)
    plan = make_plan(survey, None, 4, 300, calibration=MACHINE, with_extras=False)
    one = next(found for found in plan.candidates if (found.method, found.sketch) == ("stack", "gaussian"))
    value = float(getattr(one, field))

    def breaks(limit: float) -> tuple[str, ...]:
        made = make_plan(survey, {name: limit}, 4, 300, calibration=MACHINE, with_extras=False)
        return next(f.breaks for f in made.candidates if (f.method, f.sketch) == ("stack", "gaussian"))

    assert breaks(value) == ()
    assert len(breaks(value * (1 - 1e-9))) == 1


def test_the_largest_k_is_the_most_that_rows_allow_where_more_is_better() -> None:
    """1,000 rows and 21 columns: 999 // 23 = 43 partitions; whole sketches only gain from k."""
    survey = survey_of_sizes(1_000, 20)
    assert survey.columns == 21
    assert largest_partitions_for(survey, "whole", "gaussian", 100, 10.0) == 43
    assert largest_partitions_for(survey, "stack", "gaussian", 100, 10.0) == 43
    assert largest_partitions_for(survey_of_sizes(23 * 43 + 1, 20), "whole", "gaussian", 100, 10.0) == 43
    assert largest_partitions_for(survey_of_sizes(23 * 43, 20), "whole", "gaussian", 100, 10.0) == 42
    assert largest_partitions_for(survey_of_sizes(20, 20), "whole", "gaussian", 100, 10.0) == 1


def test_rows_that_were_all_looked_at_are_cut_at_most_128_times() -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(3_000, 2))
    source = array_source(X, X.sum(axis=1) + draw.normal(size=3_000))
    options = FitOptions("average", 2, "order", "spread", "gaussian", None, True, 0)
    survey = look(source, options)
    assert survey.complete
    assert largest_partitions_for(survey, "average", None, None, 100.0) == 128
    (answer,) = answers(survey, None, None, 100.0, None, ())
    assert (answer.value, "the most that was looked at" in answer.sentence) == (128, True)
    wide = replace(survey, rows=300)
    assert largest_partitions_for(wide, "whole", "gaussian", 50, 100.0) == 299 // 5


@pytest.mark.parametrize("target", [0.5, 0.02, 0.0011])
@pytest.mark.parametrize("method", ["partition", "average"])
def test_no_k_beyond_the_largest_reaches_the_target(method: str, target: float) -> None:
    survey = survey_of_sizes(30_000, 9)
    sketch, size = ("gaussian", 2_000) if method == "partition" else (None, None)
    count = largest_partitions_for(survey, method, sketch, size, target)
    values = {
        k: expected_excess(survey, method, sketch or "triangular", size, k).value for k in range(1, 29_999 // 12 + 1)
    }  # fmt: skip
    reaching = [k for k, value in values.items() if value is not None and value <= target]
    assert count == (max(reaching) if reaching else None)


@pytest.mark.parametrize("target", [1.0, 0.05, 0.0123])
def test_no_size_below_the_smallest_reaches_the_target(target: float) -> None:
    survey = survey_of_sizes(30_000, 9)
    for method, k in (("partition", 3), ("stack", 3), ("whole", 2)):
        size = smallest_size_for(survey, method, "gaussian", k, target)
        reached = next(
            m for m in range(12, 30_000) if (expected_excess(survey, method, "gaussian", m, k).value or 9) <= target
        )
        assert size == reached
    assert size_for_bound(survey_of_sizes(40, 9), 4, 0.1, 0.5) is None


def test_what_is_chosen_is_what_is_asked_of_the_fit() -> None:
    options = FitOptions(
        "auto", 4, "order", "spread", "srht", 70, True, 0, averaging="equal", limits=Limits(max_excess=0.1)
    )
    made = options_from(candidate("stack", 1.0, 0.01, sketch="gaussian", sketch_size=50), options)
    assert (made.method, made.sketch, made.sketch_size, made.limits) == ("stack", "gaussian", 50, None)
    made = options_from(candidate("exact", 1.0), options)
    assert (made.method, made.sketch, made.sketch_size) == ("exact", "srht", 70)


def test_curves_go_as_far_as_the_rows() -> None:
    """1,000 rows and sketches of 100: ten partitions at most, so that powers of two end at eight."""
    plan = make_plan(survey_of_sizes(1_000, 20), None, None, 100, calibration=MACHINE)
    assert {curve.method: [k for k, _ in curve.points] for curve in plan.curves} == {
        method: [1, 2, 4, 8] for method in ("partition", "whole", "stack", "average")
    }
    plan = make_plan(survey_of_sizes(10**8, 20), None, None, 100, calibration=MACHINE)
    assert {max(k for k, _ in curve.points) for curve in plan.curves} == {64}
