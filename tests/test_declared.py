"""What is imported is declared in pyproject.toml, with a lowest version that `make lowest` can install."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

import partsketch

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = {"partsketch", "tests", "benchmarks"}

#: Extras that users choose; the others are for those who change partsketch.
FOR_USERS = ("dask", "formula", "notebook", "pandas", "private", "ray", "report", "spark")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0]) for requirement in requirements}


def imports(folder: str) -> dict[str, set[str]]:
    """Return every package that files of a folder import, and which files do."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                modules = [node.module]
            for module in modules:
                package = module.split(".")[0]
                if package not in sys.stdlib_module_names and package not in OURS:
                    found.setdefault(package, set()).add(str(path.relative_to(ROOT)))
    return found


def declared(folder: str) -> set[str]:
    optional = PROJECT["optional-dependencies"]
    found = names(PROJECT["dependencies"])
    if folder in ("src", "examples"):
        return found.union(*(names(optional[extra]) for extra in FOR_USERS))
    if folder in ("tests", "benchmarks"):
        found |= names(optional["dev"])
    if folder == "benchmarks":
        lines = (ROOT / "benchmarks" / "requirements.txt").read_text(encoding="utf-8").splitlines()
        found |= names([line for line in lines if not line.startswith("#")])
    return found


#: Packages that bear another name than what is imported; those that are installed are asked for theirs.
DISTRIBUTIONS = {"sklearn": "scikit-learn", "sklearnex": "scikit-learn-intelex", "daal4py": "scikit-learn-intelex"}


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "examples"])
def test_every_import_is_declared(folder: str) -> None:
    known = packages_distributions()
    missing = {}
    for package, files in imports(folder).items():
        candidates = {normal(DISTRIBUTIONS.get(package, package)), *map(normal, known.get(package, []))}
        if not candidates & declared(folder):
            missing[package] = sorted(files)
    assert missing == {}


def test_the_extra_for_developers_has_all_that_users_may_choose() -> None:
    optional = PROJECT["optional-dependencies"]
    for extra in (*FOR_USERS, "docs"):
        assert set(optional[extra]) <= set(optional["dev"]), extra


def test_every_requirement_names_its_lowest_version() -> None:
    for part in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()):
        for requirement in part:
            assert re.search(r">=\d", requirement), requirement


def test_one_version_everywhere() -> None:
    """In the package, the newest section of the changelog, and the citation."""
    headings = re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    cited = re.findall(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert [headings[0]] == cited == [partsketch.__version__]
