"""The terminal: one way to make a console, so that all tables keep the same promises.

Nothing that comes from data is taken for markup or obeyed as a control character; NO_COLOR means no escape sequences; a
pipe is as wide as COLUMNS says.
"""

from __future__ import annotations

import os
import sys
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from partsketch.common.text import plain

#: Width of tables in a pipe, unless COLUMNS says otherwise.
_PIPE_WIDTH = 140
#: Narrower tables are no tables any more; wider ones only pad.
_NARROWEST, _WIDEST = 40, 10_000


class PlainConsole(Console):
    """A console that shows text from data as it is: no markup, no emoji, no control characters."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Make a text of a string; line ends stay."""
        return super().render_str(plain(text, keep="\n"), **options)


def no_escapes() -> bool:
    """Tell whether the environment asks for text without escape sequences (see no-color.org)."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def terminal_console(stderr: bool = False) -> Console:
    """Return the console of the standard output, or of the standard error."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream is not None and stream.isatty()
    escapes = is_terminal and not no_escapes()
    return PlainConsole(
        stderr=stderr,
        width=_width() if is_terminal else _width() or _PIPE_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        color_system="auto" if escapes else None,
        force_terminal=None if escapes else False,
        _environ=_environment(),
    )


def text_console(file: IO[str], width: int) -> Console:
    """Return a console that writes plain text of this width to a file or a string."""
    return PlainConsole(
        file=file,
        width=width,
        highlight=False,
        markup=False,
        emoji=False,
        color_system=None,
        force_terminal=False,
        # In a notebook rich would show the text there, and write nothing to the file.
        force_jupyter=False,
        legacy_windows=False,
        _environ=_environment(),
    )


def _environment() -> dict[str, str]:
    """Return the environment without sizes, which rich takes as they are."""
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}


def _width() -> int | None:
    """Return what COLUMNS says, within reason; None when it says nothing that can be used."""
    given = os.environ.get("COLUMNS", "")
    if not (given.isascii() and given.isdigit()) or int(given[:9]) == 0:
        return None
    return min(max(int(given[:9]), _NARROWEST), _WIDEST)
