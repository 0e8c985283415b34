"""What keeps the code readable, counted: parameters, lines of functions and files, and what lies in the root."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import partsketch
from tests.conftest import SLOW
from tests.durations import read_durations

PACKAGE = Path(partsketch.__file__).parent
MOST_PARAMETERS, MOST_FUNCTION_LINES, MOST_FILE_LINES = 12, 60, 300

#: The keywords of a fit, spelled out for editors and type checkers; `tests/test_fronts.py` compares them. The estimator
#: has them too: its constructor is made from the declaration, for scikit-learn wants every parameter by name.
MANY_PARAMETERS = {"api.py: fit"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield f"{path.relative_to(PACKAGE).as_posix()}: {node.name}", node


def parameters(function: Function) -> int:
    taken = function.args
    many = [taken.vararg, taken.kwarg]
    return sum(len(part) for part in (taken.posonlyargs, taken.args, taken.kwonlyargs)) + 2 - many.count(None)


def lines(function: Function) -> int:
    """Return the lines of a function from `def` on, without its docstring."""
    first = function.body[0]
    text = ast.get_docstring(function) is not None and first.end_lineno is not None
    assert function.end_lineno is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if text else 0
    return function.end_lineno - function.lineno + 1 - docstring


def test_no_function_takes_many_parameters() -> None:
    found = {name for name, function in functions() if parameters(function) > MOST_PARAMETERS}
    assert found == MANY_PARAMETERS


def test_no_function_is_long() -> None:
    assert {name: lines(function) for name, function in functions() if lines(function) > MOST_FUNCTION_LINES} == {}


def test_no_file_is_long() -> None:
    counted = {path.relative_to(PACKAGE).as_posix(): path.read_bytes().count(b"\n") for path in PACKAGE.rglob("*.py")}
    assert {name: count for name, count in counted.items() if count > MOST_FILE_LINES} == {}


def test_the_root_is_small() -> None:
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert sum(path.is_file() for path in entries) <= 8
    # The commands are a front, as the functions and the estimator are: a folder, but no room of the walk.
    assert sum(path.is_dir() for path in entries if path.name != "cli") <= 13


@pytest.mark.parametrize(
    ("text", "count", "long"),
    [
        ("def f(a, b, /, c, *d, e, **g): pass", 6, 1),
        ('def f():\n    """One.\n\n    Two.\n    """\n    return 1', 0, 2),
        ("async def f(self):\n    x = 1\n    return x", 1, 3),
    ],
)
def test_the_counting_is_right(text: str, count: int, long: int) -> None:
    (function,) = ast.parse(text).body
    assert isinstance(function, Function)
    assert (parameters(function), lines(function)) == (count, long)


#: Tests that look inside: how many bundles of a run on Ray are under way is seen nowhere else.
LOOKING_INSIDE = {"engines/test_ray.py"}


def private_names(path: Path) -> set[str]:
    """Return the private names of the package that a test takes or patches."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("partsketch"):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in OUTSIDE):
            found.add(node.attr)
        elif isinstance(node, ast.Constant) and str(node.value).startswith("partsketch."):
            found |= set(str(node.value).split("."))
    return {name for name in found if name.startswith("_") and not name.startswith("__")} - NOTEBOOKS


#: What notebooks call by this name, as Python calls those with two underscores.
NOTEBOOKS = {"_repr_html_"}

#: Private names of the tests' own classes, and of the operating system.
OUTSIDE = ("self", "os")


def test_tests_go_through_public_names() -> None:
    tests = Path(__file__).parent
    found = {path.relative_to(tests).as_posix() for path in tests.rglob("*.py") if private_names(path)}
    assert found == LOOKING_INSIDE


def test_the_tests_that_are_called_slow_are_there() -> None:
    """A test that was renamed would be quick again without anybody noticing."""
    tests = Path(__file__).parent
    for line in read_durations():
        file, _, name = line.partition("::")
        assert f"def {name}(" in (tests / file).read_text(encoding="utf-8"), line


def test_quick_tests_look_at_every_room() -> None:
    """`make test-quick` is worth little if a room can be broken without it."""
    tests, slow = Path(__file__).parent, read_durations()
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    quick = {
        path.relative_to(tests).parts[0]
        for path in tests.rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
        if (file := path.relative_to(tests).as_posix()) not in SLOW and f"{file}::{name}" not in slow
    }
    assert rooms <= quick
