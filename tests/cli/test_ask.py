"""The commands `summarise`, `ask` and `inspect`: what they print and write, and what bad input gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import partsketch as ps
from partsketch.cli import run
from tests.questions.data import clustered_rows

ROWS = clustered_rows()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    ROWS.to_parquet("rows.parquet")
    assert run(["summarise", "rows.parquet", "--columns", "a,b,c,y,z", "--partition-by", "g", "-o", "rows.psk"]) == 0
    return tmp_path


def test_summarise_says_what_it_wrote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["summarise", "rows.parquet", "--columns", "a,b,c,y,z", "--partition-by", "g", "-o", "again.psk"]) == 0
    printed = capsys.readouterr().out
    assert "1,200 rows in 9 partitions" in printed
    assert "columns: a, b, c, y, z" in printed
    assert run(["summarise", "rows.parquet", "-o", "all.psk", "--formula", "y ~ a + b", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["columns"] == ["a", "b", "y"]
    assert said["targets"] == ["y"]


def test_ask_fits_tests_and_saves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    asked = ["ask", "rows.psk", "-t", "y", "-f", "a,b", "--vcov", "CRV1", "--test", "a = 1, b = 2"]
    assert run([*asked, "--model", "model.json"]) == 0
    printed = capsys.readouterr().out
    model = ps.read_summaries("rows.psk").fit("y", ["a", "b"], vcov="CRV1")
    assert f"{model.standard_errors[1]:.5g}" in printed
    assert str(model.test("a = 1, b = 2")) in printed
    assert "take partitions for clusters (CRV1)" in printed
    assert ps.load("model.json").standard_errors.tolist() == model.standard_errors.tolist()
    assert run([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["tests"][0]["p_value"] == model.test("a = 1, b = 2").p_value


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-t", "y", "--ridge", "--folds", "9"], "ridge path of y"),
        (["-t", "y", "--lasso", "--folds", "9", "--one-standard-error"], "lasso path of y"),
        (["-t", "y ~ a", "--intercept", "partition", "--vcov", "CRV3"], "jackknife"),
        (["-t", "y", "-f", "a", "--endogenous", "b", "--instruments", "z,c"], "Sargan"),
        (["-t", "y", "-f", "a", "--by-partition"], "(0."),
        (["-t", "y", "-f", "a", "--vcov", "wild"], "wild cluster bootstrap"),
        (["-t", "y", "-f", "a", "--intercept", "none", "--alpha", "3"], "biased on purpose"),
    ],
)
def test_ask_answers(folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: str) -> None:
    capsys.readouterr()
    assert run(["ask", "rows.psk", *options]) == 0
    assert expected in capsys.readouterr().out
    assert run(["ask", "rows.psk", *options, "--json"]) == 0
    json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("ending", ["toml", "csv"])
def test_a_list_of_regressions_and_its_curve(folder: Path, capsys: pytest.CaptureFixture[str], ending: str) -> None:
    capsys.readouterr()
    path = folder / f"list.{ending}"
    if ending == "toml":
        entries = [
            'name = "small"\ntarget = "y"\nfeatures = ["a"]',
            'target = "y"\nfeatures = ["a", "b"]\nvcov = "iid"',
        ]
        path.write_text("\n".join(f"[[model]]\n{entry}" for entry in entries))
    else:
        path.write_text("name,target,features,vcov\nsmall,y,a,\n,y,a + b,iid\n")
    assert run(["ask", "rows.psk", "--compare", str(path), "--vcov", "CRV1", "--report", "curve.html"]) == 0
    printed = capsys.readouterr().out
    summaries = ps.read_summaries("rows.psk")
    models = [summaries.fit("y", ["a"], vcov="CRV1"), summaries.fit("y", ["a", "b"])]
    assert str(ps.table(models, ["small", "(2) y"])) in printed
    page = (folder / "curve.html").read_text()
    assert "coefficient of a in 2 regressions" in page
    assert page.count('class="bar"') == 2


def test_inspect_knows_every_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ps.read_summaries("rows.psk").fit("y").save("model.json")
    ps.sketch(ROWS[["a", "y"]], "y", random_state=1).save("sketch.psk")  # type: ignore[union-attr]
    capsys.readouterr()
    for file, expected in (("rows.psk", "9 partitions"), ("model.json", "R-squared"), ("sketch.psk", "gaussian")):
        assert run(["inspect", file]) == 0
        assert expected in capsys.readouterr().out
        assert run(["inspect", file, "--json"]) == 0
        json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "rows.psk", "-t", "q"], "no column 'q'"),
        (["ask", "rows.psk"], "Name a target"),
        (["ask", "none.psk", "-t", "y"], "Cannot read none.psk"),
        (["ask", "rows.psk", "-t", "y", "--ridge", "--lasso"], "not both"),
        (["ask", "rows.psk", "-t", "y", "--ridge"], "10 folds need"),
        (["ask", "rows.psk", "-t", "y", "--endogenous", "a"], "needs --target, --endogenous and --instruments"),
        (["ask", "rows.psk", "-t", "y", "--report", "x.html"], "go with --compare"),
        (["ask", "rows.psk", "--compare", "none.toml"], "Cannot read none.toml"),
        (["ask", "rows.psk", "--compare", "bad.toml"], "key 'featurs'"),
        (["summarise", "rows.parquet", "-o", "none/x.psk"], "no folder none"),
        (["summarise", "rows.parquet", "-o", "rows.parquet"], "it is one of the data"),
        (["inspect", "rows.parquet"], "neither a model nor a sketch"),
        (["inspect", "none"], "Cannot read none"),
    ],
)
def test_bad_input_gets_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "bad.toml").write_text('[[model]]\ntarget = "y"\nfeaturs = ["a"]\n')
    before = (folder / "rows.parquet").read_bytes()
    capsys.readouterr()
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert (folder / "rows.parquet").read_bytes() == before
