"""Columns far from zero, constant, tiny or huge: no location and no unit changes what a fit says of the others.

Exact fits are held to the judge. Random methods are held to targets without noise: whatever numbers a sketch draws, it
fits such a target exactly, so that predictions must be right to rounding.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from tests.laws.tables import (
    METHODS,
    SKETCHED,
    FloatArray,
    assert_exact,
    assert_predictions,
    fit_table,
    noisy,
    options_of,
    spread,
    whole_numbers,
)


def _identifiers() -> FloatArray:
    """Numbers from 10¹⁶ on: float64 holds the even ones."""
    return np.arange(2000.0) + 1e16


def _nanoseconds() -> FloatArray:
    """Timestamps of one millisecond in 2023, as float64 holds them: whole multiples of 256 ns."""
    return np.random.default_rng(2).integers(0, 10**6, 2000).astype(np.float64) + 1.7e18


LARGE_DESIGNS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "identifiers": lambda z: np.c_[_identifiers(), z[:, 0]],
    "identifiers last": lambda z: np.c_[z[:, 0], _identifiers()],
    "constant 1.7e9": lambda z: np.c_[np.full(len(z), 1.7e9), z],
    "constant 1.7e18": lambda z: np.c_[z, np.full(len(z), 1.7e18)],
    "constant 0.1": lambda z: np.c_[z[:, 0], np.full(len(z), 0.1), z[:, 1]],
    "nanoseconds": lambda z: np.c_[_nanoseconds(), z],
    "far from zero": lambda z: z + 1e12,
    "far from zero, both ways": lambda z: z + np.array([1e12, -1e14]),
    "everything": lambda z: np.c_[_identifiers(), z + 1e12, np.full(len(z), -1.7e18), _nanoseconds()],
}


class TestColumnsFarFromZero:
    @pytest.mark.parametrize(
        ("design", "storage"),
        [(design, "C") for design in LARGE_DESIGNS]
        + [("everything", storage) for storage in ("F", "csr", "pandas", "parquet", "csv", "feather")],
    )
    def test_exact(self, design: str, storage: str, tmp_path: Path) -> None:
        generator = np.random.default_rng(4)
        z = generator.normal(size=(2000, 2))
        X = LARGE_DESIGNS[design](z)
        y = 1 - z[:, 0] + 0.5 * generator.normal(size=2000)
        model = fit_table(X, y, storage=storage, folder=tmp_path, method="exact")
        exact = assert_exact(model, X, y, inverse=True)
        errors = model.inferences[0].standard_errors
        assert errors is not None
        if exact.inverse_diagonal is not None:
            variance = float(exact.loss) / (len(y) - exact.rank)
            expected = [float(value * int(variance * 2**60) / 2**60) ** 0.5 for value in exact.inverse_diagonal]
            np.testing.assert_allclose(errors, expected, rtol=1e-6)
        constant = np.ptp(X, axis=0) == 0
        if constant.any() and not exact.inverse_diagonal and exact.rank == X.shape[1]:
            assert (model.coefficients[constant] == 0).all()
            assert model.intercept[0] == pytest.approx(float(exact.coefficients[0]), rel=1e-8, abs=1e-8)

    @pytest.mark.parametrize("weighted", [False, True])
    def test_many_rows(self, weighted: bool) -> None:
        """Several tiles and segments, each of which must agree on where columns are measured from."""
        a, b, y = noisy(150_000)
        X = np.c_[a + 1e12, np.full(150_000, 1.7e9), 10.0**16 + 2 * np.arange(150_000), b]
        weights = np.random.default_rng(5).gamma(1.0, size=150_000) if weighted else None
        assert_exact(fit_table(X, y, weights, method="exact"), X, y, weights)

    @pytest.mark.parametrize("method", ["average", *SKETCHED])
    @pytest.mark.parametrize("design", LARGE_DESIGNS)
    def test_other_methods_without_noise(self, design: str, method: str) -> None:
        z = whole_numbers(2000, 2)
        X = LARGE_DESIGNS[design](z)
        y = 1 - z[:, 0]
        model = fit_table(X, y, **options_of(method))
        assert_predictions(model, X, y, y)

    def test_equal_columns_of_a_large_scale_beside_one_of_a_small(self) -> None:
        """Least norm shares evenly, whatever the units of the others are; the loss is the least."""
        generator = np.random.default_rng(6)
        a, b, noise = generator.normal(size=(3, 5000))
        X, y = np.c_[1e8 * a, 1e-7 * b, 1e8 * a], 4 * a + b + noise
        for order in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
            model = fit_table(X[:, order], y, method="exact")
            exact = assert_exact(model, X[:, order], y)
            pair = model.coefficients[[order.index(0), order.index(2)], 0]
            share = float(sum(exact.coefficients[1 + order.index(i)] for i in (0, 2))) / 2
            np.testing.assert_allclose(pair, share, rtol=1e-9)

    def test_a_location_does_not_change_the_others(self) -> None:
        """The same column from another origin: every other coefficient, standard error and p value is the same."""
        generator = np.random.default_rng(7)
        X = generator.integers(-1000, 1000, size=(3000, 3)).astype(np.float64)
        y = X @ [1.0, 2.0, 3.0] + 500 * generator.normal(size=3000)
        plain = fit_table(X, y, method="exact")
        moved = fit_table(X + np.array([0.0, 2.0**50, -(2.0**40)]), y, method="exact")
        np.testing.assert_allclose(moved.coefficients, plain.coefficients, rtol=1e-10)
        mine, theirs = moved.inferences[0].standard_errors, plain.inferences[0].standard_errors
        assert mine is not None
        assert theirs is not None
        np.testing.assert_allclose(mine[1:], theirs[1:], rtol=1e-10)
        assert moved.certificate.minimal_loss == pytest.approx(plain.certificate.minimal_loss, rel=1e-10)


class TestEveryWayToAFit:
    """Columns far from zero, without noise, on the other ways from rows to predictions."""

    @pytest.fixture
    def far(self) -> tuple[FloatArray, FloatArray]:
        z = whole_numbers(2000, 2)
        return LARGE_DESIGNS["everything"](z), 1 - z[:, 0]

    @pytest.mark.parametrize(
        "kind", ["triangular", "gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch", "row_sample"]
    )
    def test_sites(self, kind: str, far: tuple[FloatArray, FloatArray]) -> None:
        """Each site knows its own rows only; every one has its columns elsewhere."""
        X, y = far
        X = X[np.argsort(X[:, 1])]
        y = 1 - (X[:, 1] - 1e12)
        table = np.c_[X, y]
        options: dict[str, Any] = {"sketch": kind, "random_state": 1}
        if kind != "triangular":
            options["sketch_size"] = 64
        summaries = [
            ps.sketch(part, f"x{X.shape[1]}", site=str(number), **options)
            for number, part in enumerate(np.array_split(table, 3))
        ]
        for method in ("exact", "average") if kind == "triangular" else ("partition", "stack"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ps.PartsketchWarning)
                model = ps.combine(summaries, method=method)
            assert_predictions(model, X, y, y)

    @pytest.mark.parametrize("storage", ["C", "csr"])
    @pytest.mark.parametrize("route", ["factor", "iterate"])
    def test_routes(self, route: str, storage: str, far: tuple[FloatArray, FloatArray]) -> None:
        X, y = far
        y = y + np.random.default_rng(1).normal(size=len(y))
        assert_exact(fit_table(X, y, storage=storage, method="exact", route=route), X, y)

    @pytest.mark.parametrize("place", [0.0, 1e5, 1e9, 1e12])
    def test_iterations_on_many_columns(self, place: float) -> None:
        z = whole_numbers(1000, 24)
        X = z + place * (np.arange(24) % 2)
        y = z[:, 0] - z[:, 1] + 100 * np.random.default_rng(1).normal(size=1000)
        assert_exact(fit_table(X, y, method="exact", route="iterate"), X, y)

    @pytest.mark.parametrize("method", ["exact", "average", "partition", "stack"])
    def test_batches(self, method: str, far: tuple[FloatArray, FloatArray]) -> None:
        X, y = far
        model = ps.SketchedRegression(**options_of(method))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.PartsketchWarning)
            for rows in np.array_split(np.arange(len(y)), 3):
                model.partial_fit(X[rows], y[rows])
        assert_predictions(model.model_, X, y, y)

    def test_the_estimator_and_a_model_that_was_stored_predict_alike(
        self, far: tuple[FloatArray, FloatArray], tmp_path: Path
    ) -> None:
        X, y = far
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.PartsketchWarning)
            estimator = ps.SketchedRegression("exact").fit(X, y)
        estimator.model_.save(tmp_path / "model.json")
        unit = spread(y)
        for predictions in (
            estimator.predict(X),
            ps.load(tmp_path / "model.json").predict(X),
            pickle.loads(pickle.dumps(estimator)).predict(X),
        ):
            np.testing.assert_allclose(predictions / unit, y / unit, rtol=0, atol=1e-9)
        assert estimator.score(X, y) == pytest.approx(1.0, abs=1e-12)

    @pytest.mark.parametrize("method", METHODS)
    def test_ridge_does_not_see_where_columns_are(self, method: str) -> None:
        """The penalty is in raw units, which a shift does not change."""
        X = whole_numbers(2000, 3)
        y = X @ [1.0, 2.0, 3.0] + np.random.default_rng(2).normal(size=2000)
        near = fit_table(X, y, alpha=1000.0, **options_of(method))
        away = fit_table(X + np.array([2.0**40, 0.0, -(2.0**45)]), y, alpha=1000.0, **options_of(method))
        np.testing.assert_allclose(away.coefficients, near.coefficients, rtol=1e-9)


def test_a_diagnosis_does_not_see_places_and_units() -> None:
    """Divergences, ranks, influential rows and losses belong to the rows, not to how columns are written."""
    generator = np.random.default_rng(8)
    X = np.c_[whole_numbers(4000, 3), generator.integers(0, 2, 4000)]
    X[:1000, 0] *= 4
    X[2500, 1] = 5000
    y = X @ [1.0, 2.0, -3.0, 10.0] + 30 * generator.normal(size=4000)
    near = ps.diagnose(np.c_[X, y], "x4", n_partitions=4)
    moved = (X + np.array([2.0**40, -(2.0**33), 0.0, 2.0**20])) * [2.0**100, 1.0, 2.0**-200, 4.0]
    away = ps.diagnose(np.c_[moved, y], "x4", n_partitions=4)
    assert away.rank == near.rank == 5
    assert away.divergence_ratio == pytest.approx(near.divergence_ratio, rel=1e-7)
    np.testing.assert_allclose(away.divergence_matrix, near.divergence_matrix, rtol=1e-7)
    assert [row.row for row in away.influential_rows] == [row.row for row in near.influential_rows]
    assert 2500 in [row.row for row in near.influential_rows]
    for mine, theirs in zip(away.losses, near.losses, strict=True):
        assert mine.excess == pytest.approx(theirs.excess, rel=1e-6), mine.method
    assert len(away.advice) == len(near.advice)


class TestScales:
    @pytest.mark.parametrize("power", [-170, -160, -290, 100, 150])
    @pytest.mark.parametrize("method", METHODS)
    def test_tiny_and_huge_columns(self, method: str, power: int) -> None:
        """Scaled by a power of two near 10^power, a column changes its coefficient and nothing else."""
        a, b, y = noisy(4000)
        unit = 2.0 ** round(power / np.log10(2))
        plain = fit_table(np.c_[a, b], y, **options_of(method))
        scaled = fit_table(np.c_[a * unit, b], y, **options_of(method))
        np.testing.assert_allclose(scaled.coefficients[:, 0] * [unit, 1], plain.coefficients[:, 0], rtol=1e-9)
        assert scaled.record.rank == 3
        assert not any("zero" in sentence for sentence in scaled.record.warnings)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("target_power", [0, -200])
    def test_columns_below_normal_doubles(self, target_power: int, method: str) -> None:
        """Sums of their rows have few digits, though the coefficient of a tiny target may be held."""
        X = whole_numbers(400, 2)
        y = (X @ [1.0, 2.0] + 9 * np.random.default_rng(2).normal(size=400)) * 2.0**target_power
        with pytest.raises(ps.InputError, match="Column 'x0' is below what doubles hold with all digits: multiply the"):
            fit_table(X * [2.0**-1060, 1.0], y, **options_of(method))
        with pytest.raises(ps.InputError, match="Column 'y' is below what doubles hold with all digits: multiply the"):
            fit_table(X * 2.0**-100, y * 2.0 ** (-1060 - target_power), **options_of(method))
        plain = fit_table(X, y, **options_of(method))
        small = fit_table(X * [2.0**-1010, 1.0], y * 2.0**-40, **options_of(method))
        np.testing.assert_allclose(small.coefficients * [[2.0**-970], [2.0**40]], plain.coefficients, rtol=1e-9)
        with pytest.raises(ps.InputError, match=r"The coefficient of column .* is beyond what a double holds"):
            fit_table(X * [2.0**-1010, 1.0], y * 2.0 ** (50 - target_power), **options_of(method))

    @pytest.mark.parametrize("power", [-160, 150])
    @pytest.mark.parametrize("method", METHODS)
    def test_tiny_and_huge_targets(self, method: str, power: int) -> None:
        a, b, y = noisy(4000)
        unit = 2.0 ** round(power / np.log10(2))
        plain = fit_table(np.c_[a, b], y, **options_of(method))
        scaled = fit_table(np.c_[a, b], y * unit, **options_of(method))
        np.testing.assert_allclose(scaled.coefficients / unit, plain.coefficients, rtol=1e-9)
        assert scaled.inferences[0].r_squared == pytest.approx(plain.inferences[0].r_squared, rel=1e-9)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("trouble", ["an entry of 1e308", "a column times 1e200", "a column times 1e300"])
    def test_numbers_near_the_end_of_float64(self, trouble: str, method: str) -> None:
        """A right fit, or one clear sentence: never an error from inside, nor a wrong answer."""
        X = whole_numbers(4000, 3)
        y = 5 + X @ [0.0, 2.0, -3.0]
        if trouble == "an entry of 1e308":
            X[1234, 0] = 1e308
        else:
            X[:, 0] *= 1e200 if "200" in trouble else 1e300
        refused = ""
        # Partitions without that row know the coefficient, zero, to 1e-17, and an average has theirs: at the row itself
        # that is far from zero.
        rows = np.arange(4000) != 1234 if method in ("average", "partition") else slice(None)
        try:
            assert_predictions(fit_table(X, y, **options_of(method)), X[rows], y[rows], y[rows])
        except ps.InputError as error:
            refused = str(error)
        assert not refused or ("x0" in refused and refused.endswith("."))


@pytest.mark.parametrize("method", ["exact", "average", "stack", "partition"])
def test_norms_beyond_float64_are_refused(method: str) -> None:
    """No column seems to be zero or to depend on others because its sum of squares is beyond doubles."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0.5, 1.5, size=400) * rng.choice([-1.0, 1.0], size=400)
    y = 0.5 * x + rng.normal(size=400) / 10
    # The norm of 200 such values is 14 times as large as one of them.
    with pytest.raises(ps.InputError, match=r"'x0' .* is beyond what a double holds|Values are too large"):
        fit_table(1e308 * x[:, None], y, **options_of(method))
    plain, huge = (fit_table(unit * x[:, None], unit * y, **options_of(method)) for unit in (1.0, 2.0**1010))
    np.testing.assert_allclose(huge.coefficients, plain.coefficients, rtol=1e-9)


def test_few_rows_whose_squares_are_beyond_float64() -> None:
    x = np.array([1.0, -1.0, 1.0, 0.0, 0.25])[:, None]
    y = np.array([0.5, 0.25, 1.0, 0.0, -1.0])
    plain, huge = (fit_table(unit * x, unit * y, method="exact") for unit in (1.0, 2.0**1022))
    assert huge.record.rank == 2
    np.testing.assert_allclose(huge.coefficients, plain.coefficients, rtol=1e-12)


def test_spread_of_the_tests_themselves() -> None:
    """Tolerances are parts of this number."""
    assert spread(np.array([2.0, 4.0]) + 1e16) == 1.0
    assert spread(np.array([-1e308, 1e308])) == 1e308
    assert spread(np.full(5, 0.1)) == 0.0
