"""Where coefficients nearly cancel, a fit says what doubles can no longer hold."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch.common.linalg.solve import solve_least_squares
from tests.judge import judge

FloatArray = NDArray[np.float64]


def far_columns(seed: int, location: float, rows: int = 5, columns: int = 4) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns)) + location
    return X, generator.normal(size=rows)


def fitted(X: FloatArray, y: FloatArray, weights: FloatArray | None = None, intercept: bool = False) -> ps.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ps.SketchedRegression("exact", fit_intercept=intercept).fit(X, y, sample_weight=weights).model_


def test_a_fit_that_says_it_loses_nothing_loses_nothing() -> None:
    """Sixty tables of 3 columns around 1e8, 1e10 or 1e12 in eight rows of unlike weights: some must not say so."""
    silent, told = 0, 0
    for seed in range(60):
        X, y = far_columns(seed, (1e8, 1e10, 1e12)[seed % 3], rows=8, columns=3)
        weights = 10.0 ** np.random.default_rng(seed + 1000).uniform(-3, 3, size=len(y))
        model, exact = fitted(X, y, weights), judge(X, y, weights, intercept=False)
        if model.record.rank < exact.rank:
            assert model.certificates[0].kind == "unavailable"
            continue
        if model.certificates[0].kind == "unavailable":
            told += 1
            continue
        silent += 1
        # Rounding moves fitted values by a thousandth of the residuals, which adds twice that to their squares.
        assert float(exact.loss_of(model.predict(X)) / exact.loss) < 1 + 2e-3
    assert silent >= 3
    assert told >= 3


def test_a_column_that_is_called_determined_may_have_explained_more() -> None:
    """Twenty tables of two columns of which doubles tell 2e-14 apart, which is below the tolerance and not nothing."""
    for seed in range(20):
        X, y = far_columns(seed, 5e13, rows=8, columns=2)
        model, exact = fitted(X, y + X[:, 0] - X[:, 1]), judge(X, y + X[:, 0] - X[:, 1], intercept=False)
        assert [name for name, _ in model.record.aliased] == ["x1"]
        assert model.certificates[0].kind == "unavailable"
        assert "'x1'" in model.certificates[0].reason
        assert float(exact.loss_of(model.predict(X)) / exact.loss) > 1.01


def test_a_column_of_which_sums_of_squares_hide_what_is_left_is_told() -> None:
    """Twenty tables around 1e12, where doubles are 1e-4 apart, with two columns that differ by as much."""
    lost = 0
    for seed in range(20):
        X, y = far_columns(seed, 1e12, rows=20, columns=3)
        X[:, 1] = X[:, 0] + 1e-4 * np.random.default_rng(seed).normal(size=20)
        model, exact = fitted(X, y), judge(X, y, intercept=False)
        assert [name for name, _ in model.record.aliased] == ["x1"]
        assert model.certificates[0].kind == "unavailable"
        assert "others nearly determine ('x1')" in model.certificates[0].reason
        lost += float(exact.loss_of(model.predict(X)) / exact.loss) > 1.01
    assert lost > 5


def test_roots_of_weights_cost_no_digits_of_the_loss() -> None:
    """Columns around 1e12 times roots of weights are rounded, each otherwise; the loss was 1e-5 below its minimum."""
    for seed in range(10):
        X, y = far_columns(seed, 1e12, rows=20, columns=3)
        weights = np.random.default_rng(seed).gamma(1.0, size=20) + 0.01
        model, exact = fitted(X, y, weights), judge(X, y, weights, intercept=False)
        # Twice the digits leave 1e-32 of 1e12 squared, times a few.
        assert model.inferences[0].noise_variance == pytest.approx(float(exact.loss) / 17, rel=1e-7)


def test_the_loss_stated_is_that_of_the_coefficients() -> None:
    """A column that others nearly determine has a coefficient, and what they leave of it counts."""
    generator = np.random.default_rng(4)
    x, e, y = generator.normal(size=(3, 50))
    rows = np.column_stack([np.ones(50), x, x + 5e-14 * e, y])
    solution = solve_least_squares(rows, ("i", "a", "b"), free_columns=1, low=np.zeros_like(rows))
    assert [alias.column for alias in solution.aliased] == ["b"]
    least = judge(rows[:, 1:3], y)
    assert solution.residual_sums[0] >= float(least.loss)
    share = 1 - float(least.loss) / solution.residual_sums[0]
    assert share > 1e-3
    assert solution.avoidable is not None
    assert solution.avoidable[0] == pytest.approx(share, rel=1e-3)


def test_the_loss_stated_counts_what_is_left_of_a_dependent_column() -> None:
    """Half of each of two columns that differ by 2e-14 of their size, which is as much as the noise."""
    X, noise = far_columns(2, 5e13, rows=12, columns=2)
    rows = np.column_stack([X, X[:, 0] + noise])
    solution = solve_least_squares(rows, ("a", "b"), low=np.zeros_like(rows))
    assert [alias.column for alias in solution.aliased] == ["b"]
    exact = [[Fraction(value) for value in row] for row in rows.tolist()]
    a, b = (Fraction(float(value)) for value in solution.coefficients[:, 0])
    loss = float(sum((y - a * first - b * second) ** 2 for first, second, y in exact))
    # Sums of products with twice the digits know squares to 1e-32 of those of the columns, which are 1e28.
    assert solution.residual_sums[0] == pytest.approx(loss, rel=1e-3)
    kept = judge(X[:, :1], rows[:, 2], intercept=False)
    assert loss > 1.01 * float(kept.loss) or loss < 0.99 * float(kept.loss)


@pytest.mark.parametrize("twin", [0.0, 1e-17])
def test_twins_lose_nothing(twin: float) -> None:
    generator = np.random.default_rng(5)
    x = generator.normal(size=(40, 2))
    X = np.column_stack([x, x[:, 0] + x[:, 1] * (1 + twin)])
    for target in (x[:, 0] + generator.normal(size=40), x @ [1.0, 2.0]):
        for intercept in (True, False):
            model = fitted(X, target, intercept=intercept)
            assert len(model.record.aliased) == 1
            assert model.certificates[0].kind == "exact"


@pytest.mark.parametrize("location", [0.0, 1e4, 1e12])
def test_an_intercept_leaves_nothing_to_cancel(location: float) -> None:
    X, y = far_columns(3, location, rows=30)
    assert fitted(X, y, intercept=True).certificates[0].kind == "exact"


def test_loss_and_errors_are_withheld_where_rounding_hides_the_residuals() -> None:
    X, y = far_columns(1, 1e12)
    with pytest.warns(UserWarning, match="coefficients nearly cancel"):
        model = ps.SketchedRegression("exact", fit_intercept=False).fit(X, y * 1e-3 + X[:, 0] - X[:, 1]).model_
    assert model.certificates[0].kind == "unavailable"
    assert model.inferences[0].standard_errors is None
    assert "fit an intercept" in model.inferences[0].reason


def test_usual_fits_are_not_touched() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(200, 3))
    near = np.column_stack([x, x[:, 0] + 1e-7 * generator.normal(size=200)])
    y = x @ [1.0, 2.0, 3.0]
    for target in (y, y + generator.normal(size=200)):
        for X in (x, near, x + 100.0):
            assert fitted(X, target).certificates[0].kind == "exact"


@pytest.mark.parametrize("intercept", [True, False])
def test_predictions_that_doubles_do_not_keep_are_told(intercept: bool) -> None:
    """Columns that differ by 1e-9: the judge's coefficients, rounded once, predict no better."""
    generator = np.random.default_rng(6)
    x, z, e, noise = generator.normal(size=(4, 60))
    y = x + z + noise
    for difference, is_told in ((1e-9, True), (1e-5, False)):
        X = np.column_stack([x, z, x + difference * e])
        model, exact = fitted(X, y, intercept=intercept), judge(X, y, intercept=intercept)
        told = [sentence for sentence in model.record.warnings if "nearly cancel" in sentence]
        assert bool(told) == is_told
        assert not told or "those of 'x0' and 'x2'" in told[0]
        rounded = np.array([float(value) for value in exact.coefficients])
        best = X @ rounded[intercept:] + (rounded[0] if intercept else 0.0)
        error, least = (float(np.abs(found - exact.fitted).max()) for found in (model.predict(X), best))
        assert (error > 1e-9 * float(np.std(y))) == is_told
        assert error < 5 * least


def test_perfect_fits_of_least_norm_lose_nothing() -> None:
    """Forty tables of fewer rows than columns, of unlike units: coefficients of least norm reproduce the target."""
    for seed in range(40):
        generator = np.random.default_rng(seed)
        rows = int(generator.integers(2, 8))
        X = generator.normal(size=(rows, rows + 2)) * 10.0 ** generator.integers(-3, 7, rows + 2)
        model = fitted(X, generator.normal(size=rows), intercept=bool(seed % 2))
        assert model.certificates[0].kind == "exact"
