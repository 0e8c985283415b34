"""Fits of partitions pooled: against fits of single partitions, as text, page and command."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import partsketch as ps
from partsketch.cli import run
from partsketch.theory.meta_analysis import pool
from tests.questions.test_mixed import ROWS, SUMMARIES


def test_sites_are_fitted_alone_and_pooled() -> None:
    found = SUMMARIES.meta_analysis("y", ["a", "b"], method="DL")
    assert found.column_names == ("(intercept)", "a", "b")
    models = [SUMMARIES.select([name]).fit("y", ["a", "b"]) for name in found.site_names]
    np.testing.assert_allclose(found.site_coefficients, [m.column_coefficients[:, 0] for m in models], rtol=1e-9)
    np.testing.assert_allclose(found.site_errors, [m.standard_errors for m in models], rtol=1e-9)
    assert found["b"] == pool(found.site_coefficients[:, 2], found.site_errors[:, 2] ** 2, "DL")
    assert found.coefficients[1] == found["a"].random.value
    with pytest.raises(ps.InputError, match="no coefficient 'c'"):
        found["c"]


def test_an_interval_that_is_shorter_than_the_fixed_one_is_told() -> None:
    """Three sites of nearly the same rows have no spread; of sites that differ nothing is said."""
    draw = np.random.default_rng(2)
    rows = pd.DataFrame({"x": draw.normal(size=200), "e": draw.normal(size=200)})
    sites = [rows.assign(y=rows.x + rows.e + shift * rows.x, site=str(shift)) for shift in (0.0, 0.001, -0.001)]
    alike = ps.summarise(pd.concat(sites), ["x", "y"], partition_by="site")
    assert "'x' the interval of random effects is shorter" in str(alike.meta_analysis("y", ["x"]))
    sites = [rows.assign(y=rows.x + rows.e + shift * rows.x + shift, site=str(shift)) for shift in (0.0, 0.9, -0.8)]
    unlike = ps.summarise(pd.concat(sites), ["x", "y"], partition_by="site")
    assert "is shorter" not in str(unlike.meta_analysis("y", ["x"]))


def test_lines_of_the_forest() -> None:
    """Sites with intervals of their own degrees of freedom, and their weights among random effects."""
    found = SUMMARIES.meta_analysis("y", ["a", "b"], level=0.9)
    lines = found.forest_lines("a")[: len(found.site_names)]
    values, errors = found.site_coefficients[:, 1], found.site_errors[:, 1]
    reach = t.ppf(0.95, np.array(found.site_rows) - 3) * errors
    np.testing.assert_allclose([line.value for line in lines], values)
    np.testing.assert_allclose([(line.lower, line.upper) for line in lines], np.c_[values - reach, values + reach])
    weights = 1 / (errors**2 + found["a"].tau_squared)
    assert [line.weight for line in lines] == pytest.approx(weights / weights.sum())
    # The variance between sites is of the size of their own.
    assert 0.01 < found["a"].tau_squared / np.median(errors) ** 2 < 100


def test_partitions_of_few_rows_are_told() -> None:
    rows = pd.concat([ROWS[:12].assign(site="short"), ROWS[50:63].assign(site="long")])
    found = ps.summarise(rows, partition_by="site").meta_analysis("y", ["a", "b"])
    assert "1 of 2 partitions have fewer than 10 rows more than coefficients (least: 12 rows" in found.warnings[0]


def test_partitions_that_cannot_be_fitted_are_told() -> None:
    rows = pd.concat(
        [
            ROWS,
            ROWS[:2].assign(site="tiny"),
            ROWS[:50].assign(site="flat", a=1.0),
            ROWS[:50].assign(site="perfect", y=3 * ROWS["a"][:50]),
        ]
    )
    found = ps.summarise(rows, partition_by="site").meta_analysis("y", ["a", "b"])
    assert not {"tiny", "flat", "perfect"} & set(found.site_names)
    assert found.warnings[0].startswith("3 of 15 partitions cannot be fitted alone and are left out, such as 'flat': ")
    assert "fewer than 10 rows more than coefficients" in found.warnings[1]
    np.testing.assert_allclose(found.coefficients, SUMMARIES.meta_analysis("y", ["a", "b"]).coefficients, rtol=1e-9)
    with pytest.raises(ps.InputError, match="at least two partitions"):
        SUMMARIES.select(SUMMARIES.names[:1]).meta_analysis("y", "a")


def test_columns_far_from_zero() -> None:
    far = ROWS.assign(a=ROWS["a"].round(3) + 2.0**30, y=ROWS["y"] * 1e-9)
    near = ROWS.assign(a=ROWS["a"].round(3))
    one, two = (ps.summarise(rows, partition_by="site").meta_analysis("y", ["a", "b"]) for rows in (far, near))
    assert one["a"].random.value * 1e9 == pytest.approx(two["a"].random.value, rel=1e-7)
    assert one["a"].i_squared == pytest.approx(two["a"].i_squared, abs=1e-7)


def test_forest_plot_table_and_page(tmp_path: Path) -> None:
    found = SUMMARIES.meta_analysis("y", ["a", "b"])
    drawn = found.forest("b").splitlines()
    assert len(drawn) == 1 + 12 + 3 + 1
    assert drawn[1].startswith("s00")
    assert "◆" in drawn[14]
    assert f"I² = {100 * found['b'].i_squared:.1f}%" in drawn[-1]
    assert "Meta-analysis of y: 12 partitions" in str(found)
    assert found.to_frame().loc["a", "tau_squared"] == found["a"].tau_squared
    assert "meta-analysis" in str(ps.table([SUMMARIES.fit("y", "a"), found]))
    assert json.loads(json.dumps(found.to_dict()))["coefficients"][1]["q"] == found["a"].q
    found.report(tmp_path / "meta.html")
    page = (tmp_path / "meta.html").read_text()
    assert page.count("<svg") == 3
    assert 'aria-label="Forest plot of b"' in page
    SUMMARIES.mixed("y", ["a", "b"], random="a").report(tmp_path / "mixed.html")
    assert (tmp_path / "mixed.html").read_text().count("<svg") == 2


def test_names_of_sites_are_shown_as_text(tmp_path: Path) -> None:
    nasty = ROWS.assign(site=ROWS["site"].replace({"s00": "<script>alert(1)</script>", "s01": "bell\x07"}))
    found = ps.summarise(nasty, partition_by="site").meta_analysis("y", ["a"])
    assert "\x07" not in str(found)
    found.report(tmp_path / "page.html")
    assert "<script" not in (tmp_path / "page.html").read_text()


def test_many_sites_are_not_all_drawn() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=2000), "y": rng.normal(size=2000), "site": np.repeat(range(100), 20)})
    summaries = ps.summarise(rows, partition_by="site")
    assert "40 more, not drawn" in summaries.meta_analysis("y", "a").forest()


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    SUMMARIES.save("sites.psk")
    asked = ["ask", "sites.psk", "--target", "y", "--features", "a,b"]
    assert run([*asked, "--random", "intercept,a", "--report", "mixed.html"]) == 0
    printed = capsys.readouterr().out
    assert "Random effects of partitions: y" in printed
    assert "report written to mixed.html" in printed
    assert run([*asked, "--random", "intercept", "--likelihood", "ML", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["random"]["names"] == ["(intercept)"]
    assert run([*asked, "--meta", "--tau", "DL", "--forest", "b", "--report", "meta.html"]) == 0
    printed = capsys.readouterr().out
    assert "τ² by DL" in printed
    assert "\nb\n" in printed
    assert run([*asked, "--meta", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["coefficients"][1]["tau_squared"] == SUMMARIES.meta_analysis("y", ["a", "b"])["a"].tau_squared
    for wrong, sentence in (
        (["--random", "a", "--meta"], "does not go with"),
        (["--random", "a", "--vcov", "CRV1"], "--vcov does not go with --random"),
        (["--tau", "DL"], "--tau goes with --meta"),
        (["--meta", "--forest", "x"], "no coefficient 'x'"),
        (["--meta", "--report", "sites.psk"], "sites.psk"),
    ):
        assert run([*asked, *wrong]) == 2
        assert sentence in capsys.readouterr().err
