"""Mutants as they are written down: what is checked before any of them runs."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class MutantError(Exception):
    """A mutant that cannot be tried, and why."""


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes
    ----------
    id
        Its name.
    file
        The file it is in, from the root of the repository.
    before, after
        Text that occurs in the file exactly once, and what takes its place.
    tests
        Files or single tests of which at least one must fail.
    breaks
        What would be wrong.
    equivalent
        Why no test can see it; empty when a test must.
    hangs
        Why its tests do not end; a test that takes too long for no stated reason sees nothing.
    """

    id: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    breaks: str
    equivalent: str = ""
    hangs: str = ""

    def applied(self, source: str) -> str:
        """Return the text of the file with the fault in it."""
        count = source.count(self.before)
        if count != 1:
            raise MutantError(f"{self.id}: its text occurs {count} times in {self.file}, not once: write it anew.")
        mutated = source.replace(self.before, self.after)
        if mutated == source:
            raise MutantError(f"{self.id}: it changes nothing.")
        try:
            compile(mutated, self.file, "exec")
        except SyntaxError as error:
            raise MutantError(f"{self.id}: {self.file} would not be Python any more ({error}).") from error
        return mutated


def read_mutants(folder: Path | None = None) -> list[Mutant]:
    """Return all mutants, by file and in their order."""
    found: list[Mutant] = []
    for path in sorted((folder or Path(__file__).parent).glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]:
            found.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}))
    return found


def faults_of(mutants: list[Mutant], killers: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """Return what is wrong with the mutants and with what is kept of their killers, a sentence each."""
    faults = []
    seen: set[str] = set()
    for mutant in mutants:
        if mutant.id in seen:
            faults.append(f"{mutant.id}: there are two of this name.")
        seen.add(mutant.id)
        if not mutant.tests:
            faults.append(f"{mutant.id}: it names no test.")
        faults += [f"{mutant.id}: there is no {test}." for test in mutant.tests if not _is_there(test, root)]
        try:
            mutant.applied((root / mutant.file).read_text("utf-8"))
        except FileNotFoundError:
            faults.append(f"{mutant.id}: there is no {mutant.file}.")
        except MutantError as error:
            faults.append(str(error))
    for name, test in killers.items():
        if name not in seen or not _is_there(test, root):
            gone = f"test {test}" if name in seen else "such mutant"
            faults.append(f"killers.json, {name}: there is no {gone} any more: take the line out.")
    return faults


def _is_there(test: str, root: Path) -> bool:
    """Tell whether a file has the test that is named, whatever its parameters."""
    file, *names = test.partition("[")[0].split("::")
    return (root / file).is_file() and set(names) <= _definitions(root / file)


@cache
def _definitions(path: Path) -> frozenset[str]:
    """Return the names of the functions and classes of a file."""
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef))
