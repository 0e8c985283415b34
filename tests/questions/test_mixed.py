"""Random effects of partitions against lme4, lmerTest and statsmodels, on ugly columns, and what is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from statsmodels.regression.mixed_linear_model import MixedLM

import partsketch as ps
from partsketch.cli import run

DATA = Path(__file__).parents[1] / "data" / "mixed"
REFERENCE = json.loads((DATA / "reference.json").read_text())["lme4"]


def sleepstudy(is_whole: bool = True) -> pd.DataFrame:
    rows = pd.read_csv(DATA / "sleepstudy.csv")
    kept = (np.arange(1, 181) * 7 % 180 > 60) | (rows["Days"] < 2)
    return (rows if is_whole else rows[kept]).assign(square=rows["Days"] ** 2.0)


def clusters(rows: int = 600, sites: int = 12, seed: int = 3) -> pd.DataFrame:
    """Return rows of sites of unlike sizes, with an intercept and two slopes that vary."""
    rng = np.random.default_rng(seed)
    site = np.sort(rng.choice(sites, rows, p=np.arange(1, sites + 1) / (sites * (sites + 1) / 2)))
    a, b, c = rng.normal(size=(3, rows)) + 0.3 * site
    effects = rng.normal(size=(sites, 3)) @ np.array([[1.0, 0.3, 0], [0, 0.5, 0.2], [0, 0, 0.4]])
    y = 2 + a - b + 0.5 * c + effects[site, 0] + effects[site, 1] * a + effects[site, 2] * b + rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "site": [f"s{number:02}" for number in site]})


ROWS = clusters()
SUMMARIES = ps.summarise(ROWS, partition_by="site")
SLEEP = ps.summarise(sleepstudy(), ["Reaction", "Days", "square"], partition_by="Subject")


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize(
    ("name", "features", "asked"),
    [
        ("sleepstudy slopes", ["Days"], {"random": "Days"}),
        ("sleepstudy intercepts", ["Days"], {}),
        ("sleepstudy slopes alone", ["Days"], {"random": "Days", "random_intercept": False}),
        ("sleepstudy unbalanced", ["Days", "square"], {"random": ["intercept", "Days"]}),
        ("dyestuff", [], {}),
        ("dyestuff2", [], {}),
    ],
)
def test_lme4_finds_the_same(name: str, features: list[str], asked: dict[str, Any], method: str) -> None:
    if name.startswith("sleep"):
        rows = sleepstudy("unbalanced" not in name)
        found = ps.summarise(rows, ["Reaction", "Days", "square"], partition_by="Subject")
        model = found.mixed("Reaction", features, method=method, **asked)
    else:
        rows = pd.read_csv(DATA / f"{name}.csv")
        model = ps.summarise(rows, ["Yield"], partition_by="Batch").mixed("Yield", features, method=method, **asked)
    other = REFERENCE[f"{name} {method}"]
    scale = float(np.abs(other["covariance"]).max())
    # lme4's own search ends within a few 1e-6 of the minimum: its restricted deviance is never below ours.
    np.testing.assert_allclose(model.coefficients, np.ravel(other["fixed"]), rtol=1e-5)
    np.testing.assert_allclose(model.standard_errors, np.ravel(other["errors"]), rtol=1e-5)
    np.testing.assert_allclose(model.random_covariance, other["covariance"], rtol=1e-5, atol=1e-5 * scale + 1e-12)
    assert model.residual_variance == pytest.approx(other["residual"], rel=1e-5)
    assert model.log_likelihood == pytest.approx(other["log_likelihood"], abs=1e-8)
    assert model.log_likelihood is not None
    assert model.log_likelihood >= other["log_likelihood"] - 1e-9
    effects = np.reshape(other["effects"], model.site_effects.shape)
    np.testing.assert_allclose(model.site_effects, effects, rtol=1e-5, atol=1e-5 * np.sqrt(scale))
    errors = np.reshape(other["effect_errors"], model.site_errors.shape)
    np.testing.assert_allclose(model.site_errors, errors, rtol=1e-5, atol=1e-12)
    if not model.is_boundary:
        # lmerTest differentiates numerically.
        np.testing.assert_allclose(model.degrees_of_freedom, np.ravel(other["df"]), rtol=1e-4)


def test_published_values_of_the_sleep_study() -> None:
    """As lme4's vignette prints them."""
    model = SLEEP.mixed("Reaction", "Days", random="Days")
    assert [f"{value:.3f}" for value in (*model.coefficients, *model.standard_errors)] == [
        "251.405", "10.467", "6.825", "1.546",
    ]  # fmt: skip
    assert [f"{value:.3f}" for value in model.random_deviations] == ["24.740", "5.922"]
    assert f"{model.random_correlations[0, 1]:.3f}" == "0.066"
    assert f"{np.sqrt(model.residual_variance):.3f}" == "25.592"
    assert model.log_likelihood is not None
    assert f"{-2 * model.log_likelihood:.1f}" == "1743.6"


def test_one_file_of_each_site_gives_the_published_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every subject a site that sends a file of its own, made by either command; asked in Python and by command."""
    monkeypatch.chdir(tmp_path)
    rows = sleepstudy()
    for number, (subject, own) in enumerate(rows.groupby("Subject")):
        columns, site = own[["Days", "Reaction"]], f"subject {subject}"
        if number % 2:
            ps.summarise(columns, site=site).save(f"{subject}.psk")
        else:
            ps.sketch(columns, "Reaction", ["Days"], sketch="triangular", site=site).save(f"{subject}.psk")
    sites = ps.read_summaries("*.psk")
    other = REFERENCE["sleepstudy slopes REML"]
    model = sites.mixed("Reaction", "Days", random="Days")
    np.testing.assert_allclose(model.coefficients, np.ravel(other["fixed"]), rtol=1e-5)
    np.testing.assert_allclose(model.random_covariance, other["covariance"], rtol=1e-5)
    assert model.site_names[0] == "subject 308"
    within = sites.fit("Reaction", ["Days"], intercept="partition")
    codes = np.unique(rows["Subject"], return_inverse=True)[1]
    expected = np.linalg.lstsq(np.column_stack([rows["Days"], np.eye(18)[codes]]), rows["Reaction"])[0]
    np.testing.assert_allclose([within.coefficients[0, 0], *within.partition_intercepts[:, 0]], expected, rtol=1e-9)
    files = [str(path) for path in sorted(Path().glob("*.psk"))]
    asked = ["ask", *files, "--target", "Reaction", "--features", "Days"]
    assert run([*asked, "--random", "intercept,Days", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["residual_variance"] == pytest.approx(other["residual"], rel=1e-5)
    assert run([*asked, "--intercept", "partition"]) == 0
    assert f"\n  subject 308  {expected[1]:.6g}\n" in capsys.readouterr().out
    assert run([*asked, "--meta", "--report", "meta.html"]) == 0
    assert "<svg" in Path("meta.html").read_text()


@pytest.mark.parametrize("method", ["REML", "ML"])
@pytest.mark.parametrize("random", [[], ["a"], ["a", "b"]])
def test_statsmodels_finds_the_same(random: list[str], method: str) -> None:
    model = SUMMARIES.mixed("y", ["a", "b", "c"], random=random, method=method)
    exog = ROWS[["a", "b", "c"]].assign(one=1.0)[["one", "a", "b", "c"]]
    judge = MixedLM(ROWS["y"], exog, ROWS["site"], ROWS[random].assign(one=1.0)[["one", *random]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = judge.fit(reml=method == "REML", method=["bfgs", "lbfgs"], gtol=1e-9, pgtol=1e-10, factr=1.0)
    np.testing.assert_allclose(model.coefficients, other.fe_params, rtol=1e-5)
    # statsmodels inverts the curvature in all parameters together, lme4 and we XᵀV⁻¹X: equal for balanced rows only.
    np.testing.assert_allclose(model.standard_errors, other.bse_fe, rtol=0.02)
    information = np.zeros((4, 4))
    for _, rows in ROWS.groupby("site"):
        x, z = rows.assign(one=1.0)[["one", "a", "b", "c"]], rows.assign(one=1.0)[["one", *random]].to_numpy()
        information += x.T @ np.linalg.solve(z @ other.cov_re.to_numpy() @ z.T + other.scale * np.eye(len(z)), x)
    np.testing.assert_allclose(model.standard_errors, np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-5)
    np.testing.assert_allclose(model.random_covariance, other.cov_re, rtol=1e-5, atol=1e-5)
    assert model.residual_variance == pytest.approx(other.scale, rel=1e-5)
    assert model.log_likelihood == pytest.approx(other.llf, abs=1e-6)
    effects = np.array([np.asarray(other.random_effects[name]) for name in model.site_names])
    np.testing.assert_allclose(model.site_effects, effects, rtol=1e-4, atol=1e-5)


def test_place_unit_and_order_of_columns_change_nothing_else() -> None:
    model = SUMMARIES.mixed("y", ["a", "b", "c"], random=["a", "b"])
    moved = ROWS.assign(a=ROWS["a"].round(6) * 2.0**20 + 2.0**40, b=ROWS["b"] * 1e-8, y=ROWS["y"] * 1e6)
    here = ps.summarise(moved, partition_by="site").mixed("y", ["c", "b", "a"], random=["b", "a"])
    units = np.array([1.0, 1e-8, 2.0**20])
    # Columns were rounded to 1e-6, and 2^40 in doubles leaves 1e-4 of a unit of 2^20.
    np.testing.assert_allclose(here.coefficients[1:] * units / 1e6, model.coefficients[[3, 2, 1]], rtol=1e-5)
    np.testing.assert_allclose(here.standard_errors[1:] * units / 1e6, model.standard_errors[[3, 2, 1]], rtol=1e-5)
    np.testing.assert_allclose(here.site_effects[:, 1] * 1e-14, model.site_effects[:, 2], rtol=1e-3, atol=1e-4)
    assert here.residual_variance == pytest.approx(model.residual_variance * 1e12, rel=1e-5)
    assert here.log_likelihood is not None
    assert model.log_likelihood is not None
    jacobian = -(600 - 4) * np.log(1e6) - np.log(units).sum()
    assert here.log_likelihood - model.log_likelihood == pytest.approx(jacobian, abs=1e-3)


@pytest.mark.parametrize("scale", [2.0**400, 2.0**-400])
def test_targets_of_any_size(scale: float) -> None:
    """Squares of variances would be zero, or beyond doubles; a power of two changes no digit of anything else."""
    frame = sleepstudy()
    known, found = (
        ps.summarise(table, partition_by="Subject").mixed("Reaction", ["Days"], random=["Days"])
        for table in (frame, frame.assign(Reaction=frame["Reaction"] * scale))
    )
    np.testing.assert_allclose(found.standard_errors, known.standard_errors * scale, rtol=1e-12)
    np.testing.assert_allclose(found.degrees_of_freedom, known.degrees_of_freedom, rtol=1e-12)


def test_variances_beyond_doubles_are_refused() -> None:
    frame = sleepstudy()
    small = frame.assign(Reaction=frame["Reaction"] * 2.0**-400, Days=frame["Days"] * 2.0**400)
    with pytest.raises(ps.InputError, match="variances of some coefficients are beyond what doubles hold"):
        ps.summarise(small, partition_by="Subject").mixed("Reaction", ["Days"])


def test_slopes_alone_turn_around_zero_however_far() -> None:
    """At 2^20 from zero a slope that varies alone moves all rows of a site alike: an intercept that varies."""
    far = ps.summarise(ROWS.assign(a=ROWS["a"] + 2.0**20), partition_by="site")
    slopes = far.mixed("y", ["a", "b"], random="a", random_intercept=False)
    levels = SUMMARIES.mixed("y", ["a", "b"])
    # They differ by the spread of the column over 2^20, times the random effects.
    assert slopes.residual_variance == pytest.approx(levels.residual_variance, rel=1e-5)
    assert slopes.random_deviations[0] * 2.0**20 == pytest.approx(levels.random_deviations[0], rel=1e-4)
    np.testing.assert_allclose(slopes.coefficients[1:], levels.coefficients[1:], rtol=1e-5)


def test_partitions_split_over_files_do_not_matter() -> None:
    """The same sites from two halves, put together: the same model but for rounding."""
    halves = ps.summarise(ROWS[::2], partition_by="site").add(ps.summarise(ROWS[1::2], partition_by="site", label="2"))
    model, whole = (s.mixed("y", ["a", "c"], random="a") for s in (halves.together(), SUMMARIES))
    order = [model.site_names.index(name) for name in whole.site_names]
    np.testing.assert_allclose(model.coefficients, whole.coefficients, rtol=1e-9)
    np.testing.assert_allclose(model.random_covariance, whole.random_covariance, rtol=1e-6)
    np.testing.assert_allclose(model.site_effects[order], whole.site_effects, atol=1e-6)
    assert any("clusters of their own" in sentence for sentence in halves.mixed("y", ["a"]).warnings)


def test_nearly_dependent_features_and_little_noise() -> None:
    near = ROWS.assign(c=ROWS["a"] + 1e-7 * ROWS["c"])
    model = ps.summarise(near, partition_by="site").mixed("y", ["a", "b", "c"], random="b")
    plain = SUMMARIES.mixed("y", ["a", "b", "c"], random="b")
    assert model.coefficients[3] * 1e-7 == pytest.approx(plain.coefficients[3], rel=1e-5)
    assert model.random_covariance[1, 1] == pytest.approx(plain.random_covariance[1, 1], rel=1e-6)
    # Effects of 1 beside noise of 1e-6: a ratio of variances of 1e12.
    site = pd.factorize(ROWS["site"])[0]
    quiet = ROWS.assign(y=ROWS["a"] + np.sin(site) + 1e-6 * np.random.default_rng(0).normal(size=600))
    found = ps.summarise(quiet, partition_by="site").mixed("y", ["a"])
    assert np.sqrt(found.residual_variance) == pytest.approx(1e-6, rel=0.1)
    assert found.random_covariance[0, 0] == pytest.approx(np.var(np.sin(np.arange(12)), ddof=1), rel=1e-4)


def test_a_boundary_is_told() -> None:
    model = ps.summarise(pd.read_csv(DATA / "dyestuff2.csv"), ["Yield"], partition_by="Batch").mixed("Yield", [])
    assert model.is_boundary
    assert model.random_covariance.tolist() == [[0.0]]
    assert "variance zero" in model.warnings[0]
    assert "variance zero" in str(model)
    # One slope varies, the other does not.
    rng = np.random.default_rng(1)
    site = np.repeat(np.arange(10), 30)
    a, b = rng.normal(size=(2, 300))
    y = a + b + rng.normal(size=10)[site] * a + rng.normal(size=300)
    rows = pd.DataFrame({"a": a, "b": b, "y": y, "site": site})
    partial = ps.summarise(rows, partition_by="site").mixed("y", ["a", "b"], random=["a", "b"])
    assert partial.rank in (1, 2)
    assert partial.is_boundary == ("boundary" in str(partial))
    values = np.linalg.eigvalsh(partial.random_covariance)
    assert (values > -1e-12).all()


def test_weights_are_precisions_and_leave_the_likelihood_out() -> None:
    weight = np.random.default_rng(0).integers(1, 4, 600)
    rows = ROWS.assign(w=weight.astype(float))
    model = ps.summarise(rows, ["a", "y"], partition_by="site", weights="w").mixed("y", "a")
    assert model.log_likelihood is None
    assert "weights" in model.warnings[-1]
    root = np.sqrt(weight)
    # The same rows, scaled by hand: a column of roots is the intercept, and varies.
    judge = MixedLM(
        ROWS["y"] * root, np.column_stack([root, root * ROWS["a"]]), ROWS["site"], np.asarray(root)[:, None]
    ).fit(gtol=1e-9)
    np.testing.assert_allclose(model.coefficients, judge.fe_params, rtol=1e-5)
    np.testing.assert_allclose(model.random_covariance, judge.cov_re, rtol=1e-5)


def test_intervals_and_coefficients_of_partitions_are_written_out() -> None:
    model = SUMMARIES.mixed("y", ["a", "b", "c"], random="b", random_intercept=False)
    reach = t.ppf(0.95, model.degrees_of_freedom) * model.standard_errors
    np.testing.assert_allclose(model.conf_int(0.9), np.c_[model.coefficients - reach, model.coefficients + reach])
    np.testing.assert_allclose(model.site_coefficients[:, 0], model.coefficients[2] + model.site_effects[:, 0])


def test_what_others_have() -> None:
    model = SUMMARIES.mixed("y ~ a + b", random="a")
    text = str(model)
    assert "REML" in text
    assert "12 partitions" in text
    assert "<table>" in model._repr_html_()
    assert model.to_frame().loc["a", "coefficient"] == model.coefficients[1]
    assert list(model.site_frame().columns) == ["(intercept)", "a"]
    assert json.loads(json.dumps(model.to_dict()))["random"]["rank"] == 2
    printed = str(ps.table([SUMMARIES.fit("y", ["a", "b"]), model]))
    assert "deviation of a" in printed
    low, high = model.conf_int(0.9).T
    assert (low < model.coefficients).all()
    assert ((high - low) < np.ptp(model.conf_int(0.99), axis=1)).all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"random": "c"}, "'c' is not among the features"),
        ({"random": "flat", "features": ["a", "flat"]}, "'flat' is constant within every partition"),
        ({"random": ["a", "shifted"], "features": ["a", "shifted"]}, "'shifted' is determined by 'a'"),
        ({"features": ["a", "double"]}, "'double' adds nothing"),
        ({"random": (), "random_intercept": False}, "Nothing varies"),
        ({"method": "EM"}, "choose 'REML' or 'ML'"),
        ({"target": "y ~ a + 0", "features": None}, "common intercept"),
        ({"target": "fitted", "features": ["a"]}, "could be noise"),
    ],
)
def test_what_is_refused(asked: dict[str, Any], said: str) -> None:
    site = pd.factorize(ROWS["site"])[0]
    rows = ROWS.assign(
        flat=site.astype(float), shifted=ROWS["a"] + site, double=2 * ROWS["a"], fitted=ROWS["a"] * 3 + site
    )
    summaries = ps.summarise(rows, partition_by="site")
    given = {"target": "y", "features": ["a", "b"], **asked}
    with pytest.raises(ps.InputError, match=said):
        summaries.mixed(**given)


def test_few_partitions_and_sketches_are_refused() -> None:
    with pytest.raises(ps.InputError, match="at least 3 partitions, and there are 2"):
        SUMMARIES.select(SUMMARIES.names[:2]).mixed("y", "a")
    with pytest.raises(ps.InputError, match="at least 4 partitions"):
        SUMMARIES.select(SUMMARIES.names[:3]).mixed("y", ["a", "b"], random=["a", "b"])
    with pytest.raises(ps.InputError, match="leave nothing to tell"):
        ps.summarise(ROWS[:24].assign(site=np.arange(24) // 2), partition_by="site").mixed("y", "a", random="a")
    sketches = [ps.sketch(ROWS[["a", "y"]], target="y", site=site, random_state=1) for site in "abc"]
    with pytest.raises(ps.InputError, match="exact summaries"):
        ps.Summaries(tuple(sketches)).mixed("y", "a")


@pytest.mark.slow
def test_intervals_cover_with_few_sites() -> None:
    """Satterthwaite's intervals with 5 sites, 150 draws (standard error 1.8 points at 95%); the normal law fails."""
    rng = np.random.default_rng(8)
    hits = normal = 0
    for _ in range(150):
        site = np.repeat(np.arange(5), 12)
        x = rng.normal(size=60)
        y = 1 + x * (2 + rng.normal(size=5)[site]) + rng.normal(size=5)[site] + rng.normal(size=60)
        summaries = ps.summarise(pd.DataFrame({"x": x, "y": y, "site": site}), partition_by="site")
        model = summaries.mixed("y", "x", random="x")
        low, high = model.conf_int()[1]
        hits += low <= 2 <= high
        normal += abs(model.coefficients[1] - 2) <= 1.96 * model.standard_errors[1]
    # Both ends are 2.4 standard errors from 95%; with so few sites the normal law covers less than 90%.
    assert 136 <= hits <= 149
    assert normal < 135
