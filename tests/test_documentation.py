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
#: Those on packages of one's own are carried out by test_extensions.py.
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md")} - {*(ROOT / "docs").glob("howto-new-*.md")})
FENCE = re.compile(r"^```([\w{}]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: What is not code: the navigation, output, and formats shown as they are.
NOT_RUN = ("{toctree}", "text", "json")


def run(command: list[str], folder: Path, read: str = "") -> str:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment |= CLOSED_DOOR
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
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
