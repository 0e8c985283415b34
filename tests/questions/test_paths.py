"""Paths of penalties against scikit-learn with the same folds, on rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import ElasticNet, Lasso, LassoCV, Ridge, RidgeCV

import partsketch as ps
from tests.questions.data import clustered_rows


def table(name: str) -> tuple[pd.DataFrame, list[str]]:
    """Return rows with a target y and partitions g, and the names of the features."""
    if name == "synthetic":
        return clustered_rows(600, 10, near=0.1), ["a", "b", "c"]
    if name == "ill-conditioned":
        # Condition 1e8 of the columns.
        return clustered_rows(600, 10, near=1e-8), ["a", "b", "c"]
    data = load_diabetes() if name == "diabetes" else load_digits()
    values = data.data[:600, (data.data[:600] != 0).any(axis=0)]
    frame = pd.DataFrame(values).add_prefix("x").assign(y=data.target[:600].astype(float))
    features = [column for column in frame.columns if column != "y"]
    return frame.assign(g=np.arange(len(frame)) * 7 % 10), features


def folds_of(rows: pd.DataFrame) -> list[tuple[Any, Any]]:
    groups = rows["g"].to_numpy()
    return [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(10)]


def errors_by_rows(rows: pd.DataFrame, features: list[str], estimator: Any) -> list[float]:
    X, y = rows[features].to_numpy(), rows["y"].to_numpy()
    return [
        float(np.mean((y[test] - estimator.fit(X[train], y[train]).predict(X[test])) ** 2))
        for train, test in folds_of(rows)
    ]


@pytest.mark.parametrize("name", ["synthetic", "ill-conditioned", "diabetes", "digits"])
def test_ridge_is_that_of_scikit_learn(name: str) -> None:
    rows, features = table(name)
    alphas = [1e-2, 1.0, 30.0, 1e3]
    path = ps.summarise(rows, [*features, "y"], partition_by="g").ridge_path("y", alphas=alphas)
    for alpha, coefficients, intercept, errors in zip(
        path.alphas, path.coefficients, path.intercepts, path.fold_errors, strict=True
    ):
        other = Ridge(alpha=alpha, solver="svd")
        assert np.allclose(errors, errors_by_rows(rows, features, other), rtol=1e-8)
        other.fit(rows[features].to_numpy(), rows["y"])
        np.testing.assert_allclose(coefficients, other.coef_, rtol=1e-8, atol=1e-8 * np.abs(other.coef_).max())
        assert intercept == pytest.approx(other.intercept_, rel=1e-7)
    best = RidgeCV(alphas=alphas, cv=folds_of(rows), scoring="neg_mean_squared_error")
    assert path.best_alpha == best.fit(rows[features].to_numpy(), rows["y"]).alpha_


@pytest.mark.parametrize("name", ["synthetic", "ill-conditioned", "diabetes", "digits"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.filterwarnings("ignore:Objective did not converge")
def test_lasso_and_elastic_net_are_those_of_scikit_learn(name: str, l1_ratio: float) -> None:
    rows, features = table(name)
    summaries = ps.summarise(rows, [*features, "y"], partition_by="g")
    top = summaries.lasso_path("y", l1_ratio=l1_ratio).alphas[0]
    # Small penalties take coordinate descent in rows too long where columns nearly depend.
    alphas = top * np.array([0.7, 0.2, 0.05])
    path = summaries.lasso_path("y", alphas=alphas, l1_ratio=l1_ratio)
    for place, alpha in enumerate(path.alphas):
        other = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-14, max_iter=100_000)
        if name in ("synthetic", "diabetes"):
            assert np.allclose(path.fold_errors[place], errors_by_rows(rows, features, other), rtol=1e-8)
        X = rows[features].to_numpy()
        other.fit(X, rows["y"])
        if name != "ill-conditioned":
            np.testing.assert_allclose(
                path.coefficients[place], other.coef_, rtol=1e-7, atol=1e-8 * np.abs(other.coef_).max()
            )
        # Where columns nearly depend descent on rows ends before the last digits: ours must be no worse.
        assert objective(X, rows["y"].to_numpy(), path, place) <= objective_of(other, X, rows["y"]) * (1 + 1e-12)


def objective(X: Any, y: Any, path: Any, place: int) -> float:
    missed = y - X @ path.coefficients[place] - path.intercepts[place]
    return penalised(missed, path.coefficients[place], float(path.alphas[place]), path.l1_ratio)


def objective_of(other: Any, X: Any, y: Any) -> float:
    return penalised(np.asarray(y - other.predict(X)), other.coef_, other.alpha, other.l1_ratio)


def penalised(missed: Any, b: Any, alpha: float, l1_ratio: float) -> float:
    loss = missed @ missed / (2 * len(missed))
    return float(loss + alpha * (l1_ratio * np.abs(b).sum() + 0.5 * (1 - l1_ratio) * b @ b))


def test_the_path_and_choice_of_lasso_cv() -> None:
    rows, features = table("diabetes")
    path = ps.summarise(rows, [*features, "y"], partition_by="g").lasso_path("y")
    other = LassoCV(cv=folds_of(rows), tol=1e-12, max_iter=1_000_000).fit(rows[features].to_numpy(), rows["y"])
    np.testing.assert_allclose(path.alphas, other.alphas_, rtol=1e-9)
    np.testing.assert_allclose(path.fold_errors, other.mse_path_, rtol=1e-7)
    assert path.best_alpha == pytest.approx(other.alpha_, rel=1e-9)
    np.testing.assert_allclose(path.model().coefficients[:, 0], other.coef_, rtol=1e-6, atol=1e-6)


def test_the_rule_of_one_standard_error() -> None:
    rows, features = table("diabetes")
    path = ps.summarise(rows, [*features, "y"], partition_by="g").lasso_path("y")
    best = int(np.argmin(path.cv_errors))
    bound = path.cv_errors[best] + path.fold_errors[best].std(ddof=1) / np.sqrt(10)
    chosen = int(np.flatnonzero(path.alphas == path.one_standard_error_alpha)[0])
    assert path.cv_errors[chosen] <= bound < path.cv_errors[chosen - 1]
    assert path.one_standard_error_alpha > path.best_alpha
    sparse, dense = path.model("one_standard_error"), path.model()
    assert np.count_nonzero(sparse.coefficients) < np.count_nonzero(dense.coefficients)


def test_the_model_of_a_path_predicts_and_says_that_it_has_no_errors() -> None:
    rows, features = table("diabetes")
    summaries = ps.summarise(rows, [*features, "y"], partition_by="g")
    model = summaries.lasso_path("y").model(0.3)
    other = Lasso(alpha=0.3, tol=1e-14, max_iter=1_000_000).fit(rows[features].to_numpy(), rows["y"])
    np.testing.assert_allclose(model.predict(rows[features]), other.predict(rows[features].to_numpy()), rtol=1e-8)
    with pytest.raises(ps.InputError, match="lasso is biased on purpose"):
        _ = model.standard_errors
    ridge = summaries.ridge_path("y").model(5.0)
    np.testing.assert_allclose(ridge.coefficients, summaries.fit("y", alpha=5.0).coefficients, rtol=1e-12)
    assert "best" in str(summaries.ridge_path("y"))


def test_weights_count_rows() -> None:
    rows, features = table("synthetic")
    summaries = ps.summarise(rows, [*features, "y"], partition_by="g", weights="w")
    path = summaries.lasso_path("y", alphas=[0.1])
    other = Lasso(alpha=0.1, tol=1e-14, max_iter=100_000)
    other.fit(rows[features].to_numpy(), rows["y"], sample_weight=rows["w"])
    np.testing.assert_allclose(path.coefficients[0], other.coef_, rtol=1e-8)


def test_folds_may_be_given_and_are_checked() -> None:
    rows, features = table("synthetic")
    summaries = ps.summarise(rows, [*features, "y"], partition_by="g")
    halves = summaries.ridge_path("y", folds=[0, 1] * 5, alphas=[1.0])
    assert halves.fold_errors.shape == (1, 2)
    np.testing.assert_array_equal(halves.fold_errors, summaries.ridge_path("y", folds=2, alphas=[1.0]).fold_errors)
    for keywords, message in [
        ({"folds": 11}, "need at least as many partitions"),
        ({"folds": 1}, "at least two folds"),
        ({"folds": None}, "folds is None"),
        ({"folds": [0, 1]}, "give the fold of each"),
        ({"alphas": [0.0]}, "positive numbers"),
        # Not the penalties 2 and 5.
        ({"alphas": "25"}, "positive numbers"),
        ({"intercept": "partition"}, "no intercepts of partitions"),
        ({"features": []}, "at least one feature"),
    ]:
        with pytest.raises(ps.InputError, match=message):
            summaries.ridge_path("y", **keywords)  # type: ignore[arg-type]
    with pytest.raises(ps.InputError, match="l1_ratio is 0"):
        summaries.lasso_path("y", l1_ratio=0)
    path = summaries.ridge_path("y")
    for wrong in (None, [1.0], 0, float("inf")):
        with pytest.raises(ps.InputError, match="give a positive number"):
            path.model(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["ridge", "lasso"])
def test_a_column_that_varies_in_one_fold_only_is_zero_outside_it(kind: str) -> None:
    rows = clustered_rows(600, 10)
    rows["c"] = np.where(rows["g"] == 2, rows["c"], 4.0)
    summaries = ps.summarise(rows, ["a", "b", "c", "y"], partition_by="g")
    if kind == "ridge":
        path, other = summaries.ridge_path("y", alphas=[0.1]), Ridge(alpha=0.1)
    else:
        path, other = summaries.lasso_path("y", alphas=[0.1]), Lasso(alpha=0.1, tol=1e-14, max_iter=100_000)
    np.testing.assert_allclose(path.fold_errors[0], errors_by_rows(rows, ["a", "b", "c"], other), rtol=1e-8)


def test_penalties_that_rounding_hides_are_refused() -> None:
    """Twice a column has twice its coefficient, whatever the penalty: where the path loses that, it is not printed."""
    generator = np.random.default_rng(0)
    rows = pd.DataFrame(generator.normal(size=(480, 3)), columns=["a", "b", "y"])
    rows = rows.assign(near=rows["a"] + 1e-7 * rows["b"], c=2 * rows["b"], d=4 * rows["b"], site=np.arange(480) % 8)
    rows["y"] += rows["a"] + rows["c"]
    summaries = ps.summarise(rows.drop(columns="b"), partition_by="site")
    kept = summaries.ridge_path("y", ["a", "near", "c", "d"], alphas=[1e-2, 1e-6], folds=4)
    # The square of the condition number (curvature over penalty, about 1e10) times rounding.
    np.testing.assert_allclose(kept.coefficients[:, 3], 2 * kept.coefficients[:, 2], rtol=1e-5)
    with pytest.raises(ps.InputError, match="rounding hides the path at the penalty 1e-12"):
        summaries.ridge_path("y", ["a", "near", "c", "d"], alphas=[1e-2, 1e-12], folds=4)
    # Columns in unlike units that do not determine one another bear any penalty.
    scaled = ps.summarise(rows.assign(a=1e9 * rows["a"])[["y", "a", "c", "site"]], partition_by="site")
    found = scaled.ridge_path("y", ["a", "c"], alphas=[1e-12], folds=4).coefficients[0]
    np.testing.assert_allclose(found, scaled.fit("y", ["a", "c"]).coefficients[:, 0], rtol=1e-10)
