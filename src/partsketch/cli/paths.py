"""Paths on the command line."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import click

from partsketch.common.files import shown


class NamedPath(click.Path):
    """A path that a file can have here.

    It is not empty: that would mean the folder that the command was called in, and is what a shell makes of a variable
    that was never set. Nor is it longer than the system allows.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or refuse it."""
        if not value:
            self.fail("a path cannot be empty: name it, or '.' for this folder.", param, ctx)
        path = super().convert(value, param, ctx)
        try:
            os.lstat(path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                name = shown(os.fsdecode(path))
                self.fail(f"the name {name} is too long for a file here: give a shorter one.", param, ctx)
        except ValueError:
            # Null characters: whoever opens it says so.
            pass
        return path
