"""Columns that are zero in all rows, or in those of one partition or segment, as rare levels are.

Exact fits are held to the judge. Random methods are held to targets without noise: whatever numbers a sketch draws, it
fits such a target exactly, so that predictions must be right to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import partsketch as ps
from tests.judge import judge
from tests.laws.tables import (
    METHODS,
    ROWS,
    SKETCHED,
    FloatArray,
    assert_exact,
    assert_predictions,
    fit_table,
    noisy,
    options_of,
    whole_numbers,
)

ZERO_DESIGNS: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "zero first": lambda a, b: np.c_[np.zeros(len(a)), a, b],
    "zero last": lambda a, b: np.c_[a, np.zeros(len(a))],
    "zero between, and one twice": lambda a, b: np.c_[a, np.zeros(len(a)), b, b],
    "nothing but zero": lambda a, b: np.zeros((len(a), 2)),
}


class TestZeroColumns:
    @pytest.mark.parametrize("storage", ["C", "csr", "parquet"])
    @pytest.mark.parametrize("design", ZERO_DESIGNS)
    def test_exact(self, design: str, storage: str, tmp_path: Path) -> None:
        a, b, y = noisy()
        X = ZERO_DESIGNS[design](a, b)
        model = fit_table(X, y, storage=storage, folder=tmp_path, method="exact")
        exact = assert_exact(model, X, y)
        zero = ~X.any(axis=0)
        assert (model.coefficients[zero] == 0).all()
        if design == "zero between, and one twice":
            # Least norm shares the coefficient among equal columns evenly.
            np.testing.assert_allclose(model.coefficients[[2, 3], 0], float(exact.coefficients[3]) / 2, rtol=1e-9)

    def test_exact_with_weights_and_without_an_intercept(self) -> None:
        a, b, y = noisy()
        weights = np.random.default_rng(1).gamma(1.0, size=ROWS)
        for intercept in (False, True):
            X = ZERO_DESIGNS["zero first"](a, b)
            assert_exact(fit_table(X, y, weights, method="exact", fit_intercept=intercept), X, y, weights)

    @pytest.mark.parametrize("storage", ["C", "parquet"])
    @pytest.mark.parametrize("method", ["average", *SKETCHED])
    def test_other_methods_without_noise(self, method: str, storage: str, tmp_path: Path) -> None:
        a, b = whole_numbers(ROWS, 2).T
        for X, truth in [
            (np.c_[np.zeros(ROWS), a, b], [0.0, 1.0, 2.0]),
            (np.c_[a, np.zeros(ROWS), b, b], [1.0, 0.0, 1.0, 1.0]),
        ]:
            y = 1 + a + 2 * b
            model = fit_table(X, y, storage=storage, folder=tmp_path, **options_of(method))
            assert_predictions(model, X, y, y)
            np.testing.assert_allclose(model.coefficients[:, 0], truth, rtol=0, atol=1e-10)
            assert model.coefficients[truth.index(0.0), 0] == 0

    @pytest.mark.parametrize("method", METHODS)
    def test_another_column_of_zeros_changes_nothing(self, method: str) -> None:
        """With noise: the same rows meet the same random numbers, and the rest of the fit is the same."""
        a, b, y = noisy()
        X = np.c_[a, b]
        plain = fit_table(X, y, **options_of(method))
        more = fit_table(np.c_[np.zeros(ROWS), X], y, **options_of(method))
        np.testing.assert_allclose(more.coefficients[1:], plain.coefficients, rtol=1e-9)
        assert more.coefficients[0, 0] == 0
        assert more.record.rank == plain.record.rank
        for name in ("excess_loss", "minimal_loss", "noise_variance"):
            mine, theirs = getattr(more.certificate, name), getattr(plain.certificate, name)
            assert mine == pytest.approx(theirs, rel=1e-6), name


def partly_zero(rows: int, where: slice, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Three columns of whole numbers, the second zero in some rows, and 5 + x0 + 2 x1 − 3 x2."""
    X = whole_numbers(rows, 3, seed)
    X[where, 1] = 0.0
    return X, 5 + X @ [1.0, 2.0, -3.0]


class TestColumnsThatAreZeroInOnePart:
    @pytest.mark.parametrize("storage", ["C", "csr", "parquet"])
    @pytest.mark.parametrize("where", [slice(0, 65_536), slice(65_536, 131_072), slice(131_072, None)])
    def test_in_one_segment_exact(self, where: slice, storage: str, tmp_path: Path) -> None:
        rows = 150_000
        X, y = partly_zero(rows, where)
        y = y + np.random.default_rng(1).normal(size=rows)
        assert_exact(fit_table(X, y, storage=storage, folder=tmp_path, method="exact"), X, y)

    @pytest.mark.parametrize("where", [slice(0, 65_536), slice(65_536, 131_072)])
    @pytest.mark.parametrize("method", ["stack", "whole"])
    def test_in_one_segment_sketched(self, method: str, where: slice) -> None:
        X, y = partly_zero(150_000, where)
        model = fit_table(X, y, **options_of(method, 1))
        assert_predictions(model, X, y, y)
        assert model.record.rank == 4

    @pytest.mark.parametrize("rows", [4_000, 120_000])
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("part", [0, 2, 3])
    def test_in_one_partition(self, part: int, method: str, rows: int) -> None:
        """A partition that does not know the column gives it nothing; the others know all three coefficients."""
        where = slice(part * rows // 4, (part + 1) * rows // 4)
        X, y = partly_zero(rows, where)
        model = fit_table(X, y, **options_of(method))
        averaged = method in ("average", "partition")
        expected = [1.0, 2.0 * (0.75 if averaged else 1.0), -3.0]
        np.testing.assert_allclose(model.coefficients[:, 0], expected, rtol=0, atol=1e-10)
        assert model.intercept[0] == pytest.approx(5.0, abs=1e-9)
        if averaged:
            assert model.partition_coefficients[part, 1, 0] == 0
            assert [entry.rank for entry in model.record.partitions] == [3 if i == part else 4 for i in range(4)]
        else:
            assert_predictions(model, X, y, y)

    @pytest.mark.parametrize("rows", [4_000, 120_000])
    def test_average_with_noise(self, rows: int) -> None:
        """Coefficients of partitions and of their average are the judge's; so is what the average loses."""
        X, y = partly_zero(rows, slice(rows // 2, 3 * rows // 4))
        y = y + np.random.default_rng(1).normal(size=rows) * 8
        model = fit_table(X, y, **options_of("average"))
        bounds = np.linspace(0, rows, 5).astype(int)
        parts = [judge(X[start:stop], y[start:stop]) for start, stop in pairwise(bounds)]
        averaged = np.mean([[float(value) for value in part.coefficients] for part in parts], axis=0)
        np.testing.assert_allclose(model.coefficients[:, 0], averaged[1:], rtol=1e-9)
        assert model.intercept[0] == pytest.approx(averaged[0], rel=1e-9)
        exact = judge(X, y)
        certificate = model.certificate
        assert certificate.minimal_loss == pytest.approx(float(exact.loss), rel=1e-9)
        # A loss above the minimum is the squared distance of fitted values.
        excess = float(np.sum((averaged[0] + X @ averaged[1:] - exact.fitted) ** 2))
        assert certificate.excess_loss == pytest.approx(excess, rel=1e-6)

    @pytest.mark.parametrize("rows", [4_000, 120_000])
    def test_diagnose(self, rows: int) -> None:
        X, y = partly_zero(rows, slice(rows // 2, 3 * rows // 4))
        y = y + np.random.default_rng(1).normal(size=rows) * 8
        found = ps.diagnose(np.c_[X, y], "x3", n_partitions=4)
        assert found.rank == 4
        assert [part.rank for part in found.partitions] == [4, 4, 3, 4]
        assert not found.aliased
        assert 1 < found.condition < 10
        assert all(part.condition < 10 for part in found.partitions)
        bounds = np.linspace(0, rows, 5).astype(int)
        parts = [judge(X[start:stop], y[start:stop]) for start, stop in pairwise(bounds)]
        averaged = np.mean([[float(value) for value in part.coefficients] for part in parts], axis=0)
        exact = judge(X, y)
        excess = float(np.sum((averaged[0] + X @ averaged[1:] - exact.fitted) ** 2)) / float(exact.loss)
        (loss,) = (entry for entry in found.losses if entry.method == "average")
        assert loss.excess == pytest.approx(excess, rel=1e-6)

    @pytest.mark.parametrize("method", ["average", "exact"])
    def test_levels_that_one_partition_alone_has(self, method: str) -> None:
        """Rare levels after one-hot encoding: every partition has levels that it has never seen."""
        rows = 40_000
        generator = np.random.default_rng(3)
        levels = generator.integers(0, 3, rows)
        levels[[5, 17, 90]] = 3
        levels[rows - 7 :] = 4
        X = np.c_[(levels[:, None] == np.arange(1, 5)).astype(float), generator.integers(-9, 10, rows)]
        y = X @ [1.0, -2.0, 30.0, -40.0, 0.5] + generator.normal(size=rows)
        model = fit_table(X, y, **options_of(method))
        if method == "exact":
            assert_exact(model, X, y)
            return
        quarters = np.split(np.arange(rows), 4)
        fits = [[float(value) for value in judge(X[part], y[part]).coefficients] for part in quarters]
        np.testing.assert_allclose(model.coefficients[:, 0], np.mean(fits, axis=0)[1:], rtol=0, atol=1e-9)
