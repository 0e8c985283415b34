"""Robust standard errors from rows: the numbers of statsmodels and pyfixest, from every source, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyfixest as pf
import pytest
import statsmodels.api as sm
from click.testing import CliRunner

import partsketch as ps
from partsketch.cli import commands
from partsketch.fitting.robust.scores import ByCluster, segment_rows_for

FEATURES = ["a", "b", "c"]


def rows(count: int = 1500, clusters: int = 30, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(count, 3)), columns=FEATURES)
    cluster = rng.integers(0, clusters, count)
    noise = rng.normal(size=count) * (1 + frame["a"] ** 2) + rng.normal(size=clusters)[cluster] * frame["b"]
    weights = rng.uniform(0.5, 2.0, count)
    weights[:7] = 0.0
    return frame.assign(
        y=frame["a"] + 2 * frame["b"] + noise, city=[f"city {i}" for i in cluster], number=cluster, w=weights
    )


FRAME = rows()


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_numbers_of_statsmodels(kind: str, weighted: bool, intercept: bool) -> None:
    # Rows of weight zero are observations to statsmodels, though not to R, Stata and fixest.
    rows = FRAME[7:] if weighted else FRAME
    X = sm.add_constant(rows[FEATURES]) if intercept else rows[FEATURES]
    known = sm.WLS(rows["y"], X, weights=rows["w"] if weighted else 1.0).fit(cov_type=kind)
    model = ps.fit(rows, "y", FEATURES, vcov=kind, weights="w" if weighted else None, fit_intercept=intercept)
    # Sums of 1500 well-conditioned rows: twelve digits are left with room.
    np.testing.assert_allclose(model.standard_errors, known.bse, rtol=1e-12)
    assert model.inferences[0].covariance is not None
    np.testing.assert_allclose(model.inferences[0].covariance, known.cov_params(), rtol=1e-10, atol=1e-12)
    assert model.inferences[0].vcov == kind


@pytest.mark.parametrize("kind", ["HC1", "HC2", "HC3", "CRV3:city"])
@pytest.mark.parametrize("columns", [31, 32])
def test_rows_of_many_columns(kind: str, columns: int) -> None:
    """With the target 32 columns are summed strip by strip, more by products of the library."""
    rng = np.random.default_rng(7)
    X = np.column_stack([np.ones(400), rng.normal(size=(400, columns - 1))])
    city, w = rng.integers(0, 9, 400), rng.uniform(0.5, 2.0, 400)
    y = X.sum(axis=1) + rng.normal(size=400) * (1 + X[:, 1] ** 2)
    bread = np.linalg.inv(X.T @ (w[:, None] * X))
    beta = bread @ X.T @ (w * y)
    residuals, leverages = y - X @ beta, w * np.einsum("ij,jk,ik->i", X, bread, X)
    if kind == "CRV3:city":
        left_out = []
        for label in range(9):
            Z, v = X[city != label], w[city != label]
            left_out.append(np.linalg.solve(Z.T @ (v[:, None] * Z), Z.T @ (v * y[city != label])) - beta)
        known = 8 / 9 * np.array(left_out).T @ np.array(left_out)
    else:
        power = {"HC1": 0, "HC2": 1, "HC3": 2}[kind]
        scores = X * (w * residuals / (1 - leverages) ** (power / 2))[:, None]
        known = bread @ scores.T @ scores @ bread * (400 / (400 - columns) if kind == "HC1" else 1)
    table = pa.table({f"x{i}": X[:, i] for i in range(1, columns)} | {"y": y, "city": city, "w": w})
    model = ps.fit(table, "y", [f"x{i}" for i in range(1, columns)], vcov=kind, weights="w")
    # The inverse of the Gram matrix above loses a few of sixteen digits.
    np.testing.assert_allclose(model.standard_errors, np.sqrt(np.diag(known)), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # pyfixest's own
@pytest.mark.parametrize("column", ["city", "number"])
def test_numbers_of_pyfixest(column: str) -> None:
    first = pf.feols("y ~ a + b + c", FRAME, vcov={"CRV1": column})
    model = ps.fit(FRAME, "y", FEATURES, vcov={"CRV1": column})
    np.testing.assert_allclose(model.standard_errors, first.se(), rtol=1e-12)
    # pyfixest takes small p-values from 1, which leaves them 1e-16.
    np.testing.assert_allclose(model.p_values, first.pvalue(), rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(model.conf_int(), first.confint(), rtol=1e-10)
    # CRV3 is (g − 1)/g Σ, as in the literature; pyfixest has the sum alone without its factors.
    third = pf.feols("y ~ a + b + c", FRAME, vcov={"CRV3": column}, ssc=pf.ssc(k_adj=False, G_adj=False))
    jackknifed = ps.fit(FRAME, "y", FEATURES, vcov={"CRV3": column})
    count = FRAME[column].nunique()
    np.testing.assert_allclose(jackknifed.standard_errors, third.se() * np.sqrt((count - 1) / count), rtol=1e-10)
    weighted = pf.feols("y ~ a + b + c", FRAME[7:], vcov={"CRV1": column}, weights="w")
    known = ps.fit(FRAME[7:], "y", FEATURES, vcov={"CRV1": column}, weights="w")
    np.testing.assert_allclose(known.standard_errors, weighted.se(), rtol=1e-12)


def test_partitions_of_summaries_give_the_same() -> None:
    summaries = ps.summarise(FRAME, ["y", *FEATURES], partition_by="city")
    for kind in ("CRV1", "CRV3"):
        from_rows = ps.fit(FRAME, "y", FEATURES, vcov={kind: "city"})
        np.testing.assert_allclose(
            summaries.fit("y", FEATURES, vcov=kind).standard_errors, from_rows.standard_errors, 1e-10
        )


@pytest.mark.parametrize("vcov", ["HC3", "CRV1:number", "CRV3:number"])
def test_sources_and_blocks_change_nothing(vcov: str, tmp_path: Path) -> None:
    """Every way to hold the rows gives the same bits; whole numbers of a CSV come as doubles."""
    known = ps.fit(FRAME, "y", FEATURES, vcov=vcov)
    FRAME.to_parquet(tmp_path / "rows.parquet", row_group_size=200)
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    for data in (pa.Table.from_pandas(FRAME), tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        np.testing.assert_array_equal(ps.fit(data, "y", FEATURES, vcov=vcov).standard_errors, known.standard_errors)
    frame = FRAME[[*FEATURES, "number"]] if ":" in vcov else FRAME[FEATURES]
    estimator = ps.SketchedRegression(vcov=vcov).fit(frame, FRAME["y"])
    np.testing.assert_array_equal(estimator.model_.standard_errors, known.standard_errors)
    np.testing.assert_allclose(estimator.predict(frame), known.predict(FRAME), rtol=1e-12)


def test_many_segments_and_clusters() -> None:
    """More rows than a segment: sums of clusters are merged along the tree."""
    rng = np.random.default_rng(1)
    count, clusters = 200_000, 50_000
    cluster = rng.integers(0, clusters, count)
    x = rng.normal(size=count)
    y = x + rng.normal(size=clusters)[cluster] * x
    model = ps.fit(pa.table({"x": x, "y": y, "id": cluster}), "y", ["x"], vcov={"CRV1": "id"})
    X = np.column_stack([np.ones(count), x])
    residuals = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    scores = np.column_stack([np.bincount(cluster, residuals * column, clusters) for column in X.T])
    bread = np.linalg.inv(X.T @ X)
    found = int((np.bincount(cluster, minlength=clusters) > 0).sum())
    scale = found / (found - 1) * (count - 1) / (count - 2)
    known = np.sqrt(np.diag(scale * bread @ scores.T @ scores @ bread))
    np.testing.assert_allclose(model.standard_errors, known, rtol=1e-10)
    assert model.inferences[0].degrees_of_freedom == found - 1
    assert segment_rows_for(clusters) == 131072


def test_sums_of_clusters_are_merged_by_their_number() -> None:
    first, second = np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[10.0, 1.0], [20.0, 3.0]])
    np.testing.assert_array_equal(ByCluster().merge(first, second), [[1, 0], [10, 1], [22, 3]])
    np.testing.assert_array_equal(ByCluster().merge(first, 4 * first * [1, 0.25]), [[5, 0], [10, 3]])


@pytest.mark.parametrize("kind", ["HC1", "HC3", "CRV1:number", "CRV3:number"])
def test_columns_far_from_zero_and_nearly_dependent(kind: str) -> None:
    """Time stamps, tiny units and a column that is nearly another change nothing but units."""
    far = FRAME.assign(b=FRAME["b"] * 1e-9, c=1.7e9 + np.round(FRAME["c"] * 1e4))
    near = FRAME.assign(c=np.round(FRAME["c"] * 1e4) / 1e4)
    scales = [1, 1e9, 1e-4]
    known = ps.fit(near, "y", FEATURES, vcov=kind).standard_errors[1:]
    np.testing.assert_allclose(ps.fit(far, "y", FEATURES, vcov=kind).standard_errors[1:], known * scales, rtol=1e-9)
    # a and a + b / 1000 span what a and b span: the error of their difference is known.
    mixed = FRAME.assign(c=FRAME["c"], b=FRAME["a"] + FRAME["b"] / 1024)
    plain = ps.fit(FRAME, "y", FEATURES, vcov=kind).standard_errors
    found = ps.fit(mixed, "y", FEATURES, vcov=kind).standard_errors
    np.testing.assert_allclose([found[2], found[3]], [plain[2] * 1024, plain[3]], rtol=1e-8)


def test_several_targets_and_dependent_columns() -> None:
    frame = FRAME.assign(z=FRAME["y"] ** 2, copy=FRAME["a"] + FRAME["b"])
    for vcov in ("HC2", "CRV1:city"):
        both = ps.fit(frame, ["y", "z"], FEATURES, vcov=vcov)
        for number, target in enumerate(("y", "z")):
            single = ps.fit(frame, target, FEATURES, vcov=vcov)
            np.testing.assert_allclose(both.standard_errors[number], single.standard_errors, rtol=1e-13)
    with pytest.warns(ps.PartsketchWarning):
        dependent = ps.fit(frame, "y", [*FEATURES, "copy"], vcov="HC1")
    # c does not depend on the others, so its error is that of a fit without the copy.
    plain = ps.fit(frame, "y", FEATURES, vcov="HC1")
    np.testing.assert_allclose(dependent.predict(frame), plain.predict(frame), rtol=1e-9)
    assert dependent.standard_errors[3] == pytest.approx(plain.standard_errors[3], rel=1e-10)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"vcov": "HC9"}, "vcov is 'HC9': choose 'iid', 'HC0'"),
    ({"vcov": "CRV1"}, "needs the column of the clusters"),
    ({"vcov": {"CRV2": "city"}}, "vcov is 'CRV2:city'"),
    ({"vcov": {"CRV1": 3}}, "vcov is {'CRV1': 3}"),
    ({"vcov": "HC1", "method": "stack"}, "goes with method='exact'"),
    ({"vcov": "HC1", "alpha": 1.0}, "and alpha=0"),
    ({"vcov": "HC1", "limits": {"max_excess": "1%"}}, "'auto' without limits"),
    ({"vcov": "HC1", "method": "exact", "route": "iterate"}, "needs the factor of all rows"),
    ({"vcov": "CRV1:city", "partition_by": "number"}, "leave partition_by out"),
    ({"vcov": "CRV1:town"}, "There is no column 'town'"),
]


@pytest.mark.parametrize(("asked", "sentence"), REFUSED)
def test_refusals(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ps.InputError) as error:
        ps.fit(FRAME, "y", FEATURES, **asked)
    assert sentence in str(error.value)


def test_what_rows_and_clusters_cannot_answer() -> None:
    rare = FRAME.assign(only=(np.arange(len(FRAME)) == 77).astype(float))
    for kind in ("HC2", "HC3"):
        with pytest.raises(ps.InputError, match="Row 77 alone determines a coefficient"):
            ps.fit(rare, "y", [*FEATURES, "only"], vcov=kind)
    with pytest.warns(ps.PartsketchWarning, match="HC1 see no noise in the coefficient of 'only'"):
        assert np.isfinite(ps.fit(rare, "y", [*FEATURES, "only"], vcov="HC1").standard_errors).all()
    with pytest.raises(ps.InputError, match="needs at least two clusters"):
        ps.fit(FRAME.assign(city="one"), "y", FEATURES, vcov="CRV1:city")
    place = str(FRAME["city"][77])
    with pytest.raises(ps.InputError, match=f"Without the rows of cluster '{place}' the others do not determine"):
        ps.fit(rare, "y", [*FEATURES, "only"], vcov="CRV3:city")
    reader = pa.Table.from_pandas(FRAME[["y", "a"]]).to_reader()
    with pytest.raises(ps.InputError, match="reads the rows twice"):
        ps.fit(reader, "y", vcov="HC1")
    with pytest.raises(ps.InputError, match="partial_fit has each batch once"):
        ps.SketchedRegression(vcov="HC1").partial_fit(FRAME[FEATURES], FRAME["y"])


def test_missing_clusters_are_refused_or_left_out() -> None:
    frame = FRAME.assign(city=FRAME["city"].where(FRAME["number"] != 3))
    with pytest.raises(ps.InputError, match="Column 'city' has a missing value in row"):
        ps.fit(frame, "y", FEATURES, vcov="CRV1:city")
    with pytest.warns(ps.PartsketchWarning, match="rows with missing values or of weight zero were dropped"):
        model = ps.fit(frame, "y", FEATURES, vcov="CRV1:city", missing="drop")
    known = ps.fit(frame.dropna(), "y", FEATURES, vcov="CRV1:city")
    np.testing.assert_allclose(model.standard_errors, known.standard_errors, rtol=1e-12)


def test_clusters_of_one_row_are_hc() -> None:
    """With every row its own cluster CRV1 is HC0 times the factors of both, and CRV3 is HC3 times (n − 1)/n."""
    frame = FRAME.assign(row=np.arange(len(FRAME)))
    count = len(frame)
    crv1 = ps.fit(frame, "y", FEATURES, vcov="CRV1:row").standard_errors
    hc0, hc3 = (ps.fit(frame, "y", FEATURES, vcov=kind).standard_errors for kind in ("HC0", "HC3"))
    np.testing.assert_allclose(crv1, hc0 * np.sqrt(count / (count - 1) * (count - 1) / (count - 4)), rtol=1e-12)
    crv3 = ps.fit(frame, "y", FEATURES, vcov="CRV3:row").standard_errors
    np.testing.assert_allclose(crv3, hc3 * np.sqrt((count - 1) / count), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # pyfixest's own
def test_a_formula_and_clusters_in_the_command(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "rows.parquet")
    path, out = str(tmp_path / "rows.parquet"), str(tmp_path / "model.json")
    words = ["fit", path, "--formula", "y ~ a * b + c", "--vcov", "CRV1:city", "--model", out, "--summary"]
    result = CliRunner().invoke(commands, words)
    assert result.exit_code == 0, result.output
    assert "take the values of column 'city' for clusters (CRV1)" in " ".join(result.output.split())
    saved = ps.load(out)
    known = pf.feols("y ~ a * b + c", FRAME, vcov={"CRV1": "city"}).se()
    found = dict(zip(saved.column_names, saved.standard_errors, strict=True))
    for name, error in known.items():
        assert found[name.replace("Intercept", "(intercept)")] == pytest.approx(error, rel=1e-10), name
    assert saved.record.options["vcov"] == "CRV1:city"
    assert saved.test("a = 1, c = 0").df == (2, 29)


def test_few_clusters_are_told_of() -> None:
    """Two clusters leave one degree of freedom: the table says so, and of many says nothing."""
    two = ps.fit(FRAME.assign(half=FRAME.index % 2), "y", FEATURES, vcov="CRV1:half")
    assert "There are 2 clusters only: t has 1 degree of freedom" in str(two.summary())
    with pytest.raises(ps.InputError, match="what others call so is 'HC1' here"):
        ps.fit(FRAME, "y", FEATURES, vcov="hetero")
    assert "clusters only" not in str(ps.fit(FRAME, "y", FEATURES, vcov="CRV1:number").summary())
    few = ps.summarise(FRAME.assign(third=FRAME.index % 3), ["y", *FEATURES], partition_by="third")
    assert "There are 3 clusters only: t has 2 degrees of freedom" in str(few.fit("y", vcov="CRV3").summary())
    assert "clusters only" not in str(few.fit("y").summary())


def test_a_table_without_errors_has_no_columns_for_them() -> None:
    ridge = ps.summarise(FRAME, ["y", *FEATURES]).fit("y", alpha=1.0)
    assert "std err" not in str(ridge.summary())
    assert "No standard errors: a ridge fit" in str(ridge.summary())
    assert "std err" not in ridge.summary().to_html()


@pytest.mark.filterwarnings("ignore:7 rows with missing values or of weight zero")
@pytest.mark.parametrize("scale", [2.0**-900, 2.0**-540, 2.0**900])
def test_weights_in_any_unit(scale: float) -> None:
    """Squares of scores would be zero, or beyond doubles; the factor is a power of two and the errors are the same."""
    frame, columns = FRAME.assign(half=FRAME.index % 20), FEATURES
    scaled = frame.assign(w=frame["w"] * scale)
    for vcov in ("HC0", "HC1", "HC3", "CRV1:number", "CRV1:number + half", "CRV3:half"):
        known, found = (ps.fit(table, "y", columns, weights="w", vcov=vcov) for table in (frame, scaled))
        # The scores are summed in other coordinates: rounding differs.
        np.testing.assert_allclose(found.standard_errors, known.standard_errors, rtol=1e-11, err_msg=vcov)
        near, far = (model.predict(frame[:9], interval="confidence") for model in (known, found))
        np.testing.assert_allclose(far, near, rtol=1e-10, err_msg=vcov)
    known, found = (ps.fit(t, "y", columns, weights="w", absorb="number", vcov="HC1") for t in (frame, scaled))
    np.testing.assert_allclose(found.standard_errors, known.standard_errors, rtol=1e-11)
    # With weights and residuals small together, coordinates alone would not do.
    small = ps.fit(scaled.assign(y=frame["y"] * 2.0**-60), "y", columns, weights="w", vcov="HC3")
    known = ps.fit(frame, "y", columns, weights="w", vcov="HC3")
    np.testing.assert_allclose(small.standard_errors * 2.0**60, known.standard_errors, rtol=1e-11)
