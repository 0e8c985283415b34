"""Intervals of predictions against statsmodels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import partsketch as ps
from partsketch.cli import run
from tests.questions.data import clustered_rows

ROWS = clustered_rows()
NEW = clustered_rows(40, seed=9)
SUMMARIES = ps.summarise(ROWS, ["a", "b", "c", "y"], partition_by="g")


@pytest.mark.parametrize("intercept", ["common", False])
@pytest.mark.parametrize("vcov", ["iid", "CRV1"])
def test_statsmodels_has_the_same(vcov: str, intercept: str | bool) -> None:
    clusters = {"cov_type": "cluster", "cov_kwds": {"groups": ROWS["g"]}, "use_t": True} if vcov == "CRV1" else {}
    formula = "y ~ a + b + c" + ("" if intercept else " - 1")
    other = smf.ols(formula, ROWS).fit(**clusters).get_prediction(NEW).summary_frame(alpha=0.1)
    model = SUMMARIES.fit("y", vcov=vcov, intercept=intercept)  # type: ignore[arg-type]
    np.testing.assert_allclose(model.prediction_errors(NEW), other["mean_se"], rtol=1e-8)
    if vcov == "iid":
        mean = model.predict(NEW, interval="confidence", level=0.9)
        np.testing.assert_allclose(mean, other[["mean", "mean_ci_lower", "mean_ci_upper"]], rtol=1e-8)
        new = model.predict(NEW, interval="prediction", level=0.9)
        np.testing.assert_allclose(new, other[["mean", "obs_ci_lower", "obs_ci_upper"]], rtol=1e-8)


def test_columns_far_from_zero_change_nothing() -> None:
    shifted = [frame.assign(c=frame["c"].round(3) + 2**30) for frame in (ROWS, NEW)]
    plain = [frame.assign(c=frame["c"].round(3)) for frame in (ROWS, NEW)]
    for vcov in ("iid", "CRV1"):
        far, near = (
            ps.summarise(rows, ["a", "b", "c", "y"], partition_by="g").fit("y", vcov=vcov).prediction_errors(new)
            for rows, new in (shifted, plain)
        )
        np.testing.assert_allclose(far, near, rtol=1e-7)


def test_the_command_writes_them(tmp_path: Path) -> None:
    model = SUMMARIES.fit("y")
    model.save(tmp_path / "model.json")
    NEW.to_csv(tmp_path / "new.csv", index=False)
    output = tmp_path / "out.csv"
    asked = ["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv"), "-o", str(output)]
    assert run([*asked, "--interval", "prediction", "--level", "0.8"]) == 0
    written = pd.read_csv(output)
    assert list(written.columns) == ["prediction", "lower", "upper", "standard_error"]
    np.testing.assert_allclose(written.iloc[:, :3], model.predict(NEW, interval="prediction", level=0.8), rtol=1e-12)
    np.testing.assert_allclose(written["standard_error"], model.prediction_errors(NEW), rtol=1e-12)


def test_several_targets_and_what_has_no_interval() -> None:
    both = ps.summarise(ROWS, ["a", "y", "z"]).fit(["y", "z"], ["a"])
    assert both.predict(NEW, interval="confidence").shape == (40, 2, 3)
    with pytest.raises(ps.InputError, match="no standard errors"):
        SUMMARIES.fit("y", alpha=1.0).predict(NEW, interval="confidence")
    with pytest.raises(ps.InputError, match="wild bootstrap"):
        SUMMARIES.fit("y", vcov="wild", draws=99).predict(NEW, interval="confidence")
    with pytest.raises(ps.InputError, match="choose 'confidence' or 'prediction'"):
        both.predict(NEW, interval="both")  # type: ignore[arg-type]


def test_predictions_beyond_doubles_are_refused(tmp_path: Path) -> None:
    model = ps.fit(pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 3.0, 6.1, 9.0]}), target="y")
    new = pd.DataFrame({"a": [1.0, 1e308, 2.0]})
    for interval in (None, "confidence", "prediction"):
        with pytest.raises(ps.InputError, match="What is predicted of row 1 is larger than any number"):
            model.predict(new, interval=interval)
    # Of this row the mean is a number, its variance is none.
    with pytest.raises(ps.InputError, match="of row 0"):
        model.prediction_errors(pd.DataFrame({"a": [1e200]}))
    model.save(tmp_path / "model.json")
    new.to_csv(tmp_path / "new.csv", index=False)
    assert run(["predict", str(tmp_path / "model.json"), str(tmp_path / "new.csv"), "-o", str(tmp_path / "p.csv")]) == 2
    assert not (tmp_path / "p.csv").exists()


@pytest.mark.parametrize("interval", [[], ["--interval", "prediction"]])
def test_a_file_of_nothing_but_missing_values_has_no_predictions(interval: list[str], tmp_path: Path) -> None:
    SUMMARIES.fit("y", ["a"]).save(tmp_path / "model.json")
    pd.DataFrame({"a": [np.nan] * 3}).to_parquet(tmp_path / "new.parquet")
    asked = ["predict", str(tmp_path / "model.json"), str(tmp_path / "new.parquet"), "-o", str(tmp_path / "p.csv")]
    assert run([*asked, "--missing", "drop", *interval]) == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 0


@pytest.mark.parametrize("near", [1.0, 1e-3, 1e-5, 1e-6])
def test_intervals_with_nearly_dependent_columns(near: float) -> None:
    rng = np.random.default_rng(8)
    rows = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    rows = rows.assign(y=rows["a"] + rng.normal(size=200), c=rows["a"] + near * rows["b"])
    # The same fit in columns that do not depend on one another; c rounds b to 1e-16 / near.
    expected = ps.fit(rows[["a", "b", "y"]], target="y", method="exact").predict(rows, interval="confidence")
    found = ps.fit(rows[["a", "c", "y"]], target="y", method="exact").predict(rows, interval="confidence")
    np.testing.assert_allclose(np.ptp(found, axis=1), np.ptp(expected, axis=1), rtol=5e-3)


@pytest.mark.filterwarnings("ignore:Coefficients nearly cancel")
def test_intervals_that_rounding_hides_are_refused() -> None:
    rng = np.random.default_rng(8)
    rows = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    rows = rows.assign(y=rows["a"] + rng.normal(size=200), c=rows["a"] + 1e-11 * rows["b"])
    model = ps.fit(rows[["a", "c", "y"]], target="y", method="exact")
    for interval in ("confidence", "prediction"):
        with pytest.raises(ps.InputError, match="rounding hides how sure the prediction of row"):
            model.predict(rows, interval=interval)
