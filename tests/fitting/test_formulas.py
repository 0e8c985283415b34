"""Fits by formula: the numbers of statsmodels, from every method and file, in predictions and at sites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import statsmodels.formula.api as smf
from click.testing import CliRunner
from formulaic import model_matrix

import partsketch as ps
from partsketch.cli import commands
from tests.sources.formula.data import frame

FRAME = frame()
FRAME["fare"] += np.log(FRAME["distance"]) + 0.3 * FRAME["hour"]
FORMULA = "fare ~ log(distance) + C(zone) * night + bs(hour, 4)"


@pytest.fixture(scope="module")
def model() -> ps.Model:
    return ps.fit(FRAME, FORMULA)


def test_numbers_of_statsmodels(model: ps.Model) -> None:
    known = smf.ols(FORMULA.replace("log", "np.log"), FRAME).fit()
    order = {name.replace("np.log", "log").replace("Intercept", "(intercept)"): name for name in known.params.index}
    found = dict(zip(model.column_names, model.column_coefficients[:, 0], strict=True))
    errors = dict(zip(model.column_names, model.standard_errors, strict=True))
    for ours in model.column_names:
        # patsy counts the columns of a spline from 0.
        theirs = f"bs(hour, 4)[{int(ours[-2]) - 1}]" if ours.startswith("bs") else order[ours]
        assert found[ours] == pytest.approx(known.params[theirs], rel=1e-8, abs=1e-10), ours
        assert errors[ours] == pytest.approx(known.bse[theirs], rel=1e-8), ours
    np.testing.assert_allclose(model.predict(FRAME), known.fittedvalues, rtol=1e-9)


def test_a_saved_model_makes_the_same_columns_of_other_rows(model: ps.Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model.json")
    again = ps.load(tmp_path / "model.json")
    assert again.encoding == model.encoding
    others = FRAME[(FRAME["zone"] == "b") & (FRAME["hour"] > 5)].drop(columns="fare")
    known = model_matrix(FORMULA, FRAME).rhs.model_spec.get_model_matrix(others).to_numpy(float)
    np.testing.assert_allclose(again.predict(others), known @ model.column_coefficients[:, 0], rtol=1e-11)
    for changed, sentence in (
        ({"zone": "z"}, "Column 'zone' has the level 'z' in row 0"),
        ({"hour": 99}, "hour is 99 in row 0, and bs"),
        ({"distance": -1.0}, "is not a number in row 0, where distance is -1"),
        ({"zone": None}, "Column 'zone' has a missing value"),
    ):
        with pytest.raises(ps.InputError, match=sentence):
            again.predict(others.assign(**changed))
    with pytest.raises(ps.InputError, match="There is no column 'zone'"):
        again.predict(others.drop(columns="zone"))
    assert len(
        again.predict(others.assign(zone=["b", None] * (len(others) // 2) + ["b"] * (len(others) % 2)), "drop")
    ) < len(others)


@pytest.mark.parametrize(
    "change",
    [
        {"factors": []},
        {"terms": [], "targets": [9]},
        {"factors.0.expression": "__import__('os').system('touch hacked')"},
        {"factors.1.levels": ["a", "a"]},
        {"factors.3.state": []},
        {"terms.0.names": ["other"]},
        {"terms.0.factors": [[99, False]]},
    ],
)
def test_a_forged_design_is_refused(model: ps.Model, tmp_path: Path, change: dict[str, Any]) -> None:
    from partsketch.model.file import checksum

    values = json.loads(json.dumps(model.to_dict()))
    for path, new in change.items():
        place = values["encoding"]["design"]
        *steps, last = path.split(".")
        for step in steps:
            place = place[int(step)] if step.isdigit() else place[step]
        place[last] = new
    values["checksum"] = checksum(values)
    (tmp_path / "forged.json").write_text(json.dumps(values))
    with pytest.raises(ps.InputError, match=r"forged.json is damaged: 'encoding.design"):
        ps.load(tmp_path / "forged.json")


@pytest.mark.parametrize("method", ["average", "partition", "stack", "whole"])
def test_every_method_takes_a_formula(method: str) -> None:
    matrix = model_matrix(FORMULA, FRAME)
    plain = pd.concat([matrix.rhs.drop(columns="Intercept"), matrix.lhs], axis=1)
    asked: dict[str, Any] = {"method": method, "random_state": 5, "n_partitions": 2, "sketch_size": 60}
    found, known = ps.fit(FRAME, FORMULA, **asked), ps.fit(plain, "fare", **asked)
    # The same random numbers; splines differ in the last digit.
    np.testing.assert_allclose(found.coefficients, known.coefficients, rtol=1e-9, atol=1e-9)


def test_no_intercept_is_what_the_formula_says() -> None:
    model = ps.fit(FRAME, "fare ~ zone - 1")
    assert model.column_names[0] == "zone[a]"
    np.testing.assert_allclose(model.coefficients[:, 0], FRAME.groupby("zone")["fare"].mean(), rtol=1e-12)
    with pytest.raises(ps.InputError, match="write '- 1' in it"):
        ps.fit(FRAME, "fare ~ zone", fit_intercept=False)
    with pytest.raises(ps.InputError, match="not both"):
        ps.fit(FRAME, "fare ~ zone", ["night"])
    mean = ps.fit(FRAME, "fare ~ 1")
    assert mean.intercept[0] == pytest.approx(FRAME["fare"].mean(), rel=1e-12)
    np.testing.assert_allclose(mean.predict(FRAME), FRAME["fare"].mean())


def test_sites_agree_on_levels_and_knots(model: ps.Model, tmp_path: Path) -> None:
    north, south = FRAME[FRAME["hour"] < 14], FRAME[FRAME["hour"] >= 9]
    parts = [ps.sketch(rows, FORMULA, sketch="triangular", site=name) for rows, name in ((north, "n"), (south, "s"))]
    with pytest.raises(
        ps.InputError, match=r"differ in what was found for 'bs\(hour, 4\)': every site has found its own"
    ):
        ps.combine(parts)
    assert model.encoding.design is not None
    given = json.loads(json.dumps(model.encoding.design.found))
    assert given["C(zone)"] == sorted(set(FRAME["zone"]))
    north, south = FRAME[:150], FRAME[150:]
    parts = [
        ps.sketch(rows, FORMULA, sketch="triangular", site=name, levels=given)
        for rows, name in ((north, "n"), (south, "s"))
    ]
    for number, part in enumerate(parts):
        part.save(tmp_path / f"{number}.psk")
    combined = ps.combine(str(tmp_path / "*.psk"))
    np.testing.assert_allclose(combined.coefficients, model.coefficients, rtol=1e-9)
    np.testing.assert_allclose(combined.predict(FRAME), model.predict(FRAME), rtol=1e-9)
    with pytest.raises(ps.InputError, match="would tell what was found of the rows for 'bs"):
        ps.sketch(FRAME, FORMULA, private=True, site="n")
    assert ps.sketch(FRAME, FORMULA, private=True, site="n", levels=given).about.private
    wrong: dict[str, Any] = {**given, "bs(hour, 4)": [0, 12, 23]}
    with pytest.raises(ps.InputError, match="has 3 numbers and needs 9, as another site has them"):
        ps.sketch(FRAME, FORMULA, private=True, site="n", levels=wrong)


def test_knots_in_the_formula_are_nothing_that_rows_tell() -> None:
    """Knots and ends that are written need no pass, and a private sketch takes them."""
    written = "fare ~ bs(hour, knots=[11.5], lower_bound=0, upper_bound=23)"
    assert ps.sketch(FRAME, written, private=True, site="n").about.private
    stream = pa.table(FRAME[["fare", "hour"]]).to_reader()
    once = ps.fit(stream, written)
    np.testing.assert_array_equal(once.coefficients, ps.fit(FRAME, written).coefficients)
    with pytest.raises(ps.InputError, match="would tell what was found of the rows for 'bs"):
        ps.sketch(FRAME, "fare ~ bs(hour, knots=[11.5], lower_bound=0)", private=True, site="n")


def test_levels_that_rows_tell_are_not_named_by_a_private_sketch() -> None:
    rows = {"colour": ["red", "blue"] * 50, "y": [float(i) for i in range(100)]}
    found = "name the levels of .* that were found among the rows: agree on them with all sites"
    encoded: dict[str, Any] = {"features": ["colour"], "private": True, "site": "n", "sketch_size": 9}
    with pytest.raises(ps.InputError, match=found):
        ps.sketch(rows, "y", encode=True, **encoded)
    agreed = ps.sketch(rows, "y", encode=True, levels={"colour": ["red", "blue"]}, **encoded)
    assert agreed.about.encoding.levels == (("colour", ("red", "blue")),)
    for formula in ("y ~ colour", "y ~ C(colour, contr.sum)"):
        with pytest.raises(ps.InputError, match=found):
            ps.sketch(rows, formula, private=True, site="n")
    for formula, levels in (
        ("y ~ C(colour, levels=['red', 'blue'])", None),
        ("y ~ C(colour)", {"colour": ["red", "blue"]}),
        ("y ~ C(colour)", {"C(colour)": ["red", "blue"]}),
    ):
        assert ps.sketch(rows, formula, private=True, site="n", levels=levels, sketch_size=9).about.private
    assert not ps.sketch(rows, "y ~ colour", site="n", sketch_size=9).about.private


@pytest.mark.parametrize(("levels", "held"), [(["true", "false"], "True and False"), (["1", "x"], "whole numbers")])
def test_levels_that_a_column_cannot_have(levels: list[str], held: str) -> None:
    rows = {"b": [True, False] * 50, "k": [1, 2] * 50, "y": [float(i) for i in range(100)]}
    name = "b" if "true" in levels else "k"
    with pytest.raises(
        ps.InputError, match=f"'C\\({name}\\)' were given as '{levels[0]}', .* column holds {held}: write"
    ):
        ps.sketch(rows, f"y ~ C({name})", sketch="triangular", levels={f"C({name})": levels})


def test_rounds_are_refused() -> None:
    sketch = ps.sketch(FRAME, "fare ~ log(distance)", site="n", random_state=1, sketch_size=40)
    with pytest.raises(ps.InputError, match="Sketches of a formula are combined without rounds"):
        ps.Rounds.begin([sketch])


def test_summaries_of_a_formula(model: ps.Model, tmp_path: Path) -> None:
    summaries = ps.summarise(FRAME, formula=FORMULA, partition_by="k")
    summaries.save(tmp_path / "rows.psk")
    again = ps.read_summaries(tmp_path / "rows.psk")
    assert again == summaries
    np.testing.assert_allclose(again.fit().coefficients, model.coefficients, rtol=1e-9)
    half = ps.summarise(FRAME, formula=FORMULA, partition_by="k", label="first")
    both = half.add(FRAME.assign(fare=FRAME["fare"] + 1), partition_by="k", label="second")
    # Every row is in twice, once with one more: the slopes are the same, the intercept is half of one higher.
    np.testing.assert_allclose(both.fit().coefficients, model.coefficients, rtol=1e-9)
    np.testing.assert_allclose(both.fit().intercept, model.intercept + 0.5, rtol=1e-9)
    few = again.fit("fare ~ bs(hour, 4) + night", vcov="CRV1")
    assert few.feature_names == (*(f"bs(hour, 4)[{number}]" for number in range(1, 5)), "night")
    plain = smf.ols("fare ~ bs(hour, 4) + night", FRAME).fit()
    np.testing.assert_allclose(few.predict(FRAME), plain.fittedvalues, rtol=1e-9)
    some = again.fit("fare", ["C(zone)[T.b]", "log(distance)"])
    known = np.column_stack([np.ones(len(FRAME)), FRAME["zone"] == "b", np.log(FRAME["distance"])])
    expected = known @ np.linalg.lstsq(known, FRAME["fare"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose(some.predict(FRAME), expected, rtol=1e-10)


def test_the_command_takes_a_formula(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pandas(FRAME), tmp_path / "rows.parquet")
    run = CliRunner().invoke
    path, out = str(tmp_path / "rows.parquet"), str(tmp_path / "model.json")
    result = run(commands, ["fit", path, "--formula", FORMULA, "--model", out])
    assert result.exit_code == 0, result.output
    saved = ps.load(out)
    assert saved.record.asked is not None
    assert saved.record.asked["formula"] == FORMULA
    predicted = run(commands, ["predict", out, path, "--output", str(tmp_path / "out.parquet")])
    assert predicted.exit_code == 0, predicted.output
    np.testing.assert_array_equal(pq.read_table(tmp_path / "out.parquet")["prediction"], saved.predict(FRAME))
    for words, sentence in (
        (["fit", path], "Missing option '--target' / '-t', or '--formula'"),
        (["fit", path, "--target", "fare", "--formula", FORMULA], "not both"),
        (["fit", path, "--formula", "distance"], "has no '~'"),
    ):
        refused = run(commands, words)
        assert refused.exit_code == 2
        assert sentence in refused.output
