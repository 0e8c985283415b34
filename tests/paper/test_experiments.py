"""The experiments: explicit sketches that follow the exact law, known numbers."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from partsketch import simulate, theory
from partsketch.paper import data_sets
from partsketch.paper.clock import ClockSettings, fitted_slope, timed
from partsketch.paper.data_sets import load
from partsketch.paper.divergence_experiments import heat_map_experiment
from partsketch.paper.excess_loss_experiment import ExcessLossSettings, excess_loss_experiment
from partsketch.paper.explicit_sketches import Columns, gaussian_sketch, sketched_fits
from partsketch.paper.results import Result, clean, to_csv
from partsketch.paper.settings import derive_seed
from partsketch.paper.stacked_draws import StackedDraws, stacked_draws
from partsketch.paper.timing_experiment import hadamard_experiment, timing_experiment


def test_shuffling_keeps_the_rows() -> None:
    data = load("digits")
    mixed = data.shuffled()
    assert not np.array_equal(mixed.y, data.y)
    assert np.array_equal(np.sort(mixed.X.sum(axis=1) + 1000 * mixed.y), np.sort(data.X.sum(axis=1) + 1000 * data.y))
    assert np.array_equal(mixed.y, data.shuffled().y)


#: k, exact excess losses of θ̄ and ᾱ on Digits at m = 63, and mean of 300 explicit draws made elsewhere with its error.
REFERENCE = [(3, 41_778, 196, 42_394, 2_499), (5, 23_091, 409, 22_076, 728), (15, 6_865, 739, 6_533, 170)]


def test_digits_reference_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exact values to the last digit shown; means of 15 draws within five standard errors of both together.

    The variance is finite at these k, since ranks are at most 59 of m = 63 rows, but only just at k = 3.
    """
    # Stacked fits of the same sketches take most of the time; `test_draws_of_stacked_fits` looks at them.
    nothing = StackedDraws(*np.zeros((3, 15)))
    monkeypatch.setattr("partsketch.paper.excess_loss_experiment.stacked_draws", lambda *_: nothing)
    settings = ExcessLossSettings((3, 5, 15), 63, 15, 0, 4)
    tables = excess_loss_experiment(load("digits"), settings)
    curves = {row["k"]: row for row in tables["curves"]}
    means = {row["k"]: row for row in tables["summaries"] if row["estimator"] == "partition"}
    for k, partition, average, drawn, error in REFERENCE:
        assert round(cast(float, curves[k]["partition"])) == partition
        assert round(cast(float, curves[k]["average"])) == average
        own = cast(float, means[k]["standard_error"])
        assert abs(cast(float, means[k]["mean"]) - drawn) < 5 * np.hypot(own, error)
    assert not [row for row in tables["draws"] if row["estimator"] == "whole"]


def test_fits_are_minimum_norm_least_squares_on_the_sketch() -> None:
    """A singular partition: the fit in row-space coordinates is the one that the pseudo-inverse gives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    X[:, 3] = 2 * X[:, 0]
    y = rng.normal(size=80)
    columns = Columns.of(X, y)
    moments = theory.PartitionMoments.from_rows(X, y)
    sketch = gaussian_sketch(columns, 7, 3, 5, 0, 80)
    fit = sketched_fits(sketch[None, :, :-1], sketch[None, :, -1], moments)[0]
    expected = np.linalg.pinv(sketch[:, :-1], rcond=1e-10) @ sketch[:, -1]
    np.testing.assert_allclose(fit, expected, rtol=1e-9, atol=1e-12)


def test_draws_of_the_whole_sketch_follow_the_law() -> None:
    """100 explicit draws on Digits at m = 2d, k = 2: mean within five standard errors of Theorem 3.1.

    The median of that many is known to 2.3%, so 7% are three standard errors.
    """
    tables = excess_loss_experiment(load("digits"), ExcessLossSettings((2,), 122, 100, 2, 9))
    (row,) = (row for row in tables["summaries"] if row["estimator"] == "whole")
    formula = cast(float, tables["curves"][0]["whole"])
    assert abs(cast(float, row["mean"]) - formula) < 5 * cast(float, row["standard_error"])
    parts = simulate.partition_factors(load("digits").X, load("digits").y, [2], "drop")[2]
    drawn = simulate.draw_excess_losses("whole", parts, 122, 4000, np.random.default_rng(0))
    assert cast(float, row["median"]) == pytest.approx(float(np.median(drawn)), rel=0.07)


def test_draws_of_stacked_fits() -> None:
    """On Digits with m = p nothing is lost; below, orthogonal sketches lose less, and about what the bound says.

    16 draws know the mean losses to about 4%; the bound assumes shared coefficients, which shuffled rows nearly have.
    """
    tables = excess_loss_experiment(load("digits").shuffled(), ExcessLossSettings((1, 10, 25), 100, 16, 0, 5))
    means = {(str(row["estimator"]), row["k"]): cast(float, row["mean"]) for row in tables["summaries"]}
    bounds = {row["k"]: cast(float, row["bound"]) for row in tables["curves"]}
    assert means["weighted", 1] == pytest.approx(means["stack", 1])
    assert means["orthogonal", 25] == bounds[25] == 0.0
    # Of 179 rows in each of ten partitions 100 remain: a share of (p − m)/p of what Gaussian sketches lose.
    assert means["orthogonal", 10] / means["weighted", 10] == pytest.approx(79 / 179, rel=0.15)
    assert means["orthogonal", 10] == pytest.approx(bounds[10], rel=0.12)
    exact = theory.orthogonal_excess_loss(cast(float, tables["curves"][0]["minimal_loss"]), 61, 1797, 100, 1)
    assert bounds[1] == pytest.approx(exact)


def test_weights_do_not_depend_on_coordinates() -> None:
    """Rows of full rank are turned before they are fitted, which must not change what is lost."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3)) * [1.0, 50.0, 0.02]
    y = rng.normal(size=400) * np.repeat([0.1, 0.1, 5.0, 5.0], 100)
    parts = simulate.partition_factors(X, y, [4])[4]
    pooled = theory.pooled_moments(parts)
    sketches = [rng.normal(size=(5, 9, 100)) @ np.column_stack([X, y])[100 * i : 100 * i + 100] / 3 for i in range(4)]
    drawn = stacked_draws(sketches, parts, pooled, 1)
    for number in range(5):
        moments = theory.sketch_moments([matrix[number] for matrix in sketches], [100] * 4)
        choice = theory.choose_stack(moments)
        fit = theory.stacked_fit(moments.sketches, [100] * 4, "gaussian", choice.weights).pooled.solution
        fit = (1 - choice.share) * fit + choice.share * moments.coefficients.mean(axis=0)
        assert drawn.weighted[number] == pytest.approx(theory.excess_loss(parts, fit), rel=1e-8)
        assert choice.taken == "information"


def test_experiments_depend_on_their_settings_alone() -> None:
    settings = ExcessLossSettings((2, 4), 63, 3, 4, 11)
    assert excess_loss_experiment(load("digits"), settings) == excess_loss_experiment(load("digits"), settings)


def test_heat_map_sums_to_the_divergence() -> None:
    """On a full-rank design the mean of D_ij over all pairs is D."""
    rng = np.random.default_rng(1)
    data = data_sets.DataSet("house", rng.normal(size=(300, 4)), rng.normal(size=300), 300, 4)
    pairs = heat_map_experiment(data, 5)["pairs"]
    grams = [data.X[60 * i : 60 * i + 60].T @ data.X[60 * i : 60 * i + 60] for i in range(5)]
    assert np.mean([cast(float, pair["trace"]) for pair in pairs]) == pytest.approx(theory.divergence(grams))


def test_clocks_time_every_estimator() -> None:
    clock = ClockSettings(0.0, 2, 1)
    times = timing_experiment(load("digits"), (1, 5), 63, clock)["times"]
    assert {row["estimator"] for row in times} >= {"ols", "whole", "partition", "partition_fast", "partition_gram"}
    times = hadamard_experiment(load("digits"), (128,), (1, 2), (2048,), clock)["times"]
    assert {(row["estimator"], row["n"]) for row in times} >= {("srht", 128), ("srht", 2048), ("partition", 128)}
    assert all(cast(float, row["seconds"]) > 0 for row in times)


def test_clock_and_slope() -> None:
    readings = iter([(0.0, 9.0, 9.0), (0.0, 1.0, 3.0), (5.0, 6.0, 8.0), (0.0, 1.0, 5.0)])
    summary = timed(lambda _: next(readings), ClockSettings(0.0, 3, 0))
    assert (summary["seconds"], summary["sketching_seconds"], summary["repetitions"]) == (3.0, 1.0, 3)
    slope, fit = fitted_slope([1, 2, 4, 8], [8, 4, 2, 1])
    assert slope == pytest.approx(-1)
    assert fit == pytest.approx(1)


def test_results_travel_through_json_and_csv() -> None:
    result = Result("figure-4.iid", "key", {"seed": 1}, {"cells": [{"k": 1, "z": 0.5}, {"k": 2, "w": None}]}, {}, 1.5)
    assert Result.from_json(result.to_json()) == result
    assert to_csv(result.tables["cells"]) == b"k,z,w\n1,0.5,\n2,,\n"
    assert clean({"a": (np.float64(1), float("nan"), np.int64(3))}) == {"a": [1.0, None, 3]}


def test_seeds_differ_by_name_and_seed() -> None:
    seeds = {derive_seed(seed, name) for seed in range(20) for name in ("figure-1", "figure-2")}
    assert len(seeds) == 40
    assert all(0 <= seed < 2**63 for seed in seeds)
