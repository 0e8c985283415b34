"""Paths on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class NamedPath(click.Path):
    """A path that is not empty: an empty one would mean the folder that the command was called in.

    It is what a shell makes of a variable that was never set.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or refuse it."""
        if not value:
            self.fail("a path cannot be empty: name it, or '.' for this folder.", param, ctx)
        return super().convert(value, param, ctx)
