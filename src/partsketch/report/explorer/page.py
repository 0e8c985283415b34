"""The page of the explorer, and its figures as files of their own."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from partsketch.common.errors import InputError
from partsketch.report.explorer.evaluation import figure
from partsketch.report.explorer.state import DESIGNS, SLIDERS, State
from partsketch.report.page.writer import environment, inline, script_hash

_FOLDER = Path(__file__).parent / "templates"


@cache
def page() -> str:
    """Return the page; it holds no state of its own."""
    script = (_FOLDER / "explorer.js").read_text(encoding="utf-8")
    style = inline("page.css") + (_FOLDER / "explorer.css").read_text(encoding="utf-8")
    text: str = (
        environment()
        .from_string((_FOLDER / "explorer.html").read_text(encoding="utf-8"))
        .render(style=style, script=script, script_hash=script_hash(script), sliders=SLIDERS, designs=DESIGNS)
    )
    return text


def standalone_figure(state: State, axis: str) -> str:
    """Return a figure with its colours inside, as a file that any program shows."""
    drawn = figure(state, axis)
    if not drawn:
        raise InputError("There is nothing to draw: no method has a finite loss here.")
    # Standing alone, a figure is on white paper whatever the reader's screen prefers.
    style = inline("page.css").split("@media (prefers-color-scheme: dark)", 1)
    colours, rest = style[0].replace("light dark", "light"), style[1].split("\n}\n", 1)[1]
    head = '<svg xmlns="http://www.w3.org/2000/svg" '
    return drawn.replace("<svg ", head, 1).replace(
        ">", f"><style>{colours}{rest}</style><rect width='100%' height='100%' fill='#fff'/>", 1
    )
