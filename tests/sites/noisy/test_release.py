"""Files with a promise: what one row changes, what noise there is, what is refused, and what is not told."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kstest

import partsketch as ps
from partsketch import InputError, PartsketchWarning
from partsketch.engines.local import LocalEngine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy import mechanism
from partsketch.sites.noisy.bounds import measures_of
from partsketch.sites.noisy.products import Products, sum_products
from partsketch.summaries.noisy_summary import BESIDE_DIAGONAL, ON_DIAGONAL
from partsketch.theory.gaussian_mechanism import gaussian_scale
from tests.sites.noisy.files import BOUNDS, TRUTH, noisy, table


def products_of(rows: Any, engine: LocalEngine | None = None) -> Products:
    source = DataRequest(rows, "y", missing="drop").open(None, True)
    return sum_products(source, measures_of(source, BOUNDS), engine or LocalEngine())


def with_noise_of(sums: list[list[int]]) -> list[int]:
    """Return the whole numbers that get noise."""
    count = len(sums)
    return [(ON_DIAGONAL if i == j else BESIDE_DIAGONAL) * sums[i][j] for i in range(count) for j in range(i, count)]


ROWS = [
    {"a": 50.0, "b": 0.0, "y": 5.0},
    {"a": 100.0, "b": 4.0, "y": 30.0},
    {"a": 0.0, "b": -4.0, "y": -20.0},
    {"a": 1e300, "b": -1e300, "y": 1e300},
    {"a": 60.0, "b": 2.3, "y": -1e16},
    {"a": -5e-324, "b": 5e-324, "y": 5e-324},
    # Features just at the norm where they are clipped, and a target at its bound: nothing moves the numbers further.
    {"a": 50 + 10 * math.sqrt(1.1**2 * 3 - 1), "b": 0.0, "y": 30.0},
]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_moves_the_numbers_by_no_more_than_the_sensitivity(row: dict[str, float]) -> None:
    """In whole numbers, so that there is no rounding to be afraid of; the largest row comes close to it."""
    before = table(300)
    after = pa.concat_tables([before, pa.table({name: [value] for name, value in row.items()})])
    moved = [
        first - second
        for first, second in zip(
            with_noise_of(products_of(after).sums), with_noise_of(products_of(before).sums), strict=True
        )
    ]
    squares = sum(value * value for value in moved)
    assert squares <= mechanism.SENSITIVITY**2
    if row == ROWS[-1]:
        assert squares > 0.99 * mechanism.SENSITIVITY**2


def test_sums_are_whole_numbers_whatever_the_order() -> None:
    """Blocks, threads and the order of rows change nothing, to the last of 60 bits."""
    rows = table(10_000)
    sums = products_of(rows).sums
    order = np.random.default_rng(1).permutation(10_000)
    assert products_of(rows.take(pa.array(order))).sums == sums
    assert products_of(rows, LocalEngine(1)).sums == sums
    halves = [products_of(part).sums for part in (rows.slice(0, 137), rows.slice(137))]
    assert [[a + b for a, b in zip(*lines, strict=True)] for lines in zip(*halves, strict=True)] == sums


def test_without_noise_and_clipping_it_is_least_squares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are rounded to a millionth of their norm, which moves coefficients by about as much."""
    monkeypatch.setattr(mechanism, "draw_noise", lambda count, epsilon, delta: [0] * count)
    rows = table(5000)
    wide = {"a": {"lower": 0, "upper": 100, "spread": 40}, "b": {"lower": -9, "upper": 9, "spread": 4}, "y": (-90, 90)}
    model = ps.combine(noisy(tmp_path, rows, bounds=wide, epsilon=50.0))
    exact = ps.fit(rows, "y")
    np.testing.assert_allclose(model.coefficients, exact.coefficients, rtol=1e-4)
    np.testing.assert_allclose(model.intercept, exact.intercept, rtol=1e-3)
    assert model.record.row_count == 5000


def test_noise_is_that_of_the_promise() -> None:
    """10,000 numbers of OpenDP, which takes no seed: either line fails once in ten million good runs."""
    drawn = np.array(mechanism.draw_noise(10_000, 1.0, 1e-6), dtype=np.float64)
    scale = gaussian_scale(1.0, 1e-6) * mechanism.SENSITIVITY
    assert drawn.std() == pytest.approx(scale, rel=0.04)
    assert kstest(drawn / scale, "norm").pvalue > 1e-7


def test_the_file_holds_noise_of_the_stated_size(tmp_path: Path) -> None:
    """Ten numbers on and beside the diagonal of 40 files of the same rows, less their mean."""
    rows = table(200)
    monkey = [noisy(tmp_path, rows, label=str(number)) for number in range(40)]
    products = np.stack([summary.products for summary in monkey])
    deviations = products.std(axis=0, ddof=1) / monkey[0].promise.noise
    on, beside = np.diagonal(deviations), deviations[np.triu_indices(4, 1)]
    # Mean squares of 39 × 4 and 39 × 6 degrees of freedom: once in 50 million good runs they are further away.
    assert np.mean(on**2) == pytest.approx(1.0, abs=0.75)
    assert np.mean(beside**2) == pytest.approx(0.5, abs=0.3)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"weights": "b"}, "leave the weights out"),
        ({"encode": True}, "give the levels that are publicly known"),
        ({"n_partitions": 2}, "a promise is for all rows together"),
        ({"partition_by": "b"}, "a promise is for all rows together"),
        ({"fit_intercept": False}, "the ones are always in"),
        ({"sketch": "triangular"}, "a kind of its own"),
        ({"sketch_size": 20}, "no such size"),
        ({"private": True}, "private by itself"),
        ({"random_state": 1}, "takes no seed"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": "1"}, "epsilon is '1'"),
        ({"delta": 2.0}, "delta is 2.0"),
        ({"budget": -1}, "budget is -1"),
        ({"budget": math.inf}, "budget is inf"),
        ({"budget": math.nan}, "budget is nan"),
        ({"bounds": None}, "needs public bounds"),
        ({"bounds": 7}, "a file or a mapping"),
        ({"bounds": {"a": (0, 100), "b": (-4, 4)}}, "no bounds of column 'y'"),
        ({"bounds": {**BOUNDS, "z": (0, 1)}}, "bounds of 'z'"),
        ({"bounds": {**BOUNDS, "b": (4, -4)}}, "the first must be the smaller"),
        ({"bounds": {**BOUNDS, "b": (0, 0)}}, "the first must be the smaller"),
        ({"bounds": {**BOUNDS, "b": (0, float("inf"))}}, "give a number"),
        ({"bounds": {**BOUNDS, "b": (0, float("nan"))}}, "give a number"),
        ({"bounds": {**BOUNDS, "b": (0, True)}}, "give a number"),
        ({"bounds": {**BOUNDS, "b": "0-1"}}, "neither two numbers"),
        ({"bounds": {**BOUNDS, "b": {"lower": 0}}}, "neither two numbers"),
        ({"bounds": {**BOUNDS, "b": {"lower": 0, "upper": 1, "mean": 1}}}, "neither two numbers"),
        ({"bounds": {**BOUNDS, "b": {"lower": 0, "upper": 1, "centre": 2}}}, "not between its bounds"),
        ({"bounds": {**BOUNDS, "b": {"lower": 0, "upper": 1, "spread": 0}}}, "not between 0 and"),
        ({"bounds": {**BOUNDS, "b": {"lower": 0, "upper": 1, "spread": 1e-300}}}, "not between 0 and"),
    ],
)
def test_what_does_not_go_with_a_promise_is_refused(tmp_path: Path, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        noisy(tmp_path, table(50), **keywords)
    assert not (tmp_path / "ledger.jsonl").exists()


@pytest.mark.parametrize("read", [pa.Table.combine_chunks, pa.Table.to_reader])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_refused_before_a_release(tmp_path: Path, value: float, read: Any) -> None:
    """Bounds would move an infinite value, and a row that is none would count as zeros: both without a word."""
    values = table(5000)["b"].to_numpy().copy()
    values[4500] = value
    with pytest.raises(InputError, match=r"'b'.*row 4500"):
        noisy(tmp_path, read(table(5000).set_column(1, "b", pa.array(values))))
    assert not (tmp_path / "ledger.jsonl").exists()


@pytest.mark.parametrize("keyword", ["bounds", "ledger", "budget"])
def test_what_goes_with_a_promise_needs_one(keyword: str) -> None:
    with pytest.raises(InputError, match=f"{keyword} goes with a promise only"):
        ps.sketch(table(100), "y", **{keyword: "x"})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("formula", "needed"),
    [
        ("y ~ bs(a, df=4) + b", "bs(a, df=4)"),
        ("y ~ center(a) + b", "center(a)"),
        ("y ~ scale(b)", "scale(b)"),
        ("y ~ poly(a, 2)", "poly(a, 2)"),
        ("y ~ C(g) + a", "C(g)"),
    ],
)
def test_what_a_formula_finds_of_the_rows_is_refused(tmp_path: Path, formula: str, needed: str) -> None:
    rows = table(200).append_column("g", pa.array(["u", "v"] * 100))
    with pytest.raises(InputError, match="found of the rows") as caught:
        ps.sketch(rows, formula, epsilon=1.0, bounds={}, ledger=tmp_path / "ledger.jsonl")
    assert repr(needed) in str(caught.value)


def test_a_formula_with_given_levels_is_released(tmp_path: Path) -> None:
    rows = table(3000).append_column("g", pa.array(["u", "v", "v"] * 1000))
    bounds = {
        "C(g)[T.v]": (0, 1),
        "log(a + 1)": {"lower": 0, "upper": 5, "centre": 4, "spread": 0.25},
        "y": BOUNDS["y"],
    }
    ledger = tmp_path / "ledger.jsonl"
    formula = "y ~ C(g) + log(a + 1)"
    levels = {"C(g)": ["u", "v"]}
    # At ε = 10 the loss has 30 standard deviations of its noise, where 8 are enough to state its share without a doubt.
    summary = ps.sketch(rows, formula, epsilon=10.0, bounds=bounds, levels=levels, ledger=ledger)
    model = ps.combine(ps.NoisySummary.from_bytes(summary.to_bytes()))
    assert model.feature_names == ("C(g)[T.v]", "log(a + 1)")
    assert model.predict(rows.slice(0, 5)).shape == (5,)


def test_levels_that_are_given_need_no_bounds(tmp_path: Path) -> None:
    rows = table(3000).append_column("g", pa.array(["u", "v", "v"] * 1000))
    summary = noisy(tmp_path, rows, levels={"g": ["u", "v", "w"]})
    assert summary.columns == ("(intercept)", "a", "b", "g=v", "g=w", "y")
    assert (summary.bounds[2].lower, summary.bounds[2].upper, summary.bounds[2].spread) == (0, 1, 0.5)


def test_the_file_tells_neither_rows_nor_what_was_dropped(tmp_path: Path) -> None:
    """Two tables of which one has rows with missing values give headers that differ in the random name alone."""
    rows = table(1000)
    holes = pa.concat_tables([rows, pa.table({"a": [None, 3.0], "b": [1.0, None], "y": [1.0, 2.0]}, rows.schema)])
    headers = []
    for number, given in enumerate((rows, holes)):
        data = noisy(tmp_path, given, missing="drop", label=f"{number}").to_bytes()
        header = json.loads(data[16 : 16 + int.from_bytes(data[12:16], "little")])
        headers.append({key: value for key, value in header.items() if key not in ("release", "label")})
    assert headers[0] == headers[1]
    assert set(headers[0]) == {
        "bounds", "columns", "design", "drop_first", "kind", "levels", "mechanism", "neighbours", "promise", "site",
        "targets",
    }  # fmt: skip


def test_bounds_of_the_rows_themselves_are_suspected(tmp_path: Path) -> None:
    rows = table(500)
    largest = float(np.max(rows["b"].to_numpy()))
    with pytest.warns(PartsketchWarning, match="column 'b' are the largest value of these rows"):
        suspected = noisy(tmp_path, rows, bounds={**BOUNDS, "b": (-4, largest)})
    assert b"largest value" not in suspected.to_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noisy(tmp_path, rows)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"centre": np.mean}, "mean"),
        ({"centre": lambda x: round(float(np.mean(x)), 2)}, "mean"),
        ({"spread": np.std}, "standard deviation"),
        ({"spread": lambda x: round(float(np.std(x, ddof=1)), 3)}, "standard deviation"),
        ({"lower": lambda x: round(float(np.min(x)), 4)}, "smallest value"),
        # Of one digit half the tables agree by chance.
        ({"centre": lambda x: round(float(np.mean(x)), 1)}, ""),
        ({"lower": lambda x: math.floor(np.min(x)), "upper": lambda x: math.ceil(np.max(x))}, ""),
    ],
)
def test_centres_and_spreads_of_the_rows_are_suspected(
    tmp_path: Path, given: dict[str, Callable[[Any], float]], word: str
) -> None:
    """A site that computes its bounds computes the mean as well, and rounds both."""
    rows = table(500)
    bounds = {"lower": -4, "upper": 4} | {name: float(made(rows["b"].to_numpy())) for name, made in given.items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        noisy(tmp_path, rows, bounds={**BOUNDS, "b": bounds})
    told = [str(warning.message) for warning in caught if "of these rows" in str(warning.message)]
    assert [f"column 'b' are the {word} of these rows" in sentence for sentence in told] == [True] * bool(word)


def test_it_is_a_model_of_the_truth(tmp_path: Path) -> None:
    """At ε = 5 the loss has 25 ± 1 standard deviations of its noise: no file is near the 8 where a share is doubted."""
    summary = noisy(tmp_path, table(50_000), epsilon=5.0)
    model = ps.combine(summary)
    errors = model.standard_errors[1:]
    assert np.all(np.abs(model.coefficients[:, 0] - TRUTH) < 5 * errors)
    assert np.all(errors < [0.01, 0.05])
    assert model.certificate.kind == "approximate"
    low, high = model.certificate.interval(0.95)
    assert 0 < low < high
    assert "Privacy cost about" in str(model.certificate)
    model.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.conf_int(), model.conf_int())
    assert again.predict(table(3)).shape == (3,)
