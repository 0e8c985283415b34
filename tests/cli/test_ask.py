"""The commands `summarise`, `ask` and `inspect`: what they print and write, and what bad input gets."""

from __future__ import annotations

import json
import os
import re
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
    # Tables show two digits of a standard error; the others are below, in the file.
    assert f"{model.standard_errors[1]:.2g}" in printed
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
    printed = capsys.readouterr().out
    assert expected in printed
    # What standard errors are for is said only where there are any.
    assert ("intervals are for" in printed) == ("No standard errors" not in printed and "--by-partition" not in options)
    assert run(["ask", "rows.psk", *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    # What the table shows is there for machines too: errors, tests and intervals, and of a path all of it.
    summaries = [entry["summary"] for entry in told["models"]] if "models" in told else [told["summary"]]
    assert all({"standard_error", "p_value", "lower"} <= set(line) for line in summaries[0]["coefficients"])
    assert f"{summaries[0]['fitted_by']}: y" in printed or "--by-partition" in options
    assert ("path" in told) == (" path of " in expected)
    if "path" in told:
        path = getattr(ps.read_summaries("rows.psk"), f"{told['path']['kind']}_path")("y", folds=9)
        assert told["path"]["cv_errors"] == path.cv_errors.tolist()
        assert told["path"]["best_alpha"] == path.best_alpha


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["--ridge", "--folds", "9"], "Ridge regression"),
        (["--alpha", "2"], "Ridge regression"),
        (["--lasso", "--folds", "9"], "Lasso"),
        (["--lasso", "--folds", "9", "--l1-ratio", "0.5"], "Elastic net"),
        (["-f", "a", "--endogenous", "b", "--instruments", "z"], "Two-stage least squares"),
        (["-f", "a"], "Least squares"),
    ],
)
def test_a_table_says_what_was_fitted(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], name: str
) -> None:
    capsys.readouterr()
    assert run(["ask", "rows.psk", "-t", "y", *options]) == 0
    assert f"{name}: y" in capsys.readouterr().out.splitlines()


def test_the_wild_bootstrap_is_made_as_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    asked = ["ask", "rows.psk", "-t", "y", "-f", "a", "--vcov", "wild", "--wild-weights", "rademacher"]
    assert run([*asked, "--draws", "199", "--seed", "3"]) == 0
    assert "wild cluster bootstrap (199 draws, Rademacher weights, seed 3)" in " ".join(capsys.readouterr().out.split())
    # There are 512 vectors of nine signs: where so many draws are allowed, each is taken once.
    assert run([*asked, "--draws", "999"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "(512 draws, Rademacher weights" in printed
    # None of 512 draws went as far: more than p < 1/512 nobody can say.
    assert "< 0.002" in printed
    assert "< 0.001" not in printed
    assert run([*asked, "--wild-weights", "webb", "--draws", str(10**12)]) == 2
    assert "ask for fewer draws" in " ".join(capsys.readouterr().err.split())
    assert run(["ask", "rows.psk", "-t", "y", "--ridge", "--folds", "9", "--draws", "199"]) == 2


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
    bars = re.search('class="bar" d="([^"]*)"', page)
    assert bars is not None
    assert bars[1].count("M") == page.count('class="point"') == 2
    dots = {kind: re.findall(f'class="dot {kind}" [^>]* d="([^"]*)"', page) for kind in ("in", "out")}
    assert [line.count("M") for line in dots["in"] + dots["out"]] == [1, 1], "b is in one of two"


@pytest.mark.parametrize("kind", ["ridge", "lasso"])
def test_a_path_has_a_page(folder: Path, kind: str) -> None:
    assert run(["ask", "rows.psk", "-t", "y", f"--{kind}", "--folds", "9", "--report", "path.html"]) == 0
    page = (folder / "path.html").read_text()
    path = getattr(ps.read_summaries("rows.psk"), f"{kind}_path")("y", folds=9)
    assert f"<h1>{kind.capitalize()} path of y</h1>" in page
    assert f"Least at a penalty of {path.best_alpha:.4g}" in page
    assert page.count('class="bar"') == len(path.alphas)
    assert page.count('class="thin"') == len(path.feature_names)
    assert all(f">{name}</text>" in page for name in path.feature_names)


def test_a_fit_has_a_report(folder: Path) -> None:
    assert run(["ask", "rows.psk", "-t", "y", "-f", "a,b", "--vcov", "CRV1", "--report", "fit.html"]) == 0
    assert "Least squares: y" in (folder / "fit.html").read_text()


def test_clusters_that_lie_at_two_sites(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Cities that both sites have are not silently taken for twice as many clusters."""
    for number, site in enumerate(("north", "south")):
        ROWS[number::2].to_parquet(f"{site}.parquet")
        asked = ["--columns", "a,b,c,y,z", "--partition-by", "g", "--site", site]
        asked += ["--allow", "few-exact-rows", "--allow", "few-rows", "--allow", "leverage"]
        assert run(["summarise", f"{site}.parquet", *asked, "-o", f"{site}.psk"]) == 0
    capsys.readouterr()
    asked = ["ask", "north.psk", "south.psk", "-t", "y", "-f", "a,b", "--vcov", "CRV1"]
    assert run([*asked, "--json"]) == 0
    assert "Partitions of the same name (9, such as '0')" in capsys.readouterr().err
    assert run([*asked, "--together", "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    whole = ps.read_summaries("rows.psk").fit("y", ["a", "b"], vcov="CRV1")
    found = json.loads(said.out)["model"]["inferences"][0]["standard_errors"]
    assert found == pytest.approx(whole.standard_errors.tolist(), rel=1e-10)


def test_inspect_knows_every_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ps.read_summaries("rows.psk").fit("y").save("model.json")
    ps.sketch(ROWS[["a", "y"]], "y", random_state=1).save("sketch.psk")
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
        (["ask", "rows.psk", "-t", "y", "-t", "a"], "ask has one target, and 2 are named"),
        (["ask", "none.psk", "-t", "y"], "Cannot read none.psk"),
        (["ask", "rows.psk", "-t", "y", "--ridge", "--lasso"], "not both"),
        (["ask", "rows.psk", "-t", "y", "--ridge"], "10 folds need"),
        (["ask", "rows.psk", "-t", "y", "--endogenous", "a"], "needs --target, --endogenous and --instruments"),
        (["ask", "rows.psk", "-t", "y", "--focus", "a"], "--focus goes with --compare"),
        (["ask", "rows.psk", "-t", "y", "--folds", "3"], "--folds goes with --ridge or --lasso"),
        (["ask", "rows.psk", "-t", "y", "--ridge", "--vcov", "CRV1"], "--vcov does not go with --ridge"),
        (["ask", "rows.psk", "-t", "y", "--ridge", "--l1-ratio", "0.5"], "--l1-ratio does not go with --ridge"),
        (["ask", "rows.psk", "--compare", "bad.toml", "-t", "y"], "--target does not go with --compare"),
        (["ask", "rows.psk", "--compare", "bad.toml", "--ridge"], "--compare does not go with --ridge"),
        (["ask", "rows.psk", "-t", "y", "--by-partition", "--model", "m.json"], "--model does not go with"),
        (["ask", "rows.psk", "-t", "y", "--by-partition", "--vcov", "CRV1"], "there is one only"),
        (["ask", "rows.psk", "-t", "y", "--model", "rows.psk"], "it is one of the inputs"),
        (["ask", "row*.psk", "-t", "y", "--model", "rows.psk"], "it is one of the inputs"),
        (["ask", "rows.psk", "-t", "y", "--model", "/dev/null"], "it is a device"),
        (["ask", "rows.psk", "-t", "y", "--report", "link.psk"], "it is one of the inputs"),
        (["ask", "rows.psk", "-t", "y", "--model", "x.json", "--report", "x.json"], "name the same file"),
        (["ask", "rows.psk", "--compare", "bad.toml", "--report", "bad.toml"], "it is one of the inputs"),
        (["summarise", "row*.parquet", "-o", "rows.parquet"], "it is one of the inputs"),
        (["summarise", ".", "-o", "rows.parquet"], "it is one of the inputs"),
        (["summarise", "rows.parquet", "-o", "/dev/null"], "it is a device"),
        (["summarise", "rows.parquet", "-o", "."], "it is a folder"),
        (["ask", "rows.psk", "-t", "y", "--seed", "1"], "--seed goes with --vcov wild"),
        (["ask", "rows.psk", "-t", "y", "--vcov", "CRV1", "--draws", "999"], "--draws goes with --vcov wild"),
        (["ask", "rows.psk", "--compare", "list.toml"], "has intercept ['none']: choose common, partition or none"),
        (["ask", "rows.psk", "--compare", "true.toml"], "has alpha True: give a number"),
        (["ask", "rows.psk", "--compare", "none.toml"], "Cannot read none.toml"),
        (["ask", "rows.psk", "--compare", "pipe"], "Cannot read pipe: it is not an ordinary file"),
        (["ask", "rows.psk", "--compare", "/dev/zero"], "Cannot read /dev/zero: it is not an ordinary file"),
        (["ask", "rows.psk", "--compare", "bad.toml"], "key 'featurs'"),
        (["ask", "rows.psk", "--compare", "bad.csv"], "no column 'a,b'"),
        (["ask", "rows.psk", "--compare", "bad.csv"], "joined by '+'"),
        (["ask", "rows.psk", "--compare", "long.csv"], "Regression 1 of long.csv has more values than the first line"),
        (["summarise", "rows.parquet", "-o", "none/x.psk"], "no folder none"),
        (["summarise", "rows.parquet", "-o", "rows.parquet"], "it is one of the inputs"),
        (["inspect", "rows.parquet"], "neither a model nor a sketch"),
        (["ask", "rows.psk", "y ~ a"], "'y ~ a' is no file: give a formula with --formula"),
        (["ask", "rows.psk", "y ~ a" + 300 * "b"], "is no file: give a formula with --formula"),
        (["inspect", "none"], "Cannot read none"),
        (["inspect", "pipe"], "Cannot read pipe: it is not an ordinary file"),
    ],
)
def test_bad_input_gets_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "bad.toml").write_text('[[model]]\ntarget = "y"\nfeaturs = ["a"]\n')
    (folder / "bad.csv").write_text('target,features\ny,"a,b"\n')
    (folder / "long.csv").write_text("target,features\ny,a,b\n")
    (folder / "list.toml").write_text('[[model]]\ntarget = "y"\nintercept = ["none"]\n')
    (folder / "true.toml").write_text('[[model]]\ntarget = "y"\nalpha = true\n')
    (folder / "link.psk").symlink_to("rows.psk")
    os.mkfifo(folder / "pipe")
    inputs = [folder / name for name in ("rows.parquet", "rows.psk", "bad.toml")]
    before = [path.read_bytes() for path in inputs]
    capsys.readouterr()
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert [path.read_bytes() for path in inputs] == before
