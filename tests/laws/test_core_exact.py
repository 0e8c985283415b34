"""The exact method against NumPy, statsmodels and scikit-learn, on tame and on hostile data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.linear_model import LinearRegression

from partsketch import LocalEngine, PartsketchWarning, SketchedRegression
from partsketch.fitting.fit import Fit, fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sources import array_source

FloatArray = NDArray[np.float64]


def fitted(X: Any, y: Any, weights: Any = None, intercept: bool = True, method: str = "exact", k: int = 3) -> Fit:
    options = FitOptions(
        method=method, n_partitions=k, partition_by="order", remainder="spread", sketch="gaussian",
        sketch_size=None, fit_intercept=intercept, seed=0,
    )  # fmt: skip
    return fit_source(array_source(X, y, weights), options, LocalEngine(2))


def with_ones(X: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(len(X)), X])


def centred_fit(X: FloatArray, y: FloatArray) -> FloatArray:
    """Coefficients without the intercept by gelsd on centred, scaled columns: the most careful plain way."""
    centred = X - X.mean(axis=0)
    scale = np.linalg.norm(centred, axis=0)
    return np.asarray(linalg.lstsq(centred / scale, y - y.mean(), cond=1e-14)[0] / scale)


def tame(rows: int = 5000, columns: int = 6, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, X @ np.arange(1.0, columns + 1) + 3.0 + generator.normal(size=rows)


def least_norm(X: FloatArray, y: FloatArray, intercept: bool = True) -> LinearRegression:
    """The solution of least norm, every column measured in a power of two close to its spread, by scikit-learn."""
    spread = np.sqrt(np.mean((X - X.mean(axis=0) * intercept) ** 2, axis=0))
    # A constant column has no spread; its unit does not matter.
    unit = 2.0 ** np.floor(np.log2(np.where(spread > 1e-12 * np.abs(X).max(axis=0), spread, 1.0)) + 0.3)
    reference = LinearRegression(fit_intercept=intercept, tol=1e-13).fit(X / unit, y)
    reference.coef_ = reference.coef_ / unit
    return reference


def test_agrees_with_lstsq_and_statsmodels() -> None:
    X, y = tame()
    fit = fitted(X, y)
    expected = np.linalg.lstsq(with_ones(X), y, rcond=None)[0]
    np.testing.assert_allclose(fit.combination.coefficients[:, 0], expected, rtol=1e-10)
    ols = sm.OLS(y, with_ones(X)).fit()
    np.testing.assert_allclose(fit.combination.coefficients[:, 0], ols.params, rtol=1e-10)
    (solution,) = fit.combination.solutions
    assert solution.residual_sums[0] == pytest.approx(ols.ssr, rel=1e-10)
    scatter = solution.inverse_root @ solution.inverse_root.T
    np.testing.assert_allclose(scatter, ols.normalized_cov_params, rtol=0, atol=1e-10 * scatter.max())


def test_agrees_with_weighted_least_squares() -> None:
    X, y = tame()
    weights = np.random.default_rng(1).gamma(1.0, size=len(y))
    weights[::10] = 0.0
    fit = fitted(X, y, weights)
    wls = sm.WLS(y, with_ones(X), weights).fit()
    np.testing.assert_allclose(fit.combination.coefficients[:, 0], wls.params, rtol=1e-10)
    assert fit.combination.solutions[0].residual_sums[0] == pytest.approx(wls.ssr, rel=1e-10)
    assert fit.model.record.weight_sum == pytest.approx(weights.sum(), rel=1e-12)


def test_whole_weights_are_repeated_rows() -> None:
    X, y = tame(400)
    counts = np.random.default_rng(2).integers(0, 4, 400)
    weighted = fitted(X, y, counts).combination.coefficients
    repeated = fitted(np.repeat(X, counts, axis=0), np.repeat(y, counts)).combination.coefficients
    np.testing.assert_allclose(weighted, repeated, rtol=1e-11)


@pytest.mark.parametrize("intercept", [False, True])
def test_rotated_condition_of_a_hundred_million(intercept: bool) -> None:
    """No column is suspicious on its own: singular values fall from 1 to 1e-8 in a rotated basis."""
    generator = np.random.default_rng(3)
    rotation, other = (np.linalg.qr(generator.normal(size=(6, 6)))[0] for _ in range(2))
    X = generator.normal(size=(150_000, 6)) @ rotation * np.logspace(0, -8, 6) @ other.T
    y = X @ np.ones(6) + 1e-3 * generator.normal(size=150_000)
    fit = fitted(X, y, intercept=intercept)
    matrix = with_ones(X) if intercept else X
    expected = linalg.lstsq(matrix, y, lapack_driver="gelsd", cond=1e-14)[0]
    got = fit.combination.coefficients[:, 0]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(matrix @ got, matrix @ expected, rtol=0, atol=1e-10)
    assert fit.model.record.rank == matrix.shape[1]
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    assert fit.model.record.condition == pytest.approx(np.linalg.cond(scaled), rel=1e-3)


def test_a_million_rows_of_single_precision() -> None:
    """Computed in double precision: as good as converting the rows first."""
    generator = np.random.default_rng(4)
    X = generator.normal(size=(1_000_000, 5)).astype(np.float32) + np.float32(100.0)
    y = (X @ np.arange(1, 6, dtype=np.float32) + generator.normal(size=1_000_000)).astype(np.float32)
    got = fitted(X, y).combination.coefficients[:, 0]
    double = X.astype(np.float64)
    expected = centred_fit(double, y.astype(np.float64))
    np.testing.assert_allclose(got[1:], expected, rtol=1e-10)
    assert got[0] == pytest.approx(float(y.astype(np.float64).mean() - double.mean(axis=0) @ expected), rel=1e-8)


@pytest.mark.parametrize(("mean", "tolerance"), [(1e4, 1e-11), (1e7, 1e-8), (1e9, 1e-6), (1e10, 1e-5)])
def test_huge_column_means(mean: float, tolerance: float) -> None:
    """A mean of 10^e costs e of sixteen digits, twice in the worst case for the intercept, once for the others."""
    X, y = tame(100_000)
    moved = X + mean * np.array([1, -1, 1, 1, -1, 1])
    got = fitted(moved, y).combination.coefficients[1:, 0]
    np.testing.assert_allclose(got, centred_fit(moved, y), rtol=tolerance)


def test_widely_different_column_scales() -> None:
    X, y = tame(100_000)
    units = 10.0 ** np.array([-30, -12, 0, 5, 12, 30])
    fit = fitted(X * units, y)
    plain = fitted(X, y)
    np.testing.assert_allclose(
        fit.combination.coefficients[1:, 0] * units, plain.combination.coefficients[1:, 0], rtol=1e-11
    )
    assert fit.model.record.rank == 7
    assert fit.model.record.condition == pytest.approx(plain.model.record.condition, rel=1e-9)


@pytest.mark.parametrize("direction", [1, -1])
def test_rows_that_grow_or_shrink_by_twelve_orders(direction: int) -> None:
    X, y = tame(100_000)
    growth = np.geomspace(1e-6, 1e6, 100_000)[::direction]
    got = fitted(X * growth[:, None], y * growth, intercept=False).combination.coefficients[:, 0]
    expected = linalg.lstsq(X * growth[:, None], y * growth)[0]
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_weights_over_twenty_orders() -> None:
    """Orders of weight are half orders of scale: heavy rows decide, light ones do no harm."""
    X, y = tame(50_000)
    weights = np.geomspace(1e-10, 1e10, 50_000)
    got = fitted(X, y, weights).combination.coefficients[:, 0]
    root = np.sqrt(weights)
    expected = linalg.lstsq(with_ones(X) * root[:, None], y * root)[0]
    np.testing.assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize("from_row", [70_000, 99_990, 99_999])
def test_columns_that_are_zero_until_late(from_row: int) -> None:
    X, y = tame(100_000)
    X[:from_row, 2] = 0.0
    X[:from_row, 4] *= 1e-3
    fit = fitted(X, y)
    expected = linalg.lstsq(with_ones(X), y, cond=1e-14)[0]
    np.testing.assert_allclose(with_ones(X) @ fit.combination.coefficients[:, 0], with_ones(X) @ expected, atol=1e-9)
    np.testing.assert_allclose(fit.combination.coefficients[:, 0], expected, rtol=1e-8)
    assert fit.model.record.rank == 7


@pytest.mark.parametrize("change", ["collinear later", "collinear first", "scale", "scale and collinear"])
def test_data_that_change_their_nature_in_the_middle(change: str) -> None:
    """Rows at which the plain Gram matrix must be left, in either half, in several segments."""
    X, y = tame(150_000)
    half = slice(75_000, None) if change != "collinear first" else slice(0, 75_000)
    if "scale" in change:
        X[half] *= 1e6
    if "collinear" in change:
        X[half, 1] = X[half, 0] + 1e-7 * X[half, 1]
    matrix = with_ones(X)
    scale = np.linalg.norm(matrix, axis=0)
    expected = linalg.lstsq(matrix / scale, y, cond=1e-14)[0] / scale
    got = fitted(X, y).combination.coefficients[:, 0]
    fits = matrix @ expected
    np.testing.assert_allclose(matrix @ got, fits, rtol=0, atol=1e-8 * np.abs(fits).max())
    rest = np.delete(np.arange(7), [1, 2])
    np.testing.assert_allclose(got[rest], expected[rest], rtol=1e-7)


def _dependent(rows: int) -> tuple[FloatArray, FloatArray]:
    X, y = tame(rows)
    X[:, 3] = 2 * X[:, 0] - X[:, 1]
    X[:, 5] = 7.0
    return X, y


@pytest.mark.parametrize("rows", [50, 5000, 200_000])
def test_dependent_columns(rows: int) -> None:
    """Rank, names of the aliased columns, least norm in units of the spreads, and the same fitted values."""
    X, y = _dependent(rows)
    fit = fitted(X, y)
    assert fit.model.record.rank == 5
    assert dict(fit.model.record.aliased) == {"x3": ("x0", "x1"), "x5": ("(intercept)",)}
    assert any("'x3'" in warning and "'x0'" in warning for warning in fit.model.record.warnings)
    assert any("'x5'" in warning and "the intercept" in warning for warning in fit.model.record.warnings)
    reference = least_norm(X, y)
    np.testing.assert_allclose(fit.model.coefficients[:, 0], reference.coef_, rtol=0, atol=1e-9)
    assert fit.model.intercept[0] == pytest.approx(reference.intercept_, abs=1e-9)


def test_one_hot_columns_and_an_intercept_are_dependent() -> None:
    generator = np.random.default_rng(5)
    levels = generator.integers(0, 5, 100_000)
    X = np.column_stack([(levels[:, None] == np.arange(5)).astype(float), generator.normal(size=100_000)])
    y = levels + generator.normal(size=100_000)
    fit = fitted(X, y)
    assert fit.model.record.rank == 6
    assert [column for column, _ in fit.model.record.aliased] == ["x4"]
    reference = LinearRegression().fit(X, y)
    np.testing.assert_allclose(fit.model.coefficients[:, 0], reference.coef_, rtol=0, atol=1e-9)


def test_nearly_dependent_columns_are_kept() -> None:
    X, y = tame(100_000)
    generator = np.random.default_rng(6)
    X[:, 3] = X[:, 0] + 1e-9 * generator.normal(size=100_000)
    assert fitted(X, y).model.record.rank == 7


@pytest.mark.parametrize("rows", [1, 2, 4, 6])
@pytest.mark.parametrize("intercept", [False, True])
def test_fewer_rows_than_columns(rows: int, intercept: bool) -> None:
    X, y = tame(rows)
    fit = fitted(X, y, intercept=intercept)
    reference = least_norm(X, y, intercept)
    np.testing.assert_allclose(fit.model.coefficients[:, 0], reference.coef_, rtol=0, atol=1e-11)
    np.testing.assert_allclose(X @ fit.model.coefficients[:, 0] + fit.model.intercept[0], y, rtol=1e-11)
    assert fit.model.record.rank == min(rows, 6 + intercept)


def test_no_features_is_the_mean() -> None:
    y = np.random.default_rng(7).normal(size=(1000, 2))
    weights = np.random.default_rng(8).random(1000)
    fit = fitted(np.empty((1000, 0)), y, weights)
    np.testing.assert_allclose(fit.model.intercept, np.average(y, axis=0, weights=weights), rtol=1e-12)
    assert fit.model.coefficients.shape == (0, 2)


def test_one_column_without_intercept() -> None:
    x, y = np.arange(1.0, 11.0)[:, None], np.arange(1.0, 11.0) ** 2
    fit = fitted(x, y, intercept=False)
    assert fit.model.coefficients[0, 0] == pytest.approx(float(x[:, 0] @ y / (x[:, 0] @ x[:, 0])), rel=1e-14)
    assert fit.model.intercept.tolist() == [0.0]


def test_several_targets_are_fitted_as_if_each_were_alone() -> None:
    X, _ = tame(3000)
    Y = np.random.default_rng(9).normal(size=(3000, 4)) * [1, 1e6, 1e-6, 0]
    together = fitted(X, Y).combination.coefficients
    for target in range(4):
        alone = fitted(X, Y[:, target]).combination.coefficients[:, 0]
        np.testing.assert_allclose(together[:, target], alone, rtol=1e-9, atol=1e-12 * np.abs(Y[:, target]).max())


def test_small_residuals_are_seen() -> None:
    """R² = 1 − 1e-18: the residual sum of squares still has its leading digits, though y has norm 1e3."""
    generator = np.random.default_rng(10)
    X = generator.normal(size=(20_000, 4))
    noise = 1e-9 * generator.normal(size=20_000)
    y = X @ np.ones(4) + noise
    basis = np.linalg.qr(with_ones(X))[0]
    expected = float(np.sum((noise - basis @ (basis.T @ noise)) ** 2))
    assert fitted(X, y).combination.solutions[0].residual_sums[0] == pytest.approx(expected, rel=1e-5)


@settings(max_examples=80)
@given(
    rows=st.integers(1, 80),
    columns=st.integers(1, 8),
    targets=st.integers(1, 3),
    rank=st.integers(1, 8),
    intercept=st.booleans(),
    weighted=st.booleans(),
    form=st.sampled_from(["C", "F", "csr", "csc", "float32", "int8"]),
    seed=st.integers(0, 2**32),
)
def test_fitted_values_are_those_of_lstsq(
    rows: int, columns: int, targets: int, rank: int, intercept: bool, weighted: bool, form: str, seed: int
) -> None:
    """Whole numbers of any rank, any form, any weights: the weighted fitted values are unique and agree."""
    generator = np.random.default_rng(seed)
    whole = generator.integers(-2, 3, size=(rows, rank)) @ generator.integers(-2, 3, size=(rank, columns))
    dense = whole.astype(np.float64)
    forms: dict[str, Any] = {
        "C": dense,
        "F": np.asfortranarray(dense),
        "csr": sparse.csr_array(dense),
        "csc": sparse.csc_array(dense),
        "float32": dense.astype(np.float32),
        "int8": whole.astype(np.int8),
    }
    y = generator.normal(size=(rows, targets))
    weights = generator.choice([0.0, 0.5, 1.0, 3.0], size=rows) if weighted else None
    if weights is not None and not weights.any():
        weights[0] = 1.0
    fit = fitted(forms[form], y, weights, intercept)
    root = np.sqrt(weights if weights is not None else np.ones(rows))
    matrix = (with_ones(dense) if intercept else dense) * root[:, None]
    expected = matrix @ np.linalg.lstsq(matrix, y * root[:, None], rcond=1e-10)[0]
    np.testing.assert_allclose(matrix @ fit.combination.coefficients, expected, rtol=0, atol=1e-9)
    singular = np.linalg.svd(matrix, compute_uv=False)
    assert fit.model.record.rank == int((singular > 1e-9 * max(1.0, singular[0])).sum())


@settings(max_examples=20)
@given(k=st.integers(1, 30), seed=st.integers(0, 2**32))
def test_stacking_exact_summaries_of_any_partitions_is_exact(k: int, seed: int) -> None:
    """One algebra: partitions, merged, are the whole."""
    from functools import reduce

    from partsketch import Summary
    from partsketch.common.linalg.solve import solve_least_squares

    X, y = tame(60, 3, seed)
    merged = reduce(Summary.stack, fitted(X, y, method="average", k=k).summaries)
    solution = solve_least_squares(merged.matrix, merged.columns[:-1], free_columns=1)
    expected = fitted(X, y).combination.coefficients
    np.testing.assert_allclose(solution.coefficients, expected, rtol=1e-9)


def test_the_estimator_is_the_same_fit() -> None:
    X, y = _dependent(500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        model = SketchedRegression("exact").fit(X, y)
    assert np.array_equal(model.coef_, fitted(X, y).model.coefficients[:, 0])
