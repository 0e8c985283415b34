"""The report without a browser: the command repeats the fit, samples of residuals are true, reasons are given."""

from __future__ import annotations

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError
from partsketch.cli import run
from partsketch.report.charts.scales import linear_scale, logarithmic_scale, percent, short
from partsketch.report.page.coefficients import coefficient_table
from partsketch.report.page.entry import entries_of, open_rows
from partsketch.report.page.facts import repeat_command
from partsketch.report.page.residual_sample import SAMPLE_ROWS, sample_residuals
from partsketch.report.page.writer import render
from tests.report.conftest import Reports, table

FITS: dict[str, list[str]] = {
    "plain": ["--method", "partition"],
    "chosen automatically": [],
    "everything": [
        *("--features", "x0,x1,x2", "--method", "average", "--partition-by", "shuffle", "--averaging"),
        *("inverse_variance", "--no-intercept", "--weights", "x5", "--missing", "drop"),
    ],
    "ridge": ["--method", "partition", "--alpha", "2.5", "--sketch-size", "60", "--remainder", "drop", "-k", "3"],
    "encoded": ["--features", "x0,kind", "--encode", "--method", "stack"],
}


@pytest.mark.parametrize("case", FITS)
def test_the_command_repeats_the_fit_to_the_last_byte(case: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rows = table(900).append_column("kind", pa.array(["a b", "it's", "c"] * 300))
    rows = rows.set_column(rows.column_names.index("x5"), "x5", pa.array(np.arange(900) % 3 + 0.5))
    if case != "encoded":
        rows = rows.drop_columns(["kind"])
    pq.write_table(rows, "some rows.parquet")
    assert run(["fit", "some rows.parquet", "-t", "y", "--model", "first.json", "--no-compare", *FITS[case]]) == 0
    command = shlex.split(repeat_command(ps.load("first.json")))
    assert command[0] == "partsketch"
    assert run([*command[1:], "--no-compare"]) == 0
    if case == "chosen automatically":
        # The method is then named, and the record says so; everything else is the same.
        assert np.array_equal(ps.load("model.json").coefficients, ps.load("first.json").coefficients)
    else:
        assert Path("model.json").read_bytes() == Path("first.json").read_bytes()


def test_rows_in_memory_get_a_python_call() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    model = ps.SketchedRegression("stack", n_partitions=3, random_state=4).fit(X, y).model_
    again = eval(repeat_command(model), {"partsketch": ps, "X": X, "y": y})
    assert np.array_equal(again.coef_, model.coefficients[:, 0])


def test_models_of_files_and_summaries_are_made_again_by_their_own_calls(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rows = table(900).drop_columns(["x5"])
    for site, part in (("north", rows.slice(0, 400)), ("south", rows.slice(400))):
        ps.summarise(part, site=site, n_partitions=2, partition_by="order").save(f"{site}.psk")
        ps.sketch(part, "y", site=site, random_state=1).save(f"{site}-sketch.psk")
    summaries = ps.read_summaries(["north.psk", "south.psk"])
    models = [
        ps.combine(["north.psk", "south.psk"], "y", ["x1", "x2"], alpha=2.0),
        ps.combine(["north-sketch.psk", "south-sketch.psk"], method="partition", fit_intercept=False),
        summaries.fit("y", ["x1"], intercept="partition", vcov="CRV1"),
        summaries.instrument("y", "x1", ["x2", "x3"], ["x4"]),
        summaries.lasso_path("y", ["x1", "x2"], folds=2).model("best"),
    ]
    for model in models:
        again = eval(repeat_command(model), {"partsketch": ps, "summaries": summaries})
        np.testing.assert_allclose(again.coefficients, model.coefficients, rtol=1e-12)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("rows", [100, 5000, 60_000])
def test_residuals_are_those_of_the_rows_sampled(rows: int, ending: str, tmp_path: Path) -> None:
    data, path = table(rows), str(tmp_path / f"rows.{ending}")
    if ending == "parquet":
        pq.write_table(data, path, row_group_size=7000)
    else:
        pyarrow.csv.write_csv(data, path)
    model = ps.fit(path, target="y", method="exact", random_state=0)
    sample = sample_residuals(model, open_rows(model, path))
    X = np.column_stack([data[name].to_numpy() for name in model.feature_names])
    expected = data["y"].to_numpy() - X @ model.coefficients[:, 0] - model.intercept[0]
    np.testing.assert_allclose(sample.residuals[:, 0], expected[sample.row_numbers], atol=1e-9)
    assert min(rows, SAMPLE_ROWS // 2) <= len(sample.row_numbers) <= SAMPLE_ROWS
    assert len(np.unique(sample.row_numbers)) == len(sample.row_numbers)
    # Spread over all rows: no tenth of them is without a sample.
    assert len(np.unique(sample.row_numbers * 10 // rows)) == 10


def test_weighted_residuals_are_on_one_scale() -> None:
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.1, 10, size=1000)
    x = rng.normal(size=1000)
    data = pa.table({"x": x, "w": weights, "y": x + rng.normal(size=1000) / np.sqrt(weights)})
    model = ps.fit(data, target="y", method="exact", weights="w")
    sample = sample_residuals(model, open_rows(model, data))
    light, heavy = (sample.residuals[mask].std() for mask in (weights < 2, weights > 5))
    assert light / heavy == pytest.approx(1, abs=0.2)  # unweighted it is about 3


def test_what_is_missing_says_why(reports: Reports) -> None:
    page = render(entries_of([reports.model]))
    assert "There are no residuals: the rows were not given" in page
    ridge = ps.fit(table(500), target="y", method="partition", alpha=1.0, random_state=0)
    page = render(entries_of([ridge]))
    assert "There are no curves of other sketches: the theory covers least squares without a ridge penalty only" in page
    assert "There is no heat map" in page
    assert "There are no intervals" in page


def test_an_exact_fit_has_no_empty_places() -> None:
    page = render(entries_of([ps.fit(table(500), target="y")]))
    assert page.index('id="coefficients"') < page.index('id="verdict"')
    for empty in ('id="divergence"', 'id="residuals"', "exact fit from", "measured<br>time", "heat map", ">–<"):
        assert empty not in page
    assert "There are no residuals: the rows were not given" in page
    sketched = ps.fit(table(500), target="y", method="stack", n_partitions=2, random_state=0)
    for present in ('id="divergence"', "exact fit from"):
        assert present in render(entries_of([sketched]))


def test_partitions_that_determine_too_little_are_named_and_leave_no_empty_columns() -> None:
    """A level that only the first partition has: the reason is the reader's, once, and no heads stand over nothing."""
    rng = np.random.default_rng(3)
    columns = {"x": rng.normal(size=400), "rare": (np.arange(400) < 3).astype(float), "y": rng.normal(size=400)}
    with pytest.warns(ps.PartsketchWarning):
        model = ps.fit(columns, "y", method="partition", n_partitions=4, random_state=1)
    reason = "3 of 4 partitions do not determine the coefficients of 'rare'"
    assert model.inferences[0].reason.startswith(reason)
    assert model.inferences[0].around_exact.reason.startswith(reason)
    page = html.unescape(render(entries_of([model])))
    assert page.count(reason) == 1
    assert not [head for head in ("lower", "std error", "exact fit from") if f">{head}<" in page]


def test_one_outlier_does_not_squash_the_forest_plot() -> None:
    rows = table(500).append_column("far", pa.array(np.random.default_rng(1).normal(size=500) / 1e6))
    rows = rows.set_column(
        rows.column_names.index("y"), "y", pa.array(rows["y"].to_numpy() + 1e9 * rows["far"].to_numpy())
    )
    shown = coefficient_table(entries_of([ps.fit(rows, target="y")]), 0.95)
    plots = {row.name: row.plot for row in shown.rows}
    assert [name for name, plot in plots.items() if 'class="tip"' in plot.partition('class="errors"')[0]] == ["far"]
    # Zero and 2.0 are wide apart again: with the outlier on the scale they would share a pixel.
    places = [float(re.findall(r'cx="([0-9.]+)"', plots[name])[0]) for name in ("x1", "x4")]
    assert places[1] - places[0] > 50


def test_models_of_other_columns_stand_beside_one_another() -> None:
    models = [ps.fit(table(500), "y", ["x0"]), ps.fit(table(500), "y ~ 0 + x0 + x1"), ps.fit(table(500), "x1", ["x0"])]
    page = render(entries_of(models))
    shown = coefficient_table(entries_of(models), 0.95)
    assert ("y", "x1") in {(row.target, row.name) for row in shown.rows if row.estimates[0] is None}
    assert page.count("<tr data-name=") == len(shown.rows) == 5


def test_residuals_have_the_intercepts_of_absorbed_levels() -> None:
    rows = table(500).append_column("zone", pa.array(np.arange(500) % 7))
    rows = rows.set_column(rows.column_names.index("y"), "y", pc.add(rows["y"], pc.multiply(rows["zone"], 1e3)))
    absorbed = ps.fit(rows, "y ~ x0 | zone")
    (entry,) = entries_of([absorbed], None, rows)
    assert entry.residuals is not None
    picked = entry.residuals.row_numbers
    expected = rows["y"].to_numpy()[picked] - absorbed.predict(rows)[picked]
    np.testing.assert_allclose(entry.residuals.residuals[:, 0], expected, atol=1e-9)

    common = ps.fit(rows, "y", ["x0"])
    page = render(entries_of([absorbed, common], ["within", "all"], rows))
    assert "1: within: 7 levels of &#39;zone&#39; have an intercept each" in page

    parted = ps.summarise(rows, partition_by="zone").fit("y", ["x0"], intercept="partition")
    (entry,) = entries_of([parted], None, rows)
    assert entry.residuals is None
    assert "rows do not say theirs" in entry.residuals_reason


def test_residuals_of_a_fit_whose_labels_tell_clusters_too(tmp_path: Path) -> None:
    rows = table(500).append_column("zone", pa.array(np.arange(500) % 7))
    pq.write_table(rows.append_column("city", pa.array(np.arange(500) % 14)), tmp_path / "rows.parquet")
    told = ["--target", "y", "--absorb", "zone", "--vcov", "CRV1:city", "--report", str(tmp_path / "page.html")]
    assert not run(["fit", str(tmp_path / "rows.parquet"), "--features", "x0", *told])
    assert "Residuals along the rows" in (tmp_path / "page.html").read_text()


def test_several_targets_have_their_own_figures() -> None:
    model = ps.fit(table(800), target=["y", "x0"], method="partition", n_partitions=2, random_state=0)
    page = render(entries_of([model], data=table(800)))
    assert page.count('role="img" aria-label="Excess loss against') == 4
    assert page.count('role="img" aria-label="Residuals against fitted values"') == 2


def test_a_stream_still_gets_a_page(tmp_path: Path) -> None:
    rows = table(800)
    model = ps.fit(rows.to_reader(), target="y", method="exact")
    with pytest.raises(InputError, match="only once"):
        model.report(tmp_path / "page.html", rows.to_reader())
    assert not list(tmp_path.iterdir())
    model.report(tmp_path / "page.html", rows)
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_command_as_json_and_its_refusals(reports: Reports, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, page = str(reports.folder / "exact.json"), tmp_path / "page.html"
    capsys.readouterr()
    assert run(["report", model, "--output", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == page.stat().st_size
    for arguments, expected in (
        ([model, "--output", str(tmp_path / "nowhere" / "page.html")], "nowhere"),
        ([str(tmp_path / "none.json"), "--output", str(page)], "none.json"),
        ([model, "--output", str(page), "--data", "nothing.parquet"], "nothing.parquet"),
    ):
        assert run(["report", *arguments]) == 2
        message = capsys.readouterr().err
        assert expected in message
        assert message.count("\n") == 1


def test_page_loads_nothing(reports: Reports) -> None:
    text = (reports.folder / "several.html").read_text()
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [-1.0, 1e9], [1e-300, 1e300], [3e-7, 4e-7], [5e-324]])
def test_scales_hold_their_values_and_have_ticks(values: list[float]) -> None:
    scales = [linear_scale(values, 0, 100)]
    if min(values) > 0:
        scales.append(logarithmic_scale(values, 0, 100))
    for scale in scales:
        assert all(0 <= scale(value) <= 100 for value in values)
        assert 1 <= len(scale.ticks()) <= 14
        assert all(-1e-6 <= scale(tick) <= 100 + 1e-6 for tick in scale.ticks())


def test_numbers_are_short_and_true() -> None:
    for value in (0.0, 1.0, -2.5, 1234.5, 12_345.0, 9_999_999.0, 3.2e12, 1e-3, 4.56e-9, 7e20):
        text = short(value)
        assert len(text) <= 8
        factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1.0)
        assert float(text.rstrip("kMG").replace("−", "-")) * factor == pytest.approx(value, rel=0.05)
    assert percent(0.0123) == "1.23%"


def test_a_perfect_fit_has_no_empty_sections_and_no_tests() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    rows = {"a": x[:, 0], "b": x[:, 1], "y": 2 * x[:, 0] + x[:, 1]}
    page = render(entries_of([ps.fit(rows, "y")], None, rows))
    assert "without a residual, up to rounding" in page
    assert 'id="residuals"' not in page
    assert 'id="choice"' not in page
    assert "inf</td>" not in page
    assert "no method loses anything here" in page


def test_the_page_says_what_errors_assume() -> None:
    x = np.random.default_rng(0).normal(size=(300, 2))
    rows = {"a": x[:, 0], "half": np.arange(300) % 2, "y": x[:, 1]}
    page = render(entries_of([ps.fit(rows, "y", ["a"], vcov={"CRV1": "half"})], None, None))
    assert "take the values of column &#39;half&#39; for clusters (CRV1)" in page
    assert "There are 2 clusters only" in page
