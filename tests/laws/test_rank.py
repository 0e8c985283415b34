"""Rank decisions that rounding makes hard: the dependence is exact, and no fit may take it for a direction."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from tests.judge import judge
from tests.laws.tables import FloatArray, assert_exact, assert_predictions, fit_table, options_of

KINDS = ("gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample")


def _sketched(method: str, kind: str, seed: int) -> dict[str, Any]:
    return options_of(method, 2) | {"sketch": kind, "random_state": seed}


def _grid(rows: int, seed: int) -> FloatArray:
    """Normal numbers with ten digits after the point: sums with whole numbers are exact."""
    return np.round(1024 * np.random.default_rng(seed).normal(size=rows)) / 1024


@pytest.mark.parametrize("place", [64.0, 1024.0, 2.0**30])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "orthogonal"])
@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_equal_columns_at_unlike_places_in_sketches(method: str, kind: str, place: float) -> None:
    """Both get half of what one of them alone would get; an orthogonal sketch has other numbers with another column."""
    for seed in range(2):
        a = _grid(300, seed)
        y = a + np.random.default_rng(100 + seed).normal(size=300)
        alone = fit_table(a[:, None], y, **_sketched(method, kind, seed))
        both = fit_table(np.c_[a + place, a], y, **_sketched(method, kind, seed))
        assert both.record.rank == 2
        np.testing.assert_allclose(both.coefficients[:, 0], alone.coefficients[0, 0] / 2, rtol=1e-8)


@pytest.mark.parametrize("place", [64.0, 1024.0, 2.0**30])
@pytest.mark.parametrize("method", ["exact", "average"])
def test_equal_columns_at_unlike_places(method: str, place: float) -> None:
    a = _grid(300, 0)
    y = a + np.random.default_rng(1).normal(size=300)
    alone = fit_table(a[:, None], y, **options_of(method, 2))
    both = fit_table(np.c_[a + place, a], y, **options_of(method, 2))
    assert both.record.rank == 2
    np.testing.assert_allclose(both.coefficients[:, 0], alone.coefficients[0, 0] / 2, rtol=1e-9)


@pytest.mark.parametrize("place", [1.0, -1.0, 1e6])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_a_level_that_a_sketch_may_not_have_seen(method: str, kind: str, place: float) -> None:
    """One row differs: a sketch that does not have it knows nothing of the column, wherever zero is."""
    for seed in range(3):
        a, y = _grid(120, seed), np.random.default_rng(50 + seed).normal(size=120)
        rare = np.zeros(120)
        rare[7 * seed] = 1.0
        plain = fit_table(np.c_[a, rare], y, **_sketched(method, kind, seed))
        moved = fit_table(np.c_[a, rare + place], y, **_sketched(method, kind, seed))
        assert moved.record.rank == plain.record.rank
        size = max(1.0, float(np.abs(plain.coefficients).max()))
        np.testing.assert_allclose(moved.coefficients, plain.coefficients, rtol=0, atol=1e-8 * size)


@pytest.mark.parametrize("width", [3, 6])
def test_all_levels_with_weights(width: int) -> None:
    """Heavy rows of one level make its column nearly the intercept, and what rounding leaves of it looks like more."""
    for seed in range(150):
        generator = np.random.default_rng(seed)
        rows = width + int(generator.integers(1, 5))
        X = (generator.integers(0, width, rows)[:, None] == np.arange(width)).astype(np.float64)
        y, weights = generator.normal(size=rows), 10.0 ** generator.uniform(-3, 3, rows)
        model = fit_table(X, y, weights, method="exact")
        assert model.record.rank == judge(X, y, weights).rank


def test_rank_is_at_most_the_number_of_rows() -> None:
    for seed in range(150):
        generator = np.random.default_rng(seed)
        rows = int(generator.integers(2, 5))
        X = np.round(1024 * generator.normal(size=(rows, rows + int(generator.integers(0, 4)))))
        y, weights = generator.normal(size=rows), generator.gamma(1.0, size=rows) + 0.01
        for intercept in (False, True):
            model = fit_table(X, y, weights, method="exact", fit_intercept=intercept)
            assert model.record.rank == rows
            assert_predictions(model, X, y, y)


@pytest.mark.parametrize("move", [2.0**20, -(2.0**40), 2.0**53])
def test_units_do_not_change_with_the_place(move: float) -> None:
    """Spreads half-way between two powers of two (a variance of exactly 2): equal columns still share evenly."""
    a = 16 * np.tile([0.0, 1.0, 2.0, 3.0, 4.0], 20)
    b = _grid(100, 1)
    y = a / 16 + b + np.random.default_rng(0).normal(size=100)
    for X in (np.c_[a, b, a + move], np.c_[a + move, b, a], np.c_[a + move, b, a - move]):
        model = fit_table(X, y, method="exact")
        exact = assert_exact(model, X, y)
        np.testing.assert_allclose(model.coefficients[[0, 2], 0], float(exact.coefficients[1]) / 2, rtol=1e-9)


@pytest.mark.parametrize("first", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("method", ["exact", "average", "partition", "stack", "whole"])
def test_a_column_that_is_constant_in_its_first_rows(method: str, first: float) -> None:
    """What a column is measured from is decided before all of it was seen."""
    rows = 6000
    a, b = _grid(rows, 0), _grid(rows, 1)
    a[: rows // 5] = 0.0
    X = np.c_[a * 64 + first, b, a * 64]
    y = 3 + a + 2 * b
    model = fit_table(X, y, **options_of(method, 1 if method in ("average", "partition") else 3))
    assert model.record.rank == 3
    assert_predictions(model, X, y, y)


def test_standard_errors_are_finite_where_they_are_stated() -> None:
    a = _grid(200, 0)
    y = a + np.random.default_rng(1).normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PartsketchWarning)
        fit = ps.SketchedRegression("exact").fit(np.c_[a, a + 2.0**30, np.full(200, 7.0)], y)
    errors = fit.model_.inferences[0].standard_errors
    assert errors is not None
    assert np.isfinite(errors).all()
    # An aliased pair shares a coefficient, and its standard error: that of the column alone, halved.
    alone = ps.SketchedRegression("exact").fit(a[:, None], y).model_.inferences[0].standard_errors
    assert alone is not None
    np.testing.assert_allclose(errors[1:3], float(alone[1]) / 2, rtol=1e-8)
    assert errors[3] == 0


def test_columns_that_are_dependent_everywhere_do_not_depend_on_their_order() -> None:
    """Every partition lacks something of its own: what all rows lack is the sum of the three dummies, and no more."""
    levels, rare = np.eye(3)[np.arange(15) % 3], (np.arange(15) == 7).astype(float)
    levels[:5] = np.eye(3)[[0, 0, 0, 1, 1]]
    X = np.c_[levels, rare, _grid(15, 0)]
    y = _grid(15, 1)
    for order in ([0, 1, 2, 3, 4], [3, 2, 4, 1, 0], [4, 0, 3, 1, 2], [2, 3, 1, 0, 4]):
        model = fit_table(X[:, order], y, **options_of("average", 3))
        assert model.record.rank < 5
        last = max(order.index(dummy) for dummy in range(3))
        assert [name for name, _ in model.record.aliased] == [model.column_names[1 + last]], order


@pytest.mark.parametrize("kind", ["gaussian", "sparse_sign", "count_sketch"])
def test_a_rare_level_is_no_constant_wherever_it_lies(kind: str) -> None:
    """One row of sixty has another value: 2⁵⁰ + 1 and 2⁵⁰ are as far apart as 1 and 0.

    Sketches that multiply rows by a square root round 2⁵⁰ by a quarter of that.
    """
    rare, z = (np.arange(60) == 17).astype(float), _grid(60, 0)
    y = z + 4 * rare + _grid(60, 1)
    here, there = (fit_table(np.c_[rare + place, z], y, **_sketched("stack", kind, 1)) for place in (0.0, 2.0**50))
    assert there.record.rank == here.record.rank
    np.testing.assert_allclose(there.predict(np.c_[rare + 2.0**50, z]), here.predict(np.c_[rare, z]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_level_that_only_light_rows_have_is_still_one_of_all(seed: int) -> None:
    """Dummies add up to the ones; the last level has 1e-21 of the largest weight, and sums have a rounding of 1e-32."""
    generator = np.random.default_rng(seed)
    levels = np.array([0, 0, 1, 1, 0, 0, 2, *generator.integers(0, 3, 30)])
    weights = np.array([1.0, 2e-10, 1e-11, 5e-13, 3e-15, 3e-18, 3e-21, *10.0 ** generator.uniform(-200, -30, 30)])
    X = np.column_stack([generator.normal(size=(37, 2)), levels[:, None] == np.arange(3)])
    y = generator.normal(size=37)
    model = fit_table(X, y, weights, method="exact")
    assert model.record.rank == judge(X, y, weights).rank == 5


@pytest.mark.parametrize("seed", [3, 12, 28, 53])
def test_a_copy_is_not_zero_where_few_rows_outweigh_all(seed: int) -> None:
    """Rounding of heavy rows leaves nothing of the size of identifiers; the second of two was called zero."""
    generator = np.random.default_rng(seed)
    identifiers = 1e16 + 2 * np.arange(8.0)
    rare = (np.arange(8) == generator.integers(8)).astype(np.float64)
    weights = 10.0 ** generator.uniform(-200, 200, 8)
    model = fit_table(np.c_[identifiers, identifiers, rare], generator.normal(size=8), weights, method="exact")
    assert "x0" in dict(model.record.aliased)["x1"]
