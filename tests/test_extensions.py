"""Packages that add a sketch, an engine or a source: the pages that tell how are carried out to the letter."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.common import registry
from partsketch.common.errors import InputError
from partsketch.engines.base import ENGINES, Engine, engine_class
from partsketch.sketches.base import SKETCHES, Sketch, get_sketch
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.count_sketch import CountSketch
from partsketch.sources.opener import OPENERS, Opener
from tests.network_guard import CLOSED_DOOR
from tests.planner.settings import MACHINE

DOCS = Path(__file__).parent.parent / "docs"
STEP = re.compile(r"(?:as `([\w.]+)`:\n\n)?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: One sitting in a process of its own, which knows of the packages only what is installed.
SITTING = """
import json, shlex, sys
from partsketch.cli import run
for kind, text in json.load(sys.stdin):
    if kind == "python":
        exec(compile(text, "<page>", "exec"), globals())
    else:
        assert text.startswith("partsketch "), f"no test runs this: {text}"
        assert run(shlex.split(text)[1:]) == 0, text
"""


def install(folder: Path, site: Path) -> None:
    """Do what `pip install .` does, without a network: copy the modules, and write what is known of the package."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    for module in project["tool"]["setuptools"]["py-modules"]:
        (site / f"{module}.py").write_text((folder / f"{module}.py").read_text())
    name, version = (project["project"][key] for key in ("name", "version"))
    about = site / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
        for group, entries in project["project"]["entry-points"].items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))


def carry_out(page: str, folder: Path, site: Path, then: str = "") -> str:
    """Carry out a page in a folder, and some Python after it; packages go to `site`, which is on the path."""
    steps, installed = [], False
    for name, language, text in STEP.findall((DOCS / page).read_text()):
        if name:
            (folder / name).write_text(text)
        elif language == "sh":
            lines = text.splitlines()
            if "pip install ." in lines:
                assert lines == ["pip install ."]
                installed = True
            else:
                steps += [("command", line) for line in lines]
        else:
            assert language == "python", language
            steps.append(("python", text))
    assert installed
    steps += [("python", then)]
    install(folder, site)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **CLOSED_DOOR, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SITTING],
        cwd=folder,
        env=environment,
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return a folder with some rows, and an empty one that takes the place of the folder of installed packages."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    pq.write_table(pa.table({"x": x, "y": 1 + 2 * x + rng.normal(size=3000)}), tmp_path / "rows.parquet")
    site = tmp_path / "site"
    site.mkdir()
    return tmp_path, site


def test_the_page_on_new_sketches_is_carried_out(folders: tuple[Path, Path]) -> None:
    output = carry_out("howto-new-sketch.md", *folders, ABOUT_SIGNS)
    assert "signs.psk" in output
    # The plan has the kind among its candidates, and the certificate of the estimator gives what the class declares.
    assert re.search(r"partition +signs", output), output
    assert "is estimated to lose about" in output
    assert output.splitlines()[-2:] == ["approximate True", "'gaussian', 'ortho, True"]


#: Says more than the page: the reason of the certificate, and that refusals name the added kind, too.
ABOUT_SIGNS = """
import partsketch as ps
model = ps.fit("rows.parquet", "y", method="partition", n_partitions=4, sketch="signs", random_state=0)
print(model.certificate.kind, "that is not proved" in model.certificate.reason)
try:
    ps.fit("rows.parquet", "y", method="partition", sketch="cubist")
except ps.InputError as error:
    print(str(error)[len("sketch is 'cubist': choose one of "):][:18], "'signs'" in str(error), sep=", ")
"""


def test_the_page_on_new_engines_is_carried_out(folders: tuple[Path, Path]) -> None:
    assert "processes" in carry_out("howto-new-engine.md", *folders).splitlines()[-1]


def test_the_page_on_new_sources_is_carried_out(folders: tuple[Path, Path]) -> None:
    output = carry_out("howto-new-source.md", *folders)
    assert output.splitlines()[-1] == "2 jsonl files"
    assert "600 predictions written" in output


def test_an_added_sketch_runs_in_other_processes(folders: tuple[Path, Path]) -> None:
    """Workers look the kind up for themselves; the bits are those of this process."""
    folder, site = folders
    for page in ("howto-new-sketch.md", "howto-new-engine.md"):
        for name, _, text in STEP.findall((DOCS / page).read_text()):
            if name:
                (folder / name).write_text(text)
        install(folder, site)
    program = (
        "import numpy as np, partsketch as ps\n"
        "options = dict(method='partition', n_partitions=4, sketch='signs', random_state=1)\n"
        "here, there = (ps.fit('rows.parquet', 'y', engine=name, **options) for name in ('local', 'processes'))\n"
        "assert np.array_equal(here.coefficients, there.coefficients)\n"
    )
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True, timeout=120)


class Words(Sketch):
    """Named otherwise than its entry point."""

    kind = "letters"


class Unstudied(CountSketch):
    """A kind of which its author knows no theory, and did not count the work."""

    kind = "unstudied"
    law = None  # type: ignore[assignment]
    cost = SketchCost()


def registered(monkeypatch: pytest.MonkeyPatch, what: Any, *entries: tuple[str, str]) -> None:
    """Have these entry points and no others."""
    found = [EntryPoint(name, value, what.group) for name, value in entries]
    monkeypatch.setattr(registry, "entry_points", lambda group: found if group == what.group else [])
    monkeypatch.setattr(what, "_found", {})
    what.__dict__.pop("_added", None)
    get_sketch.cache_clear()


@pytest.fixture(autouse=True)
def _forget_made_up_packages() -> Any:
    yield
    for what in (SKETCHES, ENGINES, OPENERS):
        what.__dict__.pop("_added", None)
    get_sketch.cache_clear()


@pytest.mark.parametrize("method", ["partition", "stack", "whole"])
def test_without_a_law_nothing_is_claimed(
    method: str, monkeypatch: pytest.MonkeyPatch, folders: tuple[Path, Path]
) -> None:
    registered(monkeypatch, SKETCHES, ("unstudied", "tests.test_extensions:Unstudied"))
    rows = str(folders[0] / "rows.parquet")
    with pytest.warns(ps.PartsketchWarning, match="is unknown: nothing is known"):
        model = ps.fit(rows, "y", method=method, n_partitions=3, sketch="unstudied", sketch_size=300, random_state=0)
    # Three sketches of 300 rows each: a slope of 2 with unit noise is known to a few parts in a hundred.
    assert abs(model.coefficients[0, 0] - 2) < 0.2
    assert model.certificate.kind == "unavailable"
    assert "nothing is known of the error that 'unstudied' sketches make" in model.certificate.reason
    with pytest.raises(InputError, match="nothing is known"):
        model.conf_int()


def test_a_model_of_an_added_kind_is_at_home_where_the_package_is_not(
    monkeypatch: pytest.MonkeyPatch, folders: tuple[Path, Path]
) -> None:
    """It predicts, and its page is made: what the page reckons with other kinds it leaves out for this one."""
    registered(monkeypatch, SKETCHES, ("unstudied", "tests.test_extensions:Unstudied"))
    rows = str(folders[0] / "rows.parquet")
    with pytest.warns(ps.PartsketchWarning, match="is unknown: nothing is known"):
        model = ps.fit(rows, "y", method="stack", n_partitions=3, sketch="unstudied", random_state=0)
    model.save(folders[0] / "model.json")
    registered(monkeypatch, SKETCHES)
    there = ps.load(folders[0] / "model.json")
    assert np.array_equal(there.predict(rows), model.predict(rows))
    there.report(folders[0] / "report.html")
    assert "unstudied" in (folders[0] / "report.html").read_text()


def test_the_planner_says_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, SKETCHES, ("unstudied", "tests.test_extensions:Unstudied"))
    plan = ps.plan(rows=100_000, columns=10, n_partitions=2, calibration=MACHINE)
    found = [candidate for candidate in plan.candidates if candidate.sketch == "unstudied"]
    assert found
    for candidate in found:
        assert (candidate.excess, candidate.excess_kind, candidate.seconds, candidate.flops) == (
            None,
            "unknown",
            None,
            None,
        )
        assert "nothing is known" in candidate.excess_reason


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("no_such_module:Words", "The sketch 'words' .* cannot be loaded .ModuleNotFoundError"),
        ("tests.test_extensions:DOCS", "is not a subclass of partsketch.sketches.base.Sketch"),
        ("tests.test_extensions:Words", "has another kind than its entry point"),
    ],
)
def test_a_faulty_package_is_named(value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, SKETCHES, ("words", value))
    with pytest.raises(InputError, match=message):
        get_sketch("words")


def test_two_packages_with_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, ENGINES, ("cloud", "a:A"), ("cloud", "b:B"))
    with pytest.raises(InputError, match="The packages a:A and b:B both register the engine 'cloud'"):
        engine_class("cloud")
    registered(monkeypatch, SKETCHES, ("srht", "a:A"))
    with pytest.raises(InputError, match="partsketch and a:A both register the sketch 'srht'"):
        get_sketch("cubist")


def test_unknown_names_are_refused_with_all_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, ENGINES, ("cloud", "a:A"))
    with pytest.raises(InputError, match="choose 'local', 'dask', 'ray', 'spark', 'cloud'"):
        engine_class("clouds")
    with pytest.raises(InputError, match="engine is 'local://2'"):
        engine_class("local://2")


def test_entry_points_are_not_looked_up_for_names_of_our_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Looking them up takes longer than starting the program."""

    def refuse(group: str) -> Any:
        raise AssertionError(f"looked up {group}")

    for what in (SKETCHES, ENGINES, OPENERS):
        registered(monkeypatch, what)
    monkeypatch.setattr(registry, "entry_points", refuse)
    x = np.arange(40.0)
    pq.write_table(pa.table({"x": x, "y": np.sin(x)}), tmp_path / "rows.parquet")
    ps.fit(str(tmp_path), "y", method="whole", n_partitions=1, sketch="srht", sketch_size=10, random_state=0)
    assert issubclass(engine_class("dask://host:1"), Engine)
    assert not OPENERS.__dict__.get("_added")
    assert Opener().recognises([]) is False
