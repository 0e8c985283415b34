"""Fits from summaries against statsmodels and pyfixest, which see the rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyfixest as pf
import pytest
import statsmodels.formula.api as smf
from sklearn.datasets import load_diabetes, load_wine

import partsketch as ps
from tests.questions.data import clustered_rows

ROWS = clustered_rows()

#: What both packages lose to rounding on columns this well conditioned, with room.
CLOSE = 1e-9


def asked(rows: pd.DataFrame = ROWS, **keywords: Any) -> ps.Summaries:
    return ps.summarise(rows, ["a", "b", "c", "y"], partition_by="g", **keywords)


def real_rows(name: str) -> pd.DataFrame:
    """Return a table of scikit-learn with its target y and clusters by order."""
    table = {"diabetes": load_diabetes, "wine": load_wine}[name](as_frame=True)
    frame = table.data.rename(columns=lambda column: column.replace("/", "_")).assign(y=table.target.astype(float))
    return frame.assign(g=np.arange(len(frame)) % 11)


def test_least_squares_is_that_of_statsmodels() -> None:
    model, other = asked().fit("y", ["a", "b", "c"]), smf.ols("y ~ a + b + c", ROWS).fit()
    np.testing.assert_allclose(model.column_coefficients[:, 0], other.params, rtol=CLOSE)
    np.testing.assert_allclose(model.standard_errors, other.bse, rtol=CLOSE)
    np.testing.assert_allclose(model.t_values, other.tvalues, rtol=CLOSE)
    np.testing.assert_allclose(model.p_values, other.pvalues, rtol=1e-7, atol=1e-300)
    np.testing.assert_allclose(model.conf_int(), other.conf_int(), rtol=CLOSE)
    assert model.inferences[0].r_squared == pytest.approx(other.rsquared, rel=CLOSE)


@pytest.mark.parametrize("name", ["diabetes", "wine"])
def test_real_data_with_clusters(name: str) -> None:
    rows = real_rows(name)
    features = [column for column in rows.columns if column not in ("y", "g")]
    model = ps.summarise(rows, partition_by="g").fit("y", features, vcov="CRV1")
    formula = "y ~ " + " + ".join(features)
    other = smf.ols(formula, rows).fit(cov_type="cluster", cov_kwds={"groups": rows["g"]}, use_t=True)
    np.testing.assert_allclose(model.column_coefficients[:, 0], other.params, rtol=1e-8)
    np.testing.assert_allclose(model.standard_errors, other.bse, rtol=1e-8)
    np.testing.assert_allclose(model.p_values, other.pvalues, rtol=1e-7)


@pytest.mark.filterwarnings("ignore")  # of what pyfixest asks of pandas
@pytest.mark.parametrize("intercept", ["common", "partition", False])
@pytest.mark.parametrize("vcov", ["iid", "CRV1", "CRV3"])
def test_pyfixest_finds_the_same(intercept: Any, vcov: str) -> None:
    right = {"common": "a + b + c", "partition": "a + b + c | g", False: "0 + a + b + c"}[intercept]
    count = ROWS["g"].nunique()
    # CRV3 is the jackknife of the literature, (g − 1)/g Σ; pyfixest multiplies the sum by the factors of CRV1.
    plain = pf.ssc(k_adj=vcov != "CRV3", G_adj=vcov != "CRV3")
    factor = np.sqrt((count - 1) / count) if vcov == "CRV3" else 1.0
    other = pf.feols(f"y ~ {right}", ROWS, vcov="iid" if vcov == "iid" else {vcov: "g"}, ssc=plain)
    model = asked().fit("y", ["a", "b", "c"], intercept=intercept, vcov=vcov)
    np.testing.assert_allclose(model.column_coefficients[:, 0], other.coef(), rtol=CLOSE)
    np.testing.assert_allclose(model.standard_errors, factor * other.se(), rtol=CLOSE)
    if vcov != "CRV3":
        np.testing.assert_allclose(model.p_values, other.pvalue(), rtol=1e-6, atol=1e-15)


def test_weights_are_those_of_statsmodels() -> None:
    summaries = ps.summarise(ROWS, ["a", "b", "c", "y"], partition_by="g", weights="w")
    other = smf.wls("y ~ a + b + c", ROWS, weights=ROWS["w"]).fit()
    model = summaries.fit("y", ["a", "b", "c"])
    np.testing.assert_allclose(model.column_coefficients[:, 0], other.params, rtol=CLOSE)
    np.testing.assert_allclose(model.standard_errors, other.bse, rtol=CLOSE)
    robust = smf.wls("y ~ a + b + c", ROWS, weights=ROWS["w"]).fit(
        cov_type="cluster", cov_kwds={"groups": ROWS["g"]}, use_t=True
    )
    np.testing.assert_allclose(summaries.fit("y", ["a", "b", "c"], vcov="CRV1").standard_errors, robust.bse, rtol=CLOSE)


@pytest.mark.parametrize("far", [0.0, 1000.0])
def test_intercepts_of_partitions(far: float) -> None:
    rows = ROWS.assign(a=ROWS["a"] + far)
    model = asked(rows).fit("y", ["a", "b", "c"], intercept="partition")
    dummies = smf.ols("y ~ a + b + c + C(g) - 1", rows).fit()
    np.testing.assert_allclose(model.coefficients[:, 0], dummies.params[["a", "b", "c"]], rtol=1e-8)
    np.testing.assert_allclose(model.standard_errors, dummies.bse[["a", "b", "c"]], rtol=1e-8)
    np.testing.assert_allclose(model.partition_intercepts[:, 0], dummies.params[:9], rtol=1e-8)
    with pytest.raises(ps.InputError, match="intercept for each partition"):
        model.predict(ROWS)


def exact_errors(rows: pd.DataFrame, vcov: str) -> tuple[list[float], list[float]]:
    """Return coefficients and squared cluster errors of y on 1, a, b, c without any rounding."""
    X = [[Fraction(1), *(Fraction(float(value)) for value in row)] for row in rows[["a", "b", "c"]].to_numpy()]
    y = [Fraction(float(value)) for value in rows["y"]]
    groups = rows["g"].tolist()
    size = len(X[0])
    grams: dict[Any, list[list[Fraction]]] = {}
    for row, value, group in zip(X, y, groups, strict=True):
        gram = grams.setdefault(group, [[Fraction(0)] * (size + 1) for _ in range(size)])
        full = [*row, value]
        for i in range(size):
            for j in range(size + 1):
                gram[i][j] += row[i] * full[j]

    def solve(systems: list[list[list[Fraction]]], right: list[list[Fraction]]) -> list[list[Fraction]]:
        matrix = [
            [sum((g[i][j] for g in systems), Fraction(0)) for j in range(size)] + [r[i] for r in right]
            for i in range(size)
        ]
        for i in range(size):
            pivot = next(k for k in range(i, size) if matrix[k][i] != 0)
            matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
            matrix[i] = [value / matrix[i][i] for value in matrix[i]]
            for k in range(size):
                if k != i and matrix[k][i] != 0:
                    matrix[k] = [a - matrix[k][i] * b for a, b in zip(matrix[k], matrix[i], strict=True)]
        return [[matrix[i][size + c] for i in range(size)] for c in range(len(right))]

    everybody = list(grams.values())
    beta = solve(everybody, [[sum((g[i][size] for g in everybody), Fraction(0)) for i in range(size)]])[0]
    count, n = len(grams), len(X)
    if vcov == "CRV1":
        scores = [[g[i][size] - sum(g[i][j] * beta[j] for j in range(size)) for i in range(size)] for g in everybody]
        moved = solve(everybody, scores)
        scale = Fraction(count, count - 1) * Fraction(n - 1, n - size)
    else:
        moved = []
        for group in grams:
            others = [g for name, g in grams.items() if name != group]
            without = solve(others, [[sum((g[i][size] for g in others), Fraction(0)) for i in range(size)]])[0]
            moved.append([a - b for a, b in zip(without, beta, strict=True)])
        scale = Fraction(count - 1, count)
    squares = [scale * sum(move[i] ** 2 for move in moved) for i in range(size)]
    return [float(value) for value in beta], [float(value) for value in squares]


@pytest.mark.parametrize("vcov", ["CRV1", "CRV3"])
@pytest.mark.parametrize("near", [1e-4, 1e-8])
def test_columns_that_nearly_depend_lose_no_digits(vcov: str, near: float) -> None:
    """A condition number of 1e8, against fractions: no Gram matrix in doubles would keep a digit of this."""
    rows = clustered_rows(160, 5, near=near)
    beta, squares = exact_errors(rows, vcov)
    model = ps.summarise(rows, ["a", "b", "c", "y"], partition_by="g").fit("y", ["a", "b", "c"], vcov=vcov)
    # Twice the digits all the way leave some units in the last place; scores in doubles would be 1e-9 off.
    np.testing.assert_allclose(model.column_coefficients[:, 0], beta, rtol=1e-12)
    np.testing.assert_allclose(model.standard_errors, np.sqrt(squares), rtol=1e-12)


@pytest.mark.parametrize("vcov", ["CRV1", "CRV3"])
def test_columns_far_from_zero_change_nothing(vcov: str) -> None:
    near, far = (asked(ROWS.assign(c=ROWS["c"].round(3) + shift)).fit("y", vcov=vcov) for shift in (0, 2**24))
    np.testing.assert_allclose(near.standard_errors[1:], far.standard_errors[1:], rtol=1e-8)


def test_a_partition_that_alone_knows_a_column() -> None:
    rows = ROWS.assign(c=np.where(ROWS["g"] == 3, ROWS["c"], 0.0))
    summaries = asked(rows)
    assert summaries.fit("y", vcov="CRV1").standard_errors.shape == (4,)
    with pytest.raises(ps.InputError, match="Without partition '3'"):
        summaries.fit("y", vcov="CRV3")


def test_a_partition_that_knows_nearly_all_of_a_column_is_not_subtracted() -> None:
    """The others know 1e-14 of a column's squares: subtracting Gram matrices would leave two digits of it."""
    rows = clustered_rows(160, 5)
    rows["c"] *= np.where(rows["g"] == 3, 1.0, 2.0**-23)
    _, squares = exact_errors(rows, "CRV3")
    model = asked(rows).fit("y", ["a", "b", "c"], vcov="CRV3")
    np.testing.assert_allclose(model.standard_errors, np.sqrt(squares), rtol=1e-7)


def test_dependent_columns_get_the_errors_of_what_is_determined() -> None:
    rows = ROWS.assign(d=ROWS["a"] - ROWS["b"])
    summaries = ps.summarise(rows, ["a", "b", "d", "c", "y"], partition_by="g")
    with_d, without = (
        summaries.fit("y", features, vcov="CRV1") for features in (["a", "b", "d", "c"], ["a", "b", "c"])
    )
    # Column c is not touched by the dependence of the others.
    assert with_d.standard_errors[-1] == pytest.approx(without.standard_errors[-1], rel=1e-8)


def test_ridge_is_that_of_a_fit() -> None:
    direct = ps.fit(ROWS, "y", ["a", "b", "c"], method="exact", alpha=30.0)
    model = asked().fit("y", alpha=30.0)
    np.testing.assert_allclose(model.coefficients, direct.coefficients, rtol=1e-11)
    with pytest.raises(ps.InputError, match="no standard errors"):
        _ = model.standard_errors


def test_penalties_may_be_numbers_of_numpy() -> None:
    alpha, share = np.int64(3), np.float32(0.5)
    assert asked().fit("y", alpha=alpha).record.options["alpha"] == 3.0  # type: ignore[arg-type]
    assert asked().lasso_path("y", ["a"], l1_ratio=share, folds=2).l1_ratio == 0.5  # type: ignore[arg-type]


def test_several_targets() -> None:
    summaries = ps.summarise(ROWS, ["a", "b", "c", "y", "z"], partition_by="g")
    both = summaries.fit(["y", "z"], ["a", "b"], vcov="CRV1")
    for number, target in enumerate(("y", "z")):
        one = summaries.fit(target, ["a", "b"], vcov="CRV1")
        np.testing.assert_allclose(both.standard_errors[number], one.standard_errors, rtol=1e-13)


def test_a_formula_asks_the_same() -> None:
    summaries = asked()
    one, other = summaries.fit("y ~ a + c", vcov="CRV1"), summaries.fit("y", ["a", "c"], vcov="CRV1")
    np.testing.assert_array_equal(one.standard_errors, other.standard_errors)
    assert summaries.fit("y ~ a + 0").column_names == ("a",)
    assert summaries.fit("y ~ .").feature_names == ("a", "b", "c")


def test_a_saved_model_keeps_its_errors(tmp_path: Any) -> None:
    for vcov in ("iid", "CRV1", "CRV3", "wild"):
        model = asked().fit("y", vcov=vcov, draws=199)
        model.save(tmp_path / "model.json")
        again = ps.load(tmp_path / "model.json")
        np.testing.assert_array_equal(again.conf_int(), model.conf_int())
        np.testing.assert_array_equal(again.p_values, model.p_values)
        assert again.inferences[0].vcov == vcov


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"target": "q"}, "no column 'q'"),
        ({"target": "y", "features": ["a", "y"]}, "both the target and a feature"),
        ({"target": "y", "features": ["a", "a"]}, "named twice"),
        ({"target": "y", "features": []}, None),
        ({"target": None}, "Name a target"),
        ({"target": "y", "vcov": "HC1"}, "choose among iid, CRV1"),
        ({"target": "y", "vcov": "CRV1", "alpha": 1.0}, "biased on purpose"),
        ({"target": "y", "alpha": -1.0}, "at least 0"),
        ({"target": "y", "intercept": True}, "choose 'common', 'partition' or False"),
        ({"target": "y", "vcov": "wild", "weights": "normal"}, "webb"),
        ({"target": "y ~ a", "features": ["b"]}, "not both"),
    ],
)
def test_what_cannot_be_asked(keywords: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert asked().fit(**keywords).column_names == ("(intercept)",)
        return
    with pytest.raises(ps.InputError, match=message):
        asked().fit(**keywords)


def test_one_partition_is_no_cluster() -> None:
    with pytest.raises(ps.InputError, match="there is one only"):
        ps.summarise(ROWS, ["a", "y"]).fit("y", vcov="CRV1")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda s: s.fit(5, ["a"]), "5 is not the name of a column"),
        (lambda s: s.fit("y", [1, 2]), "1 is not the name of a column"),
        (lambda s: s.fit("y", ["a"], vcov="HC1"), "other errors need the rows"),
        (lambda s: s.fit("y", ["a"], vcov={"CRV1": "g"}), "which take partitions for clusters"),
        (lambda s: s.fit("y", ["a", "y"]), "both the target and a feature"),
        (lambda s: s.fit("y", [], intercept="partition"), "nothing to fit"),
        (lambda s: s.ridge_path("y", folds=2.5), "folds is 2.5"),
        (lambda s: s.ridge_path("y", alphas=1.0, folds=3), "give a list of positive numbers"),
        (lambda s: s.ridge_path("seven", ["a"], folds=3), "there is no path"),
        (lambda s: s.lasso_path("seven", ["a"], folds=3), "there is no path"),
        (lambda s: ps.table(s), "a list of models"),
        (lambda s: ps.table(["x"]), "a list of models"),  # type: ignore[list-item]
    ],
)
def test_questions_that_make_no_sense(ask: Callable[[ps.Summaries], object], message: str) -> None:
    summaries = ps.summarise(ROWS.assign(seven=7.0), ["a", "b", "seven", "y"], partition_by="g")
    with pytest.raises(ps.InputError, match=message):
        ask(summaries)


@pytest.mark.parametrize("vcov", ["CRV1", "CRV3", "wild"])
def test_variances_beyond_doubles_are_refused(vcov: Any) -> None:
    """Errors of 1e163 are doubles, their squares are not; without clusters the errors are stated alone."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=200)
    summaries = ps.summarise({"x": x, "y": 1e165 * (x + draw.normal(size=200))}, n_partitions=4)
    assert np.isfinite(summaries.fit("y").standard_errors).all()
    with pytest.raises(ps.InputError, match=f"Variances by {vcov} of a fit to 'y' are larger than the largest double"):
        summaries.fit("y", vcov=vcov)


def test_a_column_that_is_constant_within_partitions_is_not_called_zero() -> None:
    rows = clustered_rows().assign(level=lambda frame: 3.0 + frame["g"])
    model = ps.summarise(rows, ["a", "level", "y"], partition_by="g").fit("y", intercept="partition")
    assert any("'level' is constant within every partition" in sentence for sentence in model.record.warnings)
    assert not any("zero in every row" in sentence for sentence in model.record.warnings)
