"""Real tables with dependent and nearly dependent columns, held to the judge, whole and in partitions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import datasets

import partsketch as ps
from tests.judge import judge
from tests.laws.tables import FloatArray, assert_exact, assert_loss, fit_table

#: Bundled with scikit-learn: pixels that are always zero, pairs that are nearly equal, sums of one another.
REAL = {
    "digits": datasets.load_digits,
    "breast cancer": datasets.load_breast_cancer,
    "diabetes": datasets.load_diabetes,
    "wine": datasets.load_wine,
}


def real(name: str) -> tuple[FloatArray, FloatArray]:
    X, y = REAL[name](return_X_y=True)
    return np.ascontiguousarray(X, dtype=np.float64), y.astype(np.float64)


class TestRealTablesWithoutAnIntercept:
    """The loss that a fit states is never below the true minimum, nor below that of its own coefficients."""

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("name", REAL)
    def test_exact(self, name: str, intercept: bool) -> None:
        X, y = real(name)
        assert_exact(fit_table(X, y, method="exact", fit_intercept=intercept), X, y)

    @pytest.mark.parametrize("k", [3, 15])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_merged_partitions(self, k: int, intercept: bool) -> None:
        X, y = real("digits")
        parts = np.array_split(np.c_[X, y], k)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.PartsketchWarning)
            summaries = [
                ps.sketch(part, "x64", sketch="triangular", site=str(number), fit_intercept=intercept)
                for number, part in enumerate(parts)
            ]
            model = ps.combine(summaries)
        assert_exact(model, X, y)

    @pytest.mark.parametrize("k", [3, 15])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_average(self, k: int, intercept: bool) -> None:
        X, y = real("digits")
        model = fit_table(X, y, method="average", n_partitions=k, fit_intercept=intercept)
        exact = judge(X, y, intercept=intercept)
        assert_loss(model, exact, X, y)
        parts = np.array_split(np.arange(len(y)), k)
        for entry, part in zip(model.record.partitions, parts, strict=True):
            assert entry.rank == judge(X[part], y[part], intercept=intercept).rank
        own = float(exact.loss_of(model.predict(X)))
        certificate = model.certificate
        assert certificate.minimal_loss is not None
        assert certificate.excess_loss is not None
        assert certificate.minimal_loss + certificate.excess_loss == pytest.approx(own, rel=1e-9)
