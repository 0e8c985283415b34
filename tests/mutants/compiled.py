"""Which files hold compiled code that a change elsewhere makes stale.

Kernels take in other kernels and constants of other files when they are compiled, and are kept on disk. What is kept is
thrown away when the file of the kernel changes, not when those files do.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

#: Decorators have other names, too: `_inlined = compiled_with(inline="always")`.
_COMPILES = re.compile(r"\b(?:compiled|compiled_with|njit|intrinsic)\b")


class Kernels:
    """The files with compiled code, and what they import."""

    def __init__(self, source: Path) -> None:
        self._imported: dict[Path, set[Path]] = {}
        self._needs: dict[Path, set[Path]] = {}
        for path in source.rglob("*.py"):
            if _COMPILES.search(path.read_text("utf-8")):
                self._needs[path] = self._all_imports(path, source)

    def made_stale_by(self, changed: Path) -> list[Path]:
        """Return the files with compiled code that a file is part of, itself included."""
        return sorted(path for path, needed in self._needs.items() if changed in needed)

    def digest(self) -> str:
        """Return a digest of all that is part of compiled code."""
        parts = sorted(set().union(*self._needs.values()))
        return hashlib.sha256(b"\0".join(path.read_bytes() for path in parts)).hexdigest()[:16]

    def _all_imports(self, path: Path, source: Path) -> set[Path]:
        """Return a file and everything of the program that it imports, directly or not."""
        found, waiting = {path}, [path]
        while waiting:
            one = waiting.pop()
            if one not in self._imported:
                self._imported[one] = set(_imports(one, source))
            waiting += self._imported[one] - found
            found |= self._imported[one]
        return found


def _imports(path: Path, source: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # A name that is imported may be a module itself.
            names = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            place = source.joinpath(*name.split("."))
            yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file())
