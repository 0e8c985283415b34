"""Intercepts of levels by sums of rows: pyfixest is the judge, and indicators written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import partsketch as ps
from partsketch import LocalEngine
from partsketch.cli import commands

ROWS = 2000


def frame(case: str = "plain") -> pd.DataFrame:
    generator = np.random.default_rng(2)
    zone = generator.integers(0, 300, ROWS)
    # Levels of one row, besides those that happen to be.
    zone[:3] = [901, 902, 903]
    x = generator.normal(size=ROWS) + 0.01 * zone
    if case == "sorted":
        zone = np.sort(zone)
    elif case == "identifier":
        x = 1e16 + 1e6 * zone + 2.0 * generator.integers(0, 1000, ROWS)
    elif case == "between":
        # Nearly all of it lies between levels: what is left within is a hundred-millionth.
        x = 1e4 * zone + 1e-4 * generator.normal(size=ROWS)
    v = generator.normal(size=ROWS) * (1 + zone % 3)
    spread = float(np.std(x - pd.Series(x).groupby(zone).transform("mean")))
    noise = generator.normal(size=ROWS) * (1 + np.abs(v))
    y = 2 * (x - x.mean()) / max(spread, 1e-9) - v + np.sin(zone) + noise
    weights = generator.random(ROWS) + 0.5
    # Cities cut across zones, and one has none but a row that is alone in its zone; states are made of zones.
    city = np.where(zone == 901, 50, generator.integers(0, 40, ROWS))
    return pd.DataFrame({"y": y, "x": x, "v": v, "zone": zone, "w": weights, "city": city, "state": zone // 10})


def errors_of(model: ps.Model) -> Any:
    errors = model.inferences[0].standard_errors
    assert errors is not None
    return errors


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize(
    "vcov",
    ["iid", "HC1", *({"CRV1": columns} for columns in ("zone", "city", "state", "city + zone"))],
    ids=["iid", "HC1", "zone", "city", "state", "both"],
)
def test_same_as_pyfixest(vcov: Any, weights: str | None) -> None:
    pyfixest = pytest.importorskip("pyfixest")
    rows = frame()
    found = ps.fit(rows, "y", ["x", "v"], absorb="zone", vcov=vcov, weights=weights)
    judge = pyfixest.feols("y ~ x + v | zone", rows, vcov="hetero" if vcov == "HC1" else vcov, weights=weights)
    np.testing.assert_allclose(found.coefficients[:, 0], judge.coef().to_numpy(), rtol=1e-9)
    np.testing.assert_allclose(errors_of(found), judge.se().to_numpy(), rtol=1e-9)
    if isinstance(vcov, dict):
        used = rows[rows.groupby("zone")["zone"].transform("size") > 1]
        clusters = min(used[column].nunique() for column in vcov["CRV1"].split(" + "))
        assert found.inferences[0].degrees_of_freedom == clusters - 1
    assert found.record.weight_sum == pytest.approx(float(rows[weights].sum()) if weights else ROWS, rel=1e-12)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
@pytest.mark.parametrize("case", ["plain", "sorted", "identifier", "between"])
def test_slopes_are_those_of_deviations(case: str) -> None:
    rows = frame(case)
    found = ps.fit(rows, "y", ["x", "v"], absorb="zone")
    # A value of a level itself is taken off first: differences of neighbouring doubles are exact.
    within = rows.groupby("zone").transform(lambda column: column - column.iloc[0])
    within -= within.groupby(rows["zone"]).transform("mean")
    slopes = np.linalg.lstsq(within[["x", "v"]].to_numpy(), within["y"].to_numpy(), rcond=None)[0]
    # y itself is rounded where x·β is huge; the judge has about eight digits left of "between".
    np.testing.assert_allclose(found.coefficients[:, 0], slopes, rtol=1e-6 if case == "between" else 1e-10)


@pytest.mark.parametrize("far", [1e11, 1e13])
def test_levels_far_from_one_another(far: float) -> None:
    """Sums of the rows as they are keep no digit of what lies within: the fit is that of deviations all the same."""
    generator = np.random.default_rng(5)
    zone = np.arange(600) % 5
    # Between levels "same" varies as much as x does, and within them not at all.
    rows = pd.DataFrame({"x": far * zone + generator.normal(size=600), "v": generator.normal(size=600), "zone": zone})
    rows = rows.assign(w=generator.random(600) + 0.5, same=0.1 * far * zone)
    within = rows["x"] - rows.groupby("zone")["x"].transform("first")
    rows["y"] = 2 * within - rows["v"] + generator.normal(size=600)
    for asked in ({}, {"vcov": "HC1"}, {"vcov": {"CRV1": "zone"}}, {"weights": "w"}):
        near = ps.fit(rows.assign(x=within), "y", ["x", "v"], absorb="zone", **asked)
        found = ps.fit(rows, "y", ["x", "v"], absorb="zone", **asked)
        np.testing.assert_allclose(found.coefficients, near.coefficients, rtol=1e-12)
        np.testing.assert_allclose(errors_of(found), errors_of(near), rtol=1e-12)
    # Predictions are made of values as they are: rounded like these.
    np.testing.assert_allclose(found.predict(rows), near.predict(rows.assign(x=within)), atol=8 * np.spacing(4 * far))
    with pytest.warns(ps.PartsketchWarning, match="'same' is constant within the levels"):
        again = ps.fit(rows, "y", ["x", "v", "same"], absorb="zone", weights="w", engine=LocalEngine(block_rows=7))
    np.testing.assert_allclose(again.coefficients[:2], found.coefficients, rtol=1e-12)


def test_far_levels_of_rows_on_a_cluster_are_refused() -> None:
    dask = pytest.importorskip("dask.dataframe")
    zone = np.arange(60) % 3
    rows = pd.DataFrame({"x": 1e12 * zone + np.sin(np.arange(60)), "y": np.cos(np.arange(60.0)), "zone": zone})
    with pytest.raises(ps.InputError, match="Column 'x' lies so much farther apart between the levels of 'zone'"):
        ps.fit(dask.from_pandas(rows, npartitions=2), "y", ["x"], absorb="zone")


def test_columns_that_say_nothing_within_levels() -> None:
    rows = frame().assign(height=lambda table: 0.1 * table["zone"], nothing=0.0, three=3.0)
    with pytest.warns(ps.PartsketchWarning) as told:
        found = ps.fit(rows, "y", ["x", "height", "nothing", "three"], absorb="zone")
    sentences = " ".join(str(warning.message) for warning in told)
    for name in ("height", "nothing", "three"):
        assert f"Column '{name}' is constant within the levels" in sentences
    assert "6 rows are alone in a level" in sentences
    assert "zero in every row" not in sentences
    assert found.record.rank == 1
    assert found.coefficients[1:, 0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_bits_do_not_depend_on_blocks_threads_or_source(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    rows = pa.Table.from_pandas(frame("identifier"))
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=300)
    models = [
        ps.fit(data, "y", ["x", "v"], absorb="zone", vcov={"CRV1": "city"}, weights="w", engine=engine)
        for data, engine in (
            (rows, LocalEngine(threads=1, block_rows=7)),
            (rows, LocalEngine(threads=2)),
            (str(tmp_path / "rows.parquet"), LocalEngine(threads=2, block_rows=211)),
        )
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coefficients, models[0].coefficients)
        np.testing.assert_array_equal(errors_of(model), errors_of(models[0]))


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_sums_of_segments_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many segments, each around a centre of its own, give what one gives."""
    from partsketch.fitting.absorbed import fit as module

    rows = frame().assign(x=lambda table: table["x"] + 1e6 + np.arange(ROWS))
    one = ps.fit(rows, "y", ["x", "v"], absorb="zone", vcov={"CRV1": "city"})
    nested = ps.fit(rows, "y", ["x", "v"], absorb="zone", vcov={"CRV1": "state"})
    monkeypatch.setattr(module, "segment_rows_for", lambda levels, width: 128)
    many = ps.fit(rows, "y", ["x", "v"], absorb="zone", vcov={"CRV1": "city"})
    np.testing.assert_allclose(many.coefficients, one.coefficients, rtol=1e-12)
    # Whether levels are nested in clusters is known of all segments together.
    np.testing.assert_allclose(errors_of(many), errors_of(one), rtol=1e-12)
    again = ps.fit(rows, "y", ["x", "v"], absorb="zone", vcov={"CRV1": "state"})
    np.testing.assert_allclose(errors_of(again), errors_of(nested), rtol=1e-12)
    np.testing.assert_allclose(many.partition_intercepts, one.partition_intercepts, rtol=1e-9, atol=1e-6)


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_predictions_have_the_level_of_their_row(tmp_path: Path) -> None:
    rows = frame()
    rows["zone"] = [f"z{number}" for number in rows["zone"]]
    found = ps.fit(rows, "y", ["x", "v"], absorb="zone")
    found.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    predicted = again.predict(rows.iloc[5:50])
    np.testing.assert_array_equal(predicted, found.predict(rows)[5:50])
    # Residuals of every level add up to nothing.
    left = (rows["y"] - found.predict(rows)).groupby(rows["zone"]).sum()
    assert np.abs(left).max() < 1e-9
    with pytest.raises(ps.InputError, match="'zone' has the level 'new'"):
        again.predict(rows.iloc[:5].assign(zone="new"))
    with pytest.raises(ps.InputError, match="no interval of a prediction"):
        again.predict(rows, interval="confidence")


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_too_many_levels_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from partsketch.fitting.absorbed import fit as module

    monkeypatch.setattr(module, "MOST_EFFECTS", 100)
    found = ps.fit(frame(), "y", ["x", "v"], absorb="zone")
    with pytest.raises(ps.InputError, match="too many for the model to keep"):
        found.predict(frame())


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"method": "stack"}, "goes with method='exact'"),
        ({"alpha": 1.0}, "goes with method='exact'"),
        ({"vcov": "HC3"}, "goes with vcov 'iid'"),
        ({"vcov": {"CRV3": "zone"}}, "goes with vcov 'iid'"),
        ({"vcov": {"CRV1": "v + w"}}, "clusters of one column, or of 'zone' and one more"),
        ({"checkpoint": "folder"}, "keeps nothing in a checkpoint"),
        ({"partition_by": "shuffle"}, "without partitions"),
        ({"absorb": "nowhere"}, "no column 'nowhere'"),
    ],
)
def test_refusals(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ps.InputError, match=sentence):
        ps.fit(frame(), "y", ["x"], **{"absorb": "zone", **asked})


def test_every_level_alone() -> None:
    rows = frame().assign(zone=np.arange(ROWS))
    with pytest.raises(ps.InputError, match="one row only"):
        ps.fit(rows, "y", ["x"], absorb="zone")


def test_the_estimator_refuses() -> None:
    with pytest.raises(ps.InputError, match=r"use partsketch\.fit"):
        ps.SketchedRegression(absorb="zone").fit(frame()[["x"]], frame()["y"])


def test_command(tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "rows.csv", index=False)
    output = tmp_path / "model.json"
    asked = [
        "fit",
        str(tmp_path / "rows.csv"),
        "--target",
        "y",
        "--features",
        "x,v",
        "--absorb",
        "zone",
        "--model",
        str(output),
    ]
    result = CliRunner().invoke(commands, asked)
    assert result.exit_code == 0, result.output
    assert ps.load(output).record.options["absorb"] == "zone"


@pytest.mark.filterwarnings("ignore::partsketch.PartsketchWarning")
def test_a_column_behind_a_bar_is_absorbed() -> None:
    """As fixest and pyfixest write it; bars in brackets and quotes are none of these."""
    rows = frame().rename(columns={"zone": "the zone"})
    known = ps.fit(rows, "y ~ x + v", absorb="the zone")
    model = ps.fit(rows, "y ~ x + v | `the zone`", absorb="the zone")
    np.testing.assert_array_equal(model.coefficients, known.coefficients)
    np.testing.assert_array_equal(errors_of(model), errors_of(known))
    odd = rows.rename(columns={"v": "a|b"})
    np.testing.assert_array_equal(ps.fit(odd, "y ~ x + `a|b` | `the zone`").coefficients, known.coefficients)


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("y ~ x | zone + v", "such as 'y ~ x + C(v) | zone'."),
        ("y ~ x | zone + `the v`", "such as 'y ~ x + C(`the v`) | zone'."),
        ("y ~ x | zone^v", "make one column of several before, and name it alone."),
        ("y ~ x | zone | v ~ w", "instruments are asked of summaries: summaries.instrument("),
        ("y ~ x | ", "name it behind the bar, or leave the bar out."),
        ("y ~ x | w", "give one of them"),
    ],
)
def test_what_stands_behind_a_bar_is_one_column(formula: str, sentence: str) -> None:
    with pytest.raises(ps.InputError) as error:
        ps.fit(frame(), formula, absorb="zone")
    assert sentence in str(error.value)


def test_a_level_with_a_cluster_in_each_of_two_segments_has_several() -> None:
    from partsketch.sketches.absorbed import LevelMerging

    # Level 3 of ten in cluster 1 here and in cluster 2 there; level 4 in cluster 1 in both.
    merged = LevelMerging(3, levels=10).merge(np.array([[13.0], [14.0]]), np.array([[23.0], [14.0]]))
    assert merged.tolist() == [[-4.0], [14.0]]
