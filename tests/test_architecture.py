"""What ARCHITECTURE.md says is true of the code: every file exists, and has the names that a step tells of."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import partsketch

PACKAGE = Path(partsketch.__file__).parent
ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
WALKS = re.split(r"^\*\*", TEXT.split("## Three walks")[1].split("\n## ")[0], flags=re.MULTILINE)[1:]
STEPS = [step for walk in WALKS for step in re.split(r"^(?=\d+\. )", walk, flags=re.MULTILINE)[1:]]


def names_in(path: Path) -> set[str]:
    """Return what is defined in a file: functions, methods, classes, and attributes that are set."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return defined | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_there_are_three_walks_of_at_most_fifteen_steps() -> None:
    counts = [len(re.findall(r"^\d+\. ", walk, re.MULTILINE)) for walk in WALKS]
    assert len(counts) == 3
    assert all(3 <= count <= 15 for count in counts), counts


@pytest.mark.parametrize("step", STEPS, ids=[" ".join(step.split()[:4]) for step in STEPS])
def test_a_step_is_true(step: str) -> None:
    words = re.findall(r"`([^`]+)`", step)
    files = [word for word in words if word.endswith(".py")]
    assert files, "a step says where it happens"
    found = set().union(*(names_in(PACKAGE / file) for file in files))
    assert {word for word in words if word not in files} <= found


def test_the_files_of_the_rooms_are_there() -> None:
    """Every file that the table of rooms names is in the room of its line."""
    for line in TEXT.split("## Rooms")[1].split("\n## ")[0].splitlines():
        rooms = re.findall(r"`(\w+)/`", line.split("|")[1]) if line.startswith("| `") else []
        for file in re.findall(r"`([\w/]+\.py)`", line.split("|")[2]) if rooms else ():
            places = [*(path for room in rooms for path in (PACKAGE / room).rglob(file)), PACKAGE / file, ROOT / file]
            assert any(place.is_file() for place in places), file


def test_every_room_has_tests() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir()}
    assert rooms <= folders
