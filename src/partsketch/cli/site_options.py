"""Options of commands that write files which leave a site: levels that sites agree on, and what a file may show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from partsketch.cli.paths import NamedPath
from partsketch.common.errors import InputError

#: Rows that a level needs: `sites/disclosure/concerns.py` has the same number, which a test compares.
LEAST_LEVEL_ROWS = 5
#: Bytes of a file of levels.
_LARGEST_LEVELS = 1 << 28

_DISCLOSURE = (
    click.option(
        "--allow",
        multiple=True,
        help="Write the file although it shows single rows: few-rows, few-exact-rows, rare-levels, leverage, "
        "large-sketch, plain-rows.",
    ),
    click.option(
        "--least-level-rows", type=int, default=LEAST_LEVEL_ROWS, show_default=True, help="Rows that a level needs."
    ),
)


def disclosure_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a file may show of single rows."""
    for option in reversed(_DISCLOSURE):
        command = option(command)
    return command


def levels_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add a file of levels; the command takes its path as `levels_path`."""
    return click.option(
        "--levels",
        "levels_path",
        type=NamedPath(),
        help='JSON file of levels (and knots of a formula) that all sites agree on: {"colour": ["blue", "red"]}.',
    )(command)


def read_levels(path: Path) -> Any:
    """Return the levels of a file."""
    from partsketch.common.reading import read_at_most

    try:
        return json.loads(read_at_most(path, _LARGEST_LEVELS, "levels"))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: write levels such as {{'colour': ['blue', 'red']}}.") from error
