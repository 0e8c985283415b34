"""`partsketch reproduce --quick`: everything is written, nothing is fetched, an interrupted study goes on."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from partsketch import InputError
from partsketch.cli.reproduce import command
from partsketch.paper import study as study_module
from partsketch.paper.figures import FIGURES
from partsketch.paper.settings import DEFAULT_SEED, Places, quick_study
from partsketch.paper.steps import STEPS, Unit, all_units
from partsketch.paper.study import run_study
from tests.paper.conftest import QuickRun

# One process makes what they all look at.
pytestmark = pytest.mark.xdist_group("study")

EXPECTED_TABLE = {"digits": ("1797", "61"), "house": ("20640", "8"), "cover": ("100000", "53")}


def test_the_quick_study_is_quick(quick_run: QuickRun) -> None:
    """Half a minute on two free cores. Others may run beside it, so it is the time of processors that is limited."""
    assert quick_run.seconds < 120


def test_table_of_instances_and_features(quick_run: QuickRun) -> None:
    with (quick_run.folder / "tables" / "table-1-data-sets.csv").open() as file:
        found = {row["data_set"]: (row["instances"], row["features"]) for row in csv.DictReader(file)}
    assert found == EXPECTED_TABLE
    assert quick_run.answer["problems"] == []


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_there_and_not_blank(quick_run: QuickRun, name: str) -> None:
    from matplotlib.image import imread

    picture = imread(quick_run.folder / "figures" / f"{name}.png")
    assert picture.shape[1] > 1000
    inked = np.mean(np.min(picture[:, :, :3], axis=2) < 0.9)
    assert 0.01 < inked < 0.9
    drawing = (quick_run.folder / "figures" / f"{name}.svg").read_text()
    assert drawing.count("<path") > 20


def test_the_page_needs_nothing_else(quick_run: QuickRun) -> None:
    page = (quick_run.folder / "index.html").read_text()
    for attribute in re.findall(r'(?:src|srcset|href)="([^"]*)"', page):
        assert attribute.startswith(("data:", "#"))
    assert "<script" not in page
    assert "@import" not in page
    assert page.count("<figure>") == len(FIGURES)
    assert all(f'id="{name}"' in page for name in STEPS)
    assert len(re.findall(r'<img alt="[^"]{20,}"', page)) == len(FIGURES)


def test_raw_results_carry_seeds_versions_and_machine(quick_run: QuickRun) -> None:
    files = sorted((quick_run.folder / "raw").glob("*.json"))
    assert len(files) >= 13
    for file in files:
        unit = json.loads(file.read_text())
        assert unit["machine"]["processor"]
        assert unit["machine"]["versions"]["numpy"] == np.__version__
        assert unit["settings"]
        for table, rows in unit["tables"].items():
            with (quick_run.folder / "raw" / f"{unit['unit']}.{table}.csv").open() as text:
                assert sum(1 for _ in csv.reader(text)) == len(rows) + 1
    seeds = [json.loads(file.read_text())["settings"].get("seed") for file in files if "figure-1" in file.name]
    assert None not in seeds
    assert len(set(seeds)) == len(seeds)
    assert not list(quick_run.folder.rglob("*.part"))


def test_every_table_is_csv_and_json(quick_run: QuickRun) -> None:
    names = {file.stem for file in (quick_run.folder / "tables").glob("*.csv")}
    assert names == {file.stem for file in (quick_run.folder / "tables").glob("*.json")}
    assert {"claims", "table-1-data-sets", "figure-1-draws", "figure-2-slopes", "figure-7-sizes"} <= names
    stored = json.loads((quick_run.folder / "tables" / "claims.json").read_text())
    assert stored["seed"] == DEFAULT_SEED
    assert stored["rows"] == quick_run.answer["claims"]


def test_progress_names_every_unit(quick_run: QuickRun) -> None:
    units = all_units(quick_study(), None)
    assert f"[{len(units)}/{len(units)}]" in quick_run.progress
    assert "figure-8: drawn" in quick_run.progress


#: What the mathematics decides, whatever the machine: clocks are left out.
CERTAIN = {
    "divergence-bound": "holds",
    "divergence-equality": "holds",
    "burg": "holds",
    "one-partition": "holds",
    "theorem-3.1": "holds",
    "theorem-3.3": "holds",
    "given-data": "holds",
    "expected-divergence": "holds",
    "iid-outperforms": "holds only when D = d",
    "inverted-u": "does not hold",
    "bound-probability": "holds",
    "bound-proxy": "holds only when",
    "theta-outperforms": "holds only when Digits",
    "theta-outperforms-larger": "does not hold",
    "stack-outperforms": "holds",
    "singular": "holds",
}


def test_verdicts_that_do_not_depend_on_the_clock(quick_run: QuickRun) -> None:
    found = {claim["name"]: claim["verdict"] for claim in quick_run.answer["claims"]}
    assert {name: found[name][: len(verdict)] for name, verdict in CERTAIN.items()} == CERTAIN
    assert len(found) >= 20
    for claim in quick_run.answer["claims"]:
        assert claim["rule"]
        assert claim["why"]
        assert re.search(r"\d", claim["measured"])
        assert claim["verdict"] != "not measured"


def _copy(run: QuickRun, folder: Path) -> Places:
    shutil.copytree(run.folder / "raw", folder / "raw")
    return Places(folder, None)


def test_a_stored_study_is_not_run_again(quick_run: QuickRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(unit: Unit) -> None:
        raise AssertionError(f"{unit.full_name} was run again")

    monkeypatch.setattr(study_module, "run_unit", refuse)
    lines: list[str] = []
    result = run_study(quick_study(), _copy(quick_run, tmp_path), ("figure-4", "figure-7"), lines.append)
    assert all("stored already" in line for line in lines)
    assert len(result.rows("figure-4", "cells")) > 0


def test_what_is_missing_or_damaged_is_run_again_with_the_same_numbers(quick_run: QuickRun, tmp_path: Path) -> None:
    places = _copy(quick_run, tmp_path)
    damaged, missing = tmp_path / "raw" / "figure-7.bound.json", tmp_path / "raw" / "figure-4.iid.json"
    before = json.loads(damaged.read_text())["tables"], json.loads(missing.read_text())["tables"]
    damaged.write_text(damaged.read_text()[:-50])
    missing.unlink()
    lines: list[str] = []
    run_study(quick_study(), places, ("figure-4", "figure-7"), lines.append)
    assert sum("stored already" in line for line in lines) == 1
    assert (json.loads(damaged.read_text())["tables"], json.loads(missing.read_text())["tables"]) == before


def test_another_seed_is_another_study(quick_run: QuickRun, tmp_path: Path) -> None:
    places = _copy(quick_run, tmp_path)
    lines: list[str] = []
    run_study(quick_study(5), places, ("figure-7",), lines.append)
    assert not any("stored already" in line for line in lines)


def test_an_interruption_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = study_module.run_unit

    def interrupted(unit: Unit) -> object:
        if unit.name == "heterogeneous":
            raise KeyboardInterrupt
        return run(unit)

    monkeypatch.setattr(study_module, "run_unit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(quick_study(), Places(tmp_path, None), ("figure-4",))
    monkeypatch.undo()
    lines: list[str] = []
    run_study(quick_study(), Places(tmp_path, None), ("figure-4",), lines.append)
    assert [("stored" in line) for line in lines] == [True, False]


def test_only_one_figure(tmp_path: Path) -> None:
    # A link that leads to no folder yet is followed.
    (tmp_path / "link").symlink_to("out")
    arguments = ["--output", str(tmp_path / "link"), "--quick", "--only", "figure-7"]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert sorted(file.name for file in (tmp_path / "out" / "figures").iterdir()) == ["figure-7.png", "figure-7.svg"]
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<figure>") == 1
    assert "theorem-3.3" not in done.output
    assert "claims were not measured: they need other parts of the study." in done.output
    assert "bound-probability: holds" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "figure-99"], "There is no 'figure-99' in the study: choose one of table-1, figure-1"),
        (["--seed", "-1"], "seed is -1"),
        (["--data-home", "/no/such/folder"], "There is no folder"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        CliRunner().invoke(command, ["--output", str(tmp_path), *arguments], catch_exceptions=False)


def test_output_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a file; name a folder"):
        CliRunner().invoke(command, ["--output", str(tmp_path / "file")], catch_exceptions=False)


def test_a_page_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(InputError, match=r"its index\.html is of no study"):
        CliRunner().invoke(command, ["--output", str(tmp_path), "--only", "table-1"], catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert (tmp_path / "index.html").read_text() == "mine"


def test_without_matplotlib_one_sentence_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=re.escape('pip install "partsketch[report]"')):
        CliRunner().invoke(command, ["--output", str(tmp_path)], catch_exceptions=False)
