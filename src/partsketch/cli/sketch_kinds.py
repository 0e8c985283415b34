"""The type of `--sketch`: any kind that the library has, also one that was added to it."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem


class SketchKind(click.ParamType):
    """The name of a kind of sketch; kinds are listed when one is given, for loading them takes a while.

    Parameters
    ----------
    exact
        Whether the exact summary is among them.
    """

    name = "kind"

    def __init__(self, exact: bool = False) -> None:
        self._exact = exact

    def kinds(self) -> list[str]:
        """Return the names."""
        from partsketch.sketches.base import all_sketches

        return [sketch.kind for sketch in all_sketches() if self._exact or sketch.is_random]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a known name, or refuse."""
        kinds = self.kinds()
        if value not in kinds:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, kinds))}.", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the names that begin so."""
        return [CompletionItem(kind) for kind in self.kinds() if kind.startswith(incomplete)]
