"""Prints the lowest versions that pyproject.toml allows, as constraints for pip: of partsketch and the extras named.

Packages that only other packages ask for are left to pip: what is declared is what is tried.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<lowest>[0-9][0-9.]*)(,<[0-9.]+)?")


def lowest_versions(project: dict[str, object], extras: list[str]) -> dict[str, str]:
    """Return the lowest version of every declared package; a requirement that names none is refused."""
    optional = project["optional-dependencies"]
    declared = [project["dependencies"], *(optional[extra] for extra in extras)]  # type: ignore[index]
    found = {}
    for requirement in (one for part in declared for one in part):  # type: ignore[attr-defined]
        match = REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} in pyproject.toml names no lowest version: write package>=version.")
        found[match["name"]] = match["lowest"]
    return found


if __name__ == "__main__":
    pyproject = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    for name, version in lowest_versions(pyproject["project"], sys.argv[1:]).items():
        print(f"{name}=={version}")
