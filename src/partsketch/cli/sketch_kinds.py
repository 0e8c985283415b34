"""The option `--sketch`: any kind that the library has, also one that was added to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def sketch_option(description: str, exact: bool = False) -> Callable[[Any], Any]:
    """Return the option, with the exact summary among the kinds if asked.

    Kinds are listed when one is given, not when the command is made: loading them takes a while.
    """

    def kinds() -> list[str]:
        from partsketch.sketches.base import all_sketches

        return [sketch.kind for sketch in all_sketches() if exact or sketch.is_random]

    def known(context: click.Context, parameter: click.Parameter, value: str) -> str:
        if value not in kinds():
            raise click.BadParameter(f"{value!r} is not one of {', '.join(map(repr, kinds()))}.", context, parameter)
        return value

    def completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[Any]:
        return [kind for kind in kinds() if kind.startswith(incomplete)]

    return click.option(
        "--sketch",
        metavar="KIND",
        default="gaussian",
        show_default=True,
        callback=known,
        shell_complete=completed,
        help=description,
    )
