"""`weighting=` of stacked sketches, from the arguments to the record: what is taken, why, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch import InputError, theory
from partsketch.cli import run

FloatArray = NDArray[np.float64]
FEATURES = ["a", "b", "c"]
UNEVEN = (100, 100, 100, 100, 100, 2000)


def table(rows: tuple[int, ...] = UNEVEN, spread: float = 0.0, noise: tuple[float, ...] = (1.0,) * 6) -> pd.DataFrame:
    """Six sites; a second target has coefficients that differ by site."""
    rng = np.random.default_rng(3)
    frames = []
    for site, (count, level) in enumerate(zip(rows, noise, strict=True)):
        X = rng.normal(size=(count, 3))
        y = 1 + X @ (1 + spread * rng.normal(size=3)) + level * rng.normal(size=count)
        z = X @ rng.normal(size=3) + rng.normal(size=count)
        frames.append(pd.DataFrame(X, columns=FEATURES).assign(y=y, z=z, site=site))
    return pd.concat(frames, ignore_index=True)


OPTIONS: dict[str, Any] = {"method": "stack", "partition_by": "site", "sketch_size": 20, "random_state": 7}


def estimator(frame: pd.DataFrame, target: Any = "y", **options: Any) -> ps.SketchedRegression:
    """A fitted estimator, which keeps its sketches."""
    asked = {**OPTIONS, "weighting": "auto", **options}
    return ps.SketchedRegression(**asked).fit(frame[[*FEATURES, "site"]], frame[target])


def moments_of(model: ps.SketchedRegression, target: str = "y") -> theory.SketchMoments:
    columns = ("(intercept)", *FEATURES, target)
    matrices = [summary.select(columns) for summary in model.summaries_]
    return theory.sketch_moments(matrices, [summary.row_count for summary in model.summaries_], free_columns=1)


def test_information_is_the_fit_to_weighted_sketches() -> None:
    model = estimator(table())
    assert model.model_.record.reasons["weighting"].startswith("information: partitions share their coefficients")
    moments = moments_of(model)
    weights = theory.information_weights(moments)
    assert weights[-1] < 0.2 * weights[0]
    rows = np.vstack([np.sqrt(w) * part.factor for w, part in zip(weights, moments.sketches, strict=True)])
    expected = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], expected, rtol=1e-9)
    assert "sketches weighted by information" in model.certificate_.sentence
    assert model.certificate_.kind == "approximate"
    plain = estimator(table(), weighting="rows")
    rows = np.vstack([part.factor for part in moments.sketches])
    expected = np.linalg.lstsq(rows[:, :-1], rows[:, -1])[0]
    np.testing.assert_allclose(np.r_[plain.intercept_, plain.coef_], expected, rtol=1e-9)
    assert plain.model_.record.reasons["weighting"] == (
        "rows: as asked; a sketch row stands for 5 to 100 rows, so that weighting='auto' loses less if partitions "
        "share their coefficients"
    )
    assert plain.certificate_.relative_excess_loss > 2 * model.certificate_.relative_excess_loss
    # What the smaller number takes for granted stands beside it.
    assumed = "takes for granted that partitions share their coefficients"
    assert assumed in model.certificate_.sentence
    assert assumed not in plain.certificate_.sentence
    errors, larger = (one.model_.inferences[0].standard_errors for one in (model, plain))
    assert errors is not None
    assert larger is not None
    assert np.all(errors < larger)


@pytest.mark.parametrize(
    ("asked", "is_told"),
    [({}, True), ({"weighting": "rows"}, False), ({"method": "partition", "weighting": "rows"}, True)],
)
def test_intervals_for_exact_least_squares_say_that_they_take_coefficients_to_be_shared(
    asked: dict[str, Any], is_told: bool
) -> None:
    """Where they do: the stack of all rows aims at exact least squares whatever the partitions are."""
    model = estimator(table(), **asked)
    said = "partitions are taken to share their coefficients"
    for shown in (str(model.model_.summary(of="exact")), model.model_.summary(of="exact").to_html()):
        assert (said in " ".join(shown.split())) == is_told
    assert said not in str(model.model_.summary())


def test_unlike_noise_takes_the_step_towards_exact_least_squares() -> None:
    frame = table((400,) * 6, noise=(0.2, 0.4, 0.8, 1.5, 2.5, 4.0))
    model = estimator(frame, noise="estimated")
    moments = moments_of(model)
    choice = theory.choose_stack(moments)
    assert choice.taken == "information"
    fit = theory.stacked_fit(moments.sketches, [400] * 6, "gaussian", choice.weights, choice.following)
    assert np.linalg.norm(fit.step) > 1e-4
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], fit.solution, rtol=1e-7)
    expected = theory.certify_stacked(fit).relative_excess_loss
    assert model.certificate_.relative_excess_loss == pytest.approx(expected, rel=1e-6)
    errors = model.model_.inferences[0].standard_errors
    assert errors is not None
    np.testing.assert_allclose(errors, theory.stacked_covariance(fit).standard_errors, rtol=1e-6)


def test_unlike_coefficients_are_mixed_with_the_average() -> None:
    frame = table((400,) * 6, spread=0.7)
    model = estimator(frame)
    moments = moments_of(model)
    choice = theory.choose_stack(moments)
    assert choice.taken == "mixture"
    assert 0.2 < choice.share <= 1
    stacked = theory.stacked_fit(moments.sketches, [400] * 6).pooled.solution
    expected = (1 - choice.share) * stacked + choice.share * moments.coefficients.mean(axis=0)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_], expected, rtol=1e-8)
    assert "partitions do not share their coefficients" in model.model_.record.reasons["weighting"]
    assert model.certificate_.sentence.startswith("The mixture of stacked and averaged fit is estimated to lose")
    # And how far that may be off: the share follows the same sketches.
    assert "may be a third too low, and its interval holds less often than it says" in model.certificate_.sentence
    assert "too low" not in estimator(frame, weighting="rows").certificate_.sentence
    with pytest.raises(InputError, match="no true coefficients for intervals"):
        model.conf_int()
    # Of the exact fit, and so nearly the same however the sketches were combined.
    asked, rows = (one.model_.inferences[0].r_squared for one in (model, estimator(frame, weighting="rows")))
    assert asked == pytest.approx(rows, abs=0.03)


def test_weights_that_the_data_contradict_have_no_certificate() -> None:
    frame = table(spread=0.7)
    with pytest.warns(ps.PartsketchWarning, match="partitions do not have them"):
        model = estimator(frame, weighting="information")
    assert model.certificate_.kind == "unavailable"
    assert "use weighting='auto' or 'rows'" in model.certificate_.reason
    with pytest.raises(InputError, match="assume shared coefficients"):
        model.conf_int()


def test_weights_that_come_out_equal_take_nothing_for_granted() -> None:
    # A partition without noise of its own has no weight of its own, and its coefficients differ: that costs nothing.
    frame = table(rows=(200,) * 6)
    frame.loc[frame.site == 5, "y"] = 5.0
    asked, rows = estimator(frame, weighting="information"), estimator(frame, weighting="rows")
    np.testing.assert_array_equal(asked.coef_, rows.coef_)
    assert asked.certificate_.excess_loss == rows.certificate_.excess_loss
    assert "takes for granted" not in asked.certificate_.sentence


def test_what_cannot_be_tested_is_said_once() -> None:
    frame = table(rows=(1, 100, 100, 100, 100, 2000))
    with pytest.warns(ps.PartsketchWarning, match=r"cannot be tested here \(partition 0 has too few rows to show"):
        estimator(frame, weighting="information", sketch="orthogonal")


def test_a_target_of_zeros_has_no_sign(recwarn: pytest.WarningsRecorder) -> None:
    frame = table()
    frame["y"] = -0.0
    estimator(frame)
    assert any("is constant (0 in every row)" in str(warning.message) for warning in recwarn)


def test_samples_cannot_be_tested() -> None:
    frame = table()
    auto = estimator(frame, sketch="row_sample", sketch_size=60)
    assert "cannot be tested" in auto.model_.record.reasons["weighting"]
    np.testing.assert_array_equal(
        auto.coef_, estimator(frame, sketch="row_sample", sketch_size=60, weighting="rows").coef_
    )
    with pytest.warns(ps.PartsketchWarning, match="cannot be tested here"):
        forced = estimator(frame, sketch="row_sample", sketch_size=60, weighting="information")
    assert forced.certificate_.kind == "unavailable"


def test_targets_are_weighted_each_for_itself() -> None:
    frame = table()
    both = estimator(frame, ["y", "z"])
    told = both.model_.record.reasons["weighting"]
    assert "y: information" in told
    assert "z: mixture" in told or "z: rows: partitions do not share" in told
    for number, target in enumerate(("y", "z")):
        alone = estimator(frame, target)
        np.testing.assert_allclose(both.coef_[number], alone.coef_, rtol=1e-9)
        assert both.certificate_[number].excess_loss == pytest.approx(alone.certificate_.excess_loss, rel=1e-8)


@pytest.mark.parametrize("weighting", ["auto", "rows", "information"])
def test_files_and_commands_give_the_fit(tmp_path: Path, weighting: str, capsys: pytest.CaptureFixture[str]) -> None:
    frame = table()
    frame.to_parquet(tmp_path / "rows.parquet")
    fitted = ps.fit(str(tmp_path / "rows.parquet"), "y", FEATURES, weighting=weighting, **OPTIONS)
    asked = {name: value for name, value in OPTIONS.items() if name != "method"}
    for number, summary in enumerate(ps.sketch(str(tmp_path / "rows.parquet"), "y", FEATURES, **asked)):
        summary.save(tmp_path / f"{number}.psk")
    combined = ps.combine(str(tmp_path / "*.psk"), weighting=weighting)
    np.testing.assert_array_equal(combined.coefficients, fitted.coefficients)
    assert combined.certificate == fitted.certificate
    assert combined.record.options["weighting"] == fitted.record.options["weighting"] == weighting
    assert combined.record.reasons["weighting"] == fitted.record.reasons["weighting"]
    files = sorted(str(path) for path in tmp_path.glob("*.psk"))
    for command in (
        ["combine", *files],
        ["fit", str(tmp_path / "rows.parquet"), "-t", "y", "-f", "a,b,c", "--method", "stack", "--partition-by", "site",
         "-m", "20", "--seed", "7"],
    ):  # fmt: skip
        assert run([*command, "--weighting", weighting, "--json"]) == 0
        model = json.loads(capsys.readouterr().out)["model"]
        np.testing.assert_array_equal(np.ravel(model["coefficients"]), fitted.coefficients.ravel())
        assert model["record"]["reasons"]["weighting"] == fitted.record.reasons["weighting"]


def test_the_terminal_says_which_weights_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table().to_parquet(tmp_path / "rows.parquet")
    command = ["fit", str(tmp_path / "rows.parquet"), "-t", "y", "-f", "a,b,c", "--method", "stack", "--no-compare"]
    told = {
        "auto": "weighting information: partitions share their coefficients as far as the sketches show (p = ",
        "rows": "weighting rows: as asked; a sketch row stands for 5 to 100 rows, so that weighting='auto' loses less",
        "information": "weighting information: as asked; the noise of each was measured on the rows",
    }
    for weighting, expected in told.items():
        assert run([*command, "--partition-by", "site", "-m", "20", "--seed", "7", "--weighting", weighting]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert expected in shown


def test_batches_are_weighted_too() -> None:
    frame = table()
    model = ps.SketchedRegression("stack", sketch_size=20, random_state=7, weighting="auto")
    for _, rows in frame.groupby("site"):
        model.partial_fit(rows[FEATURES], rows["y"])
    assert model.model_.record.reasons["weighting"].startswith("information")
    rows = ps.SketchedRegression("stack", sketch_size=20, random_state=7, weighting="rows")
    for _, part in frame.groupby("site"):
        rows.partial_fit(part[FEATURES], part["y"])
    assert rows.certificate_.relative_excess_loss > 2 * model.certificate_.relative_excess_loss


def test_what_does_not_go_together() -> None:
    frame = table()
    assert "ridge" in estimator(frame, alpha=1.0).model_.record.reasons["weighting"]
    with pytest.raises(InputError, match="weighting='information' goes with alpha=0"):
        estimator(frame, alpha=1.0, weighting="information")
    with pytest.raises(InputError, match="weighting='auto' goes with method='stack'"):
        estimator(frame, method="partition")
    with pytest.raises(InputError, match="weighting is 'best': choose 'auto', 'rows' or 'information'"):
        estimator(frame, weighting="best")


@pytest.mark.parametrize("sketch", ["gaussian", "orthogonal", "srht", "sparse_sign", "count_sketch"])
def test_every_sketch_gains_on_uneven_sites(sketch: str) -> None:
    # Twenty fits each, the same sketches: 20% and 5% of the minimal loss, each known to about a fifth of itself.
    frame = table()
    exact = ps.SketchedRegression("exact").fit(frame[FEATURES], frame["y"])
    design = np.column_stack([np.ones(len(frame)), frame[FEATURES]])
    losses = np.zeros((20, 2))
    for seed in range(len(losses)):
        for place, weighting in enumerate(("rows", "auto")):
            model = estimator(frame, sketch=sketch, random_state=seed, weighting=weighting)
            away = design @ np.r_[model.intercept_ - exact.intercept_, model.coef_ - exact.coef_]
            losses[seed, place] = away @ away
    assert losses[:, 0].mean() > 1.8 * losses[:, 1].mean()
