"""Weights of stacked sketches whose noise was measured on the rows: fits, files, batches, short sketches, intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch import InputError, theory
from partsketch.cli import run
from partsketch.common.special import polygamma
from partsketch.sketches.orthogonal import orthogonal_rows
from partsketch.theory.stack_weights import followed_weights

FloatArray = NDArray[np.float64]
NOISE = (0.2, 0.5, 1.0, 1.5, 2.5, 4.0)
ROWS = 200
OPTIONS: dict[str, Any] = {"n_partitions": 6, "sketch_size": 20, "random_state": 7, "weighting": "auto"}
MEASURED, ESTIMATED = "the noise of each was measured on the rows", "the noise of each was estimated from the sketches"


def rows(seed: int = 3, scale: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Six partitions that share their coefficients and differ in noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6 * ROWS, 3))
    return X, scale * (1 + X.sum(axis=1) + np.repeat(NOISE, ROWS) * rng.normal(size=len(X)))


def fitted(X: FloatArray, y: FloatArray, **more: Any) -> ps.SketchedRegression:
    return ps.SketchedRegression("stack", **{**OPTIONS, **more}).fit(X, y)


def reason(model: Any) -> str:
    return str(getattr(model, "model_", model).record.reasons["weighting"])


def by_hand(X: FloatArray, y: FloatArray) -> theory.MeasuredNoise:
    sums = []
    for i in range(6):
        some = slice(i * ROWS, (i + 1) * ROWS)
        design = np.column_stack([np.ones(ROWS), X[some]])
        away = y[some] - design @ np.linalg.lstsq(design, y[some])[0]
        sums.append(float(away @ away))
    return theory.MeasuredNoise(sums, [ROWS - 4] * 6)


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal"])
def test_a_fit_takes_the_noise_of_its_rows(kind: str) -> None:
    X, y = rows()
    model = fitted(X, y, sketch=kind)
    assert reason(model).endswith(MEASURED)
    moments = theory.sketch_moments([np.asarray(one) for one in model.summaries_], [ROWS] * 6, sketch=kind)
    measured = by_hand(X, y)
    choice = theory.choose_stack(moments, measured=measured)
    fit = theory.stacked_fit(moments.sketches, [ROWS] * 6, kind, choice.weights, choice.following, measured)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], fit.solution, rtol=1e-9)
    assert model.certificate_.excess_loss == pytest.approx(theory.certify_stacked(fit).excess_loss, rel=1e-9)
    errors, found = theory.stacked_covariance(fit).standard_errors, model.model_.inferences[0].standard_errors
    assert found is not None
    np.testing.assert_allclose(found, errors, rtol=1e-6)
    assert "measured on its rows" in model.certificate_.reason
    estimated = fitted(X, y, sketch=kind, noise="estimated")
    assert reason(estimated).endswith(ESTIMATED)
    assert not np.array_equal(estimated.coef_, model.coef_)


def test_units_of_the_target_change_nothing() -> None:
    coefficients = [fitted(*rows(scale=scale)).coef_ / scale for scale in (1.0, 2.0**-250)]
    np.testing.assert_allclose(coefficients[1], coefficients[0], rtol=1e-12)


def test_weights_follow_the_noise_by_its_degrees_of_freedom() -> None:
    X, y = rows()
    moments = theory.sketch_moments([np.asarray(one) for one in fitted(X, y).summaries_], [ROWS] * 6)
    measured = by_hand(X, y)
    weights = theory.information_weights(moments, measured)
    np.testing.assert_allclose(weights * measured.variances, np.mean(weights * measured.variances), rtol=0.02)
    choice = theory.choose_stack(moments, "information", measured)
    assert choice.following is not None
    left = float(polygamma(1, np.array([(ROWS - 4) / 2]))[0])
    spread = left * choice.following / (1 - choice.following)
    # One variance of the true logarithms: what is not followed is the share that 196 degrees of freedom leave.
    np.testing.assert_allclose(spread, np.var(np.log(measured.variances), ddof=1), rtol=0.1)
    # What differs no more than chance allows is not followed at all.
    draw = np.random.default_rng(1)
    alike = theory.MeasuredNoise(draw.chisquare(ROWS - 4, size=6), [ROWS - 4] * 6)
    np.testing.assert_array_equal(theory.information_weights(moments, alike), np.ones(6))
    for sums, freedom in (([1.0, 0.0], [3, 3]), ([1.0, np.nan], [3, 3]), ([1.0, 1.0], [3, 0]), ([1.0], [3, 3])):
        with pytest.raises(InputError, match="measured noise"):
            theory.MeasuredNoise(sums, freedom)


def files(folder: Path, **more: Any) -> list[Any]:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    paths = []
    for i in range(6):
        asked = {"sketch_size": 20, "random_state": 7, "site": f"site {i}", **more}
        ps.sketch(frame[i * ROWS : (i + 1) * ROWS], "y", **asked).save(folder / f"{i}.psk")
        paths.append(folder / f"{i}.psk")
    return paths


def test_combine_takes_noise_only_of_the_same_regression(tmp_path: Path) -> None:
    paths = files(tmp_path)
    model = ps.combine(paths, weighting="auto")
    assert reason(model).endswith(MEASURED)
    fit = fitted(*rows())
    # Sites have random numbers of their own, and so another fit.
    assert not np.array_equal(model.coefficients[:, 0], fit.coef_)
    for changed in ({"features": ["a", "b"]}, {"target": "a"}, {"fit_intercept": False}):
        assert ESTIMATED in reason(ps.combine(paths, weighting="information", **changed))
    # All of them, in another order, are the same regression.
    same = ps.combine(paths, features=["c", "a", "b"], weighting="auto")
    assert reason(same).endswith(MEASURED)
    # One site that does not tell makes all be estimated.
    (tmp_path / "other").mkdir()
    others = files(tmp_path / "other", noise="estimated")
    assert ESTIMATED in reason(ps.combine([*paths[:-1], others[-1]], weighting="information"))


def test_two_targets_of_which_one_is_a_feature(tmp_path: Path) -> None:
    X, y = rows()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    made = [
        ps.sketch(frame[i * ROWS : (i + 1) * ROWS], ["y", "c"], site=str(i), sketch_size=20, random_state=1)
        for i in range(6)
    ]
    assert [one.target for one in made[0].about.noise] == ["y", "c"]
    assert MEASURED in reason(ps.combine(made, target="y", features=["a", "b"], weighting="information"))
    assert ESTIMATED in reason(ps.combine(made, target="y", features=["a", "b", "c"], weighting="information"))


def test_batches_that_add_to_a_partition_measure_it_whole() -> None:
    X, y = rows()
    given: dict[str, Any] = {"sketch_size": 20, "random_state": 7, "weighting": "auto"}
    model = ps.SketchedRegression("stack", **given)
    for i in range(6):
        for half in (slice(i * ROWS, i * ROWS + 120), slice(i * ROWS + 120, (i + 1) * ROWS)):
            model.partial_fit(X[half], y[half], new_partition=half.start % ROWS == 0)
    sums = [one.residual_sum for summary in model.summaries_ for one in summary.about.noise]
    measured = by_hand(X, y)
    np.testing.assert_allclose(sums, measured.variances * measured.freedom, rtol=1e-9)
    assert reason(model).endswith(MEASURED)


def test_sketches_that_are_too_short_to_show_noise() -> None:
    X, y = rows()
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), 7))])
    short = {"sketch_size": 6, "weighting": "information"}
    with pytest.warns(ps.PartsketchWarning, match="assume shared coefficients, which cannot be tested here"):
        model = fitted(X, y, noise="measured", **short)
    assert "by counts of rows and noise measured on them" in reason(model)
    design = np.column_stack([np.ones(ROWS), X[:ROWS]])
    levels = np.array([one.residual_sum / one.freedom for s in model.summaries_ for one in s.about.noise])
    away = y[:ROWS] - design @ np.linalg.lstsq(design, y[:ROWS])[0]
    assert levels[0] == pytest.approx(float(away @ away) / (ROWS - 11))
    stacked = np.vstack([np.asarray(s) / np.sqrt(level) for s, level in zip(model.summaries_, levels, strict=True)])
    # Up to the step towards exact least squares and what weights are drawn together.
    weighted = np.linalg.lstsq(stacked[:, :-1], stacked[:, -1])[0]
    assert np.linalg.norm(model.coef_ - weighted[1:]) < 0.3 * np.linalg.norm(weighted[1:] - np.r_[1, 1, 1, [0] * 7])
    assert "by counts of rows alone" in reason(fitted(X, y, noise="estimated", **short))


def test_what_does_not_go_with_measured_noise() -> None:
    X, y = rows()
    with pytest.raises(InputError, match="goes with method='stack' and weighting"):
        fitted(X, y, noise="measured", weighting="rows")
    with pytest.raises(InputError, match="noise is 'told'"):
        fitted(X, y, noise="told")


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rows()
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    data = str(tmp_path / "rows.csv")
    out = str(tmp_path / "site-{partition}.psk")
    cut = ["--partitions", "6", "--sketch-size", "20", "--seed", "1"]
    assert run(["sketch", data, "--target", "y", "--output", out, "--site", "here", "--noise", "measured", *cut]) == 0
    found = [str(path) for path in sorted(tmp_path.glob("*.psk"))]
    capsys.readouterr()
    assert run(["combine", *found, "--weighting", "auto"]) == 0
    assert "measured on the" in " ".join(capsys.readouterr().out.split())
    asked = ["--method", "stack", "--weighting", "auto", "--noise", "estimated", *cut]
    assert run(["fit", data, "--target", "y", *asked]) == 0
    assert "estimated from the sketches" in " ".join(capsys.readouterr().out.split())


def sketched(part: theory.PartitionMoments, kind: str, rng: np.random.Generator) -> FloatArray:
    if kind == "orthogonal":
        return orthogonal_rows(part.factor, 15, part.row_count, int(rng.integers(2**60)))
    return np.asarray(rng.normal(size=(15, len(part.factor))) @ part.factor / np.sqrt(15))


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal"])
def test_intervals_hold_and_certificates_are_right(kind: str) -> None:
    """60 draws of six sketches of rows with five columns: 300 coefficients, so that 95% is known to 1.3 points."""
    rng = np.random.default_rng(11)
    losses, claims, inside, minimal = [], [], [], []
    for _ in range(60):
        parts = []
        for level in NOISE:
            X = rng.normal(size=(ROWS, 5))
            parts.append(theory.PartitionMoments.from_rows(X, X.sum(axis=1) + level * rng.normal(size=ROWS)))
        pooled = theory.pooled_moments(parts)
        measured = theory.MeasuredNoise([part.loss for part in parts], [ROWS - 5] * 6)
        sketches = [sketched(part, kind, rng) for part in parts]
        moments = theory.sketch_moments(sketches, [ROWS] * 6, sketch=kind)
        weights, following = followed_weights(moments, measured)
        fit = theory.stacked_fit(moments.sketches, [ROWS] * 6, kind, weights, following, measured)
        away = pooled.root @ (fit.solution - pooled.solution)
        losses.append(float(away @ away) / pooled.loss)
        claims.append(theory.certify_stacked(fit).excess_loss / pooled.loss)
        minimal.append(fit.minimal_loss / pooled.loss)
        low, high = theory.confidence_intervals(fit.solution, theory.stacked_covariance(fit), 0.95).T
        inside.append(np.mean((low <= 1) & (high >= 1)))
    error = np.std(losses) / np.mean(losses) / np.sqrt(len(losses))
    assert abs(np.mean(claims) / np.mean(losses) - 1) < 4 * error
    assert abs(np.mean(inside) - 0.95) < 4 * 0.013
    # Six fits of five columns leave 30 of 1,200 degrees of freedom less than one fit: a percent or two in each draw.
    assert abs(np.mean(minimal) - 1) < 0.01
