"""The explorer's numbers are those of the theory; its state survives the address."""

from __future__ import annotations

import json
import math
import shlex
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch import InputError, theory
from partsketch.cli import run
from partsketch.planner.calibration import calibration
from partsketch.report.explorer.evaluation import figure
from partsketch.report.explorer.numbers import numbers
from partsketch.report.explorer.page import standalone_figure
from partsketch.report.explorer.state import DESIGNS, SLIDERS, State


def states() -> st.SearchStrategy[State]:
    def strategy(slider: object) -> st.SearchStrategy[float]:
        low, high = math.log(slider.lowest), math.log(slider.highest)  # type: ignore[attr-defined]
        return st.floats(low, high).map(
            lambda power: min(max(math.exp(power), slider.lowest), slider.highest)  # type: ignore[attr-defined]
        )

    values = {
        slider.name: strategy(slider).map(round) if slider.whole else strategy(slider).map(lambda x: float(f"{x:.12g}"))
        for slider in SLIDERS
    }
    return st.builds(State, **values, design=st.sampled_from(list(DESIGNS)))


@given(states())
def test_a_state_survives_its_address(state: State) -> None:
    assert State.from_query(dict(parse_qsl(state.to_query()))) == state


@given(states())
def test_every_state_has_an_answer_or_one_sentence(state: State) -> None:
    if state.n <= state.d:
        with pytest.raises(InputError, match="use more rows"):
            numbers(state, SPEEDS)
        return
    told = numbers(state, SPEEDS)
    json.dumps(told, allow_nan=False)
    for row in told["quantities"]:
        assert (row["excess_loss"] is None) == bool(row["reason"])
        assert row["excess_loss"] is None or row["excess_loss"] >= -1e-9 * told["minimal_loss"]


SPEEDS = calibration()


@pytest.mark.parametrize("design", DESIGNS)
def test_numbers_are_those_of_the_theory(design: str) -> None:
    state = State(n=100_000, d=20, k=10, m=160, variance=2.5, odd=4.0, unlikeness=3.0, delta=0.1, design=design)
    scales = [16.0, *[1.0] * 9]
    divergence = {
        "alike": 20.0,
        "gaussian": theory.gaussian_design_divergence(100_000, 20, 10),
        "odd": theory.divergence([scale * np.eye(20) for scale in scales]),
        "given": 60.0,
    }[design]
    told = numbers(state, SPEEDS)
    assert told["divergence"] == pytest.approx(divergence, rel=1e-12)
    values = {row["name"]: row["excess_loss"] for row in told["quantities"]}
    assert values == {
        "whole": pytest.approx(theory.expected_whole_excess_loss(100_000, 20, 160, 10, 2.5)),
        "partition": pytest.approx(theory.expected_partition_excess_loss(100_000, 20, 160, 10, 2.5, divergence)),
        "stacked": pytest.approx(theory.stacked_excess_loss(2.5 * (100_000 - 20), 20, [160] * 10)),
        "average": pytest.approx(2.5 * (divergence - 20), abs=1e-9),
        "bound": pytest.approx(theory.high_probability_excess_loss(100_000, 20, 160, 10, 2.5, divergence, 0.1)),
        "exact": 0.0,
    }
    for tail in told["tails"]:
        expected = theory.single_sketch_excess_loss_quantile(1.0, 20, 160, tail["probability"])
        assert tail["relative_excess_loss"] == pytest.approx(expected)


@pytest.mark.parametrize(("m", "words"), [(21, "mean is infinite"), (23, "variance is infinite"), (24, "are finite")])
def test_tails_are_told(m: int, words: str) -> None:
    assert words in numbers(State(d=20, m=m), SPEEDS)["tails_words"]


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_odd_partition(k: int, scale: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(9, 3))
    grams = [rows.T @ rows * (scale**2 if i == 0 else 1.0) for i in range(k)]
    assert theory.odd_partition_divergence(3, k, scale) == pytest.approx(theory.divergence(grams))


def test_figures_mark_the_choice_and_stand_alone() -> None:
    state = State(k=16)
    assert "k = 16" in figure(state, "k")
    text = standalone_figure(state, "m")
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "<style>" in text


def test_the_plan_command_runs_and_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    state = State(n=200_000, d=30, k=8, m=120)
    command = shlex.split(state.plan_command())
    assert run([*command[1:], "--json", "--all"]) == 0
    plan = json.loads(capsys.readouterr().out)
    told = numbers(state, SPEEDS)
    losses = {row["name"]: row["relative_excess_loss"] for row in told["quantities"]}
    found = {
        (entry["method"], entry["sketch"]): entry
        for entry in plan["candidates"]
        if entry["partitions"] == 8 and entry["sketch_size"] in (None, 120)
    }
    for method, name in (("whole", "whole"), ("partition", "partition"), ("stack", "stacked")):
        # The planner reckons with an estimated minimal loss of the same size.
        assert found[method, "gaussian"]["excess"] == pytest.approx(losses[name], rel=0.01)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"n": "many"}, "n is 'many'"),
        ({"k": "0"}, "partitions k is 0"),
        ({"design": "magic"}, "magic"),
        ({"m": "nan"}, "nan"),
    ],
)
def test_bad_states_get_one_sentence(query: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        State.from_query(query)


def test_json_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--rows", "1e5", "--columns", "10", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in told["quantities"]} == {"whole", "partition", "stacked", "average", "bound", "exact"}
    assert run(["explore", "--design", "magic", "--json"]) == 2
    assert "magic" in capsys.readouterr().err
