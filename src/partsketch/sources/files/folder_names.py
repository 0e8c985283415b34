"""Names and values that stand in the names of folders, as in year=2024."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

Pairs = tuple[tuple[str, str], ...]


def folders_of(entry: str, paths: Sequence[str]) -> tuple[Pairs, ...]:
    """Return names and values of the folders of each path that an entry led to.

    Folders count from where the entry begins: the folder that one works in is nobody's column.
    """
    begins_here = "://" not in entry and not Path(entry).expanduser().is_absolute()
    return tuple(_pairs(os.path.relpath(path) if begins_here else path) for path in paths)


def named_folders(entries: Sequence[str], globs: Sequence[int]) -> frozenset[str]:
    """Return the names that all entries spell out before their globs, which begin at these places (-1: none)."""
    fixed = [entry if glob < 0 else entry[:glob].rpartition("/")[0] for entry, glob in zip(entries, globs, strict=True)]
    return frozenset.intersection(*(frozenset(dict(_pairs(f"{text}/"))) for text in fixed))


def _pairs(path: str) -> Pairs:
    parts = (folder.partition("=") for folder in path.split("/")[:-1])
    return tuple((unquote(name), value) for name, mark, value in parts if mark and name)
