"""Every example in the documentation, in docstrings and in examples/ runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import partsketch
from tests.reading_room import ReadingRoom, Step

ROOT = Path(__file__).parent.parent
#: Those on packages of one's own are carried out by test_extensions.py.
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md")} - {*(ROOT / "docs").glob("howto-new-*.md")})
FENCE = re.compile(r"^```([\w{}]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: What is not code: the navigation, output, and formats shown as they are.
NOT_RUN = ("{toctree}", "text", "json")


@pytest.fixture(scope="module")
def reading_room() -> Iterator[ReadingRoom]:
    room = ReadingRoom()
    yield room
    room.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, reading_room: ReadingRoom) -> None:
    steps: list[Step] = []
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
    reading_room.carry_out(steps, tmp_path)


#: What scripts must print, where that is more than something.
PRINTED = {
    "quickstart.py": (
        "10 regressions from 57 small summaries",
        "Population + AveOccup",
        "robust error",
        "within squares",
        "is estimated to lose",
        "The truth, since the rows are at hand",
    )
}


#: Simulations that need not be long here.
ARGUMENTS = {"averaging_weights.py": "3", "meta_coverage.py": "20", "rounds.py": "1"}


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda script: script.name)
def test_example_script_runs(script: Path, tmp_path: Path, reading_room: ReadingRoom) -> None:
    line = f"{shlex.quote(str(script))} {ARGUMENTS.get(script.name, '')}"
    output = reading_room.carry_out([("script", line)], tmp_path)
    assert output.strip()
    assert all(word in output for word in PRINTED.get(script.name, ()))


MODULES = [
    module.name for module in pkgutil.walk_packages(partsketch.__path__, "partsketch.") if "__main__" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0
