"""Standard errors, tests and intervals of fitted models; statsmodels is the judge of the exact ones."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from rich.console import Console
from sklearn.datasets import load_diabetes

import partsketch as ps
from partsketch import InputError
from partsketch.report.page.entry import entries_of
from partsketch.report.page.facts import overview


@pytest.fixture(scope="module")
def diabetes() -> tuple[Any, Any, NDArray[np.float64]]:
    data = load_diabetes(as_frame=True)
    return data.data, data.target, np.random.default_rng(0).uniform(0.5, 2.0, len(data.target))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_exact_inference_is_that_of_statsmodels(
    diabetes: tuple[Any, Any, NDArray[np.float64]], weighted: bool, intercept: bool
) -> None:
    X, y, weights = diabetes
    design = sm.add_constant(X) if intercept else X
    judge = sm.WLS(y, design, weights=weights if weighted else 1.0).fit()
    model = ps.SketchedRegression("exact", fit_intercept=intercept).fit(X, y, weights if weighted else None)
    table = model.summary(level=0.9).to_frame()
    for column, expected in (
        ("coefficient", judge.params),
        ("standard_error", judge.bse),
        ("t_value", judge.tvalues),
        ("p_value", judge.pvalues),
    ):
        np.testing.assert_allclose(table[column], expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.conf_int(0.9), judge.conf_int(0.1), rtol=1e-8)
    np.testing.assert_allclose(table[["lower", "upper"]], judge.conf_int(0.1), rtol=1e-8)
    inference: Any = model.model_.inferences[0]
    np.testing.assert_allclose(inference.noise_variance, judge.scale, rtol=1e-10)
    np.testing.assert_allclose(inference.r_squared, judge.rsquared, rtol=1e-10)
    assert inference.degrees_of_freedom == judge.df_resid


def test_several_targets_have_an_inference_each(diabetes: tuple[Any, Any, NDArray[np.float64]]) -> None:
    X, y, _ = diabetes
    both = ps.SketchedRegression("exact").fit(X, np.column_stack([y, np.cos(y)]))
    alone = ps.SketchedRegression("exact").fit(X, np.cos(y))
    np.testing.assert_allclose(both.conf_int()[1], alone.conf_int(), rtol=1e-9)
    assert len(both.certificate_) == 2
    assert both.summary().to_frame().index.names == ["target", "name"]


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
def test_singular_exact_fit_has_the_standard_errors_of_the_columns_that_stand_alone() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)
    with pytest.warns(ps.PartsketchWarning, match="aliased"):
        model = ps.SketchedRegression("exact").fit(np.column_stack([X, X[:, 0]]), y)
    judge = sm.OLS(y, sm.add_constant(np.column_stack([X, X[:, 0]]))).fit()
    inference: Any = model.model_.inferences[0]
    np.testing.assert_allclose(inference.standard_errors, judge.bse, rtol=1e-8)
    assert inference.degrees_of_freedom == judge.df_resid == 196


def coverage(method: str, kinds: tuple[str, ...], **options: Any) -> dict[str, float]:
    """Return how often 95% intervals of each kind hold the true coefficients; partitions are unlike one another."""
    rng = np.random.default_rng(5)
    rows, d, k, replicates = 800, 4, 8, 120
    X = rng.normal(size=(rows, d)) * np.repeat(rng.uniform(0.5, 2.0, k), rows // k)[:, None]
    truth = np.array([0.5, 1.0, -2.0, 0.0, 3.0])
    inside, told = dict.fromkeys(kinds, 0), 0
    for seed in range(replicates):
        y = truth[0] + X @ truth[1:] + rng.normal(size=rows)
        model = ps.SketchedRegression(method, n_partitions=k, random_state=seed, **options).fit(X, y)
        if model.model_.inferences[0].reason:
            # One stack in 500 is taken for one of unlike partitions, and has no intervals.
            continue
        told += 1
        for kind in kinds:
            intervals = model.conf_int(0.95, kind)
            inside[kind] += int(np.sum((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])))
    assert told >= 0.98 * replicates
    return {kind: count / (told * len(truth)) for kind, count in inside.items()}


@pytest.mark.parametrize(
    ("method", "kinds", "options"),
    [
        ("average", ("model", "spread"), {}),
        ("partition", ("model", "spread"), {"sketch_size": 20}),
        ("partition", ("model",), {"sketch_size": 20, "averaging": "inverse_variance"}),
        ("stack", ("model",), {"sketch_size": 20}),
        ("whole", ("model",), {"sketch_size": 20}),
    ],
)
@pytest.mark.usefixtures("few_draws")
def test_intervals_cover_the_truth(method: str, kinds: tuple[str, ...], options: dict[str, Any]) -> None:
    # 120 replicates of 5 coefficients: a standard error of 0.9 points if all were independent, 2 if those of one
    # replicate went together. Standard errors that are 15% too small would cover 4 points less.
    for kind, share in coverage(method, kinds, **options).items():
        assert abs(share - 0.95) < 0.03, kind


def test_what_cannot_be_said_is_said(diabetes: tuple[Any, Any, NDArray[np.float64]]) -> None:
    X, y, _ = diabetes
    with pytest.raises(InputError, match="level is 2"):
        ps.SketchedRegression("exact").fit(X, y).conf_int(2)
    with pytest.raises(InputError, match="kind is 'magic'"):
        ps.SketchedRegression("exact").fit(X, y).conf_int(kind="magic")
    with pytest.raises(InputError, match="spread needs at least two fits"):
        ps.SketchedRegression("exact").fit(X, y).conf_int(kind="spread")
    with pytest.raises(InputError, match="spread needs at least two fits"):
        ps.SketchedRegression("whole", random_state=0).fit(X, y).conf_int(kind="spread")
    ridge = ps.SketchedRegression("exact", alpha=1.0).fit(X, y)
    with pytest.raises(InputError, match="biased on purpose"):
        ridge.conf_int()
    assert "biased on purpose" in str(ridge.summary())
    saturated = ps.SketchedRegression("exact").fit(X[:11], y[:11])
    with pytest.raises(InputError, match="no degrees of freedom"):
        saturated.conf_int()


@pytest.mark.parametrize("method", ["exact", "average", "partition", "stack", "whole"])
def test_summary_survives_the_model_file(
    diabetes: tuple[Any, Any, NDArray[np.float64]], method: str, tmp_path: Path
) -> None:
    X, y, _ = diabetes
    model = ps.SketchedRegression(method, n_partitions=4, random_state=0).fit(X, y).model_
    model.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    assert str(again.summary()) == str(model.summary())
    assert again.certificates == model.certificates
    assert np.array_equal(again.conf_int(), model.conf_int())
    json.dumps(model.summary().to_dict(), allow_nan=False)


def unlike_sites() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two partitions with other coefficients: their own fits, the average and exact least squares are far apart."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(1000, 2))
    X[500:, 1] *= 4
    slopes = np.where(np.arange(1000) < 500, 3.0, -1.0)
    return X, slopes * X[:, 1] + rng.normal(size=1000)


def test_numbers_of_an_averaged_fit_are_those_of_the_fit_that_is_named() -> None:
    X, y = unlike_sites()
    model = ps.SketchedRegression("average", n_partitions=2).fit(X, y).model_
    design = np.column_stack([np.ones(1000), X])
    total = float(np.sum((y - y.mean()) ** 2))
    exact = np.linalg.lstsq(design, y, rcond=None)[1][0]
    averaged = float(np.sum((y - design @ model.column_coefficients[:, 0]) ** 2))
    variances = {"exact least squares": exact / 997, "this fit": averaged / 997}
    shares = {"exact least squares": 1 - exact / total, "this fit": 1 - averaged / total}
    inference = model.inferences[0]
    # The fits are so unlike that a wrong label is off by a factor.
    assert max(variances.values()) > 2 * min(variances.values())
    assert abs(shares["this fit"] - shares["exact least squares"]) > 0.1
    assert inference.noise_variance == pytest.approx(variances[inference.noise_variance_of], rel=1e-9)
    assert inference.r_squared == pytest.approx(shares[inference.r_squared_of], rel=1e-9)
    assert (inference.noise_variance_of, inference.r_squared_of) == ("this fit", "this fit")


@pytest.mark.usefixtures("few_draws")
def test_numbers_of_a_sketched_average_are_of_that_average_too() -> None:
    X, y = unlike_sites()
    design = np.column_stack([np.ones(1000), X])
    total = float(np.sum((y - y.mean()) ** 2))
    ratios, shares = [], []
    for seed in range(100):
        fit = ps.SketchedRegression("partition", n_partitions=2, sketch_size=60, random_state=seed).fit(X, y)
        model: Any = fit.model_
        loss = float(np.sum((y - design @ model.column_coefficients[:, 0]) ** 2))
        ratios.append(model.inferences[0].noise_variance * 997 / loss)
        shares.append((1 - model.inferences[0].r_squared) * total / loss)
    # Losses estimated from 120 sketch rows have a standard deviation of 15%, so the means of 100 are known to 1.5%;
    # exact least squares loses half as much here.
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)
    assert np.mean(shares) == pytest.approx(1, abs=0.07)


def test_errors_around_shared_coefficients_are_withheld_where_partitions_do_not_share_them() -> None:
    X, y = unlike_sites()
    for method in ("average", "partition"):
        model = ps.SketchedRegression(method, n_partitions=2, sketch_size=50, random_state=0).fit(X, y)
        with pytest.raises(InputError, match=r"partitions differ more than .* kind='spread'"):
            model.conf_int()
        assert model.conf_int(kind="spread").shape == (3, 2)
        assert "No standard errors:" in str(model.summary())


@pytest.mark.parametrize("method", ["exact", "average", "partition", "stack", "whole"])
def test_every_number_says_which_fit_it_is_of(method: str) -> None:
    """In the table, as plain data, in the model file and on the page, in the same words."""
    X, y = unlike_sites()
    model = ps.SketchedRegression(method, n_partitions=2, sketch_size=50, random_state=0).fit(X, y).model_
    inference = model.inferences[0]
    facts = model.summary().to_dict()["facts"]["y"]
    page = dict(overview(entries_of([model])[0]))
    told = [
        (inference.r_squared_of, facts["R-squared"], page["R²"]),
        (inference.noise_variance_of, facts["Residual std err"], page["residual standard error"]),
    ]
    plain = json.loads(json.dumps(model.to_dict()))["inferences"][0]
    assert [plain["r_squared_of"], plain["noise_variance_of"]] == [of for of, _, _ in told]
    for of, in_table, on_page in told:
        words = ([] if of == "this fit" else [f"of {of}"]) + ([] if method in ("exact", "average") else ["estimated"])
        expected = f" ({', '.join(words)})" if words else ""
        for text in (in_table, on_page):
            assert text.partition(" (")[1:] == (expected[:2], expected[2:])
    of = "exact least squares" if method in ("stack", "whole") else "this fit"
    assert {name for name, _, _ in told} == {of}


def test_summary_is_plain_in_a_pipe_and_rich_on_a_terminal(diabetes: tuple[Any, Any, NDArray[np.float64]]) -> None:
    X, y, _ = diabetes
    summary = ps.SketchedRegression("partition", n_partitions=4, random_state=0).fit(X, y).summary()
    text = str(summary)
    assert "\x1b" not in text
    for word in ("coef", "std err", "P>|t|", "[0.025", "0.975]", "R-squared", "estimated)", "Cond. No.", "Rank"):
        assert word in text
    for word in ("No. Observations", "442", "Partitions (k)", "Sketch rows (m)", "Excess loss", "estimated to lose"):
        assert word in text
    screen = io.StringIO()
    Console(file=screen, force_terminal=True, width=100).print(summary)
    assert "\x1b" in screen.getvalue()


def test_a_perfect_fit_tests_nothing() -> None:
    """Without residuals every error is zero: rounding is not called significant, and a sentence says why."""
    x = np.random.default_rng(0).normal(size=(500, 2))
    model = ps.fit({"a": x[:, 0], "b": x[:, 1], "y": 2 * x[:, 0] + x[:, 1]}, "y")
    assert np.isnan(model.t_values).all()
    assert np.isnan(model.p_values).all()
    summary = model.summary()
    assert [row.p_value for row in summary.rows] == [None] * 3
    assert "The features give y without a residual, up to rounding" in " ".join(str(summary).split())
    noisy = ps.fit({"a": x[:, 0], "y": x[:, 1]}, "y")
    assert "without a residual" not in str(noisy.summary())
