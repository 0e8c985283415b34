"""Every example in the documentation, in docstrings and in examples/ runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import partsketch
from tests.reading_room import ON_CLUSTERS, ReadingRoom, steps_of

ROOT = Path(__file__).parent.parent
#: Those on packages of one's own are carried out by test_extensions.py, those on clusters by engines/test_pages.py.
ELSEWHERE = {*(ROOT / "docs").glob("howto-new-*.md"), *(ROOT / "docs" / f"{name}.md" for name in ON_CLUSTERS)}
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").glob("*.md")} - ELSEWHERE)


@pytest.fixture(scope="module")
def reading_room() -> Iterator[ReadingRoom]:
    room = ReadingRoom()
    yield room
    room.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path, reading_room: ReadingRoom) -> None:
    reading_room.carry_out(steps_of(page), tmp_path)


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
