"""Every example in the documentation, in docstrings and in examples/ runs."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import partsketch
from tests.network_guard import CLOSED_DOOR

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```([\w{}]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: What is not code: the navigation, output, and formats shown as they are.
NOT_RUN = ("{toctree}", "text", "json")


def run(command: list[str], folder: Path, read: str = "") -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= CLOSED_DOOR
    # Plans measure the machine once; the user's own measurements are left alone.
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    done = subprocess.run(command, cwd=folder, env=environment, input=read, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


#: Runs the steps of a page in one process, as one reader would in one sitting: importing takes longer than they do.
SITTING = """
import json, shlex, subprocess, sys
from partsketch.cli import run
for kind, text in json.load(sys.stdin):
    if kind == "python":
        exec(compile(text, "<page>", "exec"), globals())
    elif (subprocess.call(text, shell=True) if kind == "shell" else run(shlex.split(text)[1:])) != 0:
        sys.exit(f"failed: {text}")
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    steps: list[tuple[str, str]] = []
    for language, text in FENCE.findall(page.read_text()):
        if language == "python":
            steps.append(("python", text))
        elif language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                if line.startswith("partsketch "):
                    steps.append(("shell" if set(line) & set("|<>$&;`") else "command", line))
                elif line.startswith("python examples/"):
                    # Every script in examples/ is run by a test of its own.
                    assert (ROOT / line.split()[1]).is_file()
                elif line and not line.startswith("#"):
                    # The make targets are what continuous integration runs.
                    assert line.startswith("make "), f"{page.name}: a shell example that no test runs: {line}"
        else:
            assert language in NOT_RUN, f"{page.name}: a block of {language!r} that no test runs"
    run([sys.executable, "-c", SITTING], tmp_path, json.dumps(steps))


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.name)
def test_example_script_runs(script: Path, tmp_path: Path) -> None:
    assert run([sys.executable, str(script)], tmp_path).strip()


def test_quickstart_shows_coefficients_loss_and_time(tmp_path: Path) -> None:
    output = run([sys.executable, str(ROOT / "examples" / "quickstart.py")], tmp_path)
    for word in ("(intercept)", "bmi", "partition sketch", "exact", "excess loss", "milliseconds"):
        assert word in output


MODULES = [
    module.name for module in pkgutil.walk_packages(partsketch.__path__, "partsketch.") if "__main__" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_the_page_on_new_sketches_is_carried_out(tmp_path: Path) -> None:
    """One file and one line, as the page has them, in a copy of the package; then its commands, and Python."""
    import shutil

    page = (ROOT / "docs" / "howto-new-sketch.md").read_text()
    blocks = FENCE.findall(page)
    program = next(text for language, text in blocks if language == "python")
    line, commands = (text for language, text in blocks if language == "text")
    # The caches of compiled code come along: compiling takes much longer than the rest.
    shutil.copytree(Path(partsketch.__file__).parent, tmp_path / "partsketch")
    sketches = tmp_path / "partsketch" / "sketches"
    (sketches / "signs.py").write_text(program)
    base = (sketches / "base.py").read_text()
    assert base.count("SKETCHES = (\n") == 1
    (sketches / "base.py").write_text(base.replace("SKETCHES = (\n", f"SKETCHES = (\n{line}"))
    rows = "import numpy as np, pyarrow as pa, pyarrow.parquet as pq\n"
    rows += "rng = np.random.default_rng(0)\nx = rng.normal(size=3000)\n"
    rows += "pq.write_table(pa.table({'x': x, 'y': 1 + 2 * x + rng.normal(size=3000)}), 'rows.parquet')\n"
    check = "import partsketch as ps, partsketch.sketches.signs\n"
    check += f"assert ps.__file__.startswith({str(tmp_path)!r})\n"
    check += "model = ps.fit('rows.parquet', 'y', method='stack', sketch='signs', sketch_size=400, random_state=0)\n"
    check += "assert model.record.options['sketch'] == 'signs'\n"
    # 8 sketches of 400 rows: the slope is known to a few parts in a hundred.
    check += "assert abs(model.coefficients[0, 0] - 2) < 0.2, model.coefficients\n"
    check += "assert model.certificate.kind == 'unavailable', model.certificate\n"
    steps = [("python", rows), *(("command", text) for text in commands.splitlines()), ("python", check)]
    assert [text for _, text in steps if "--sketch signs" in text]
    sitting = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SITTING}"
    output = run([sys.executable, "-W", "ignore", "-c", sitting], tmp_path, json.dumps(steps))
    assert "signs.psk" in output
