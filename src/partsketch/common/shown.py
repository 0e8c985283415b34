"""What prints as text does so wherever it is shown: its text in a session, the same in a notebook."""

from __future__ import annotations

import html


class ShownAsText:
    """Shows its text, not its fields; a dataclass has `repr=False` beside it."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        text = str(self)
        if "\n" not in text:
            return f"<p>{html.escape(text)}</p>"
        # Pages around it may have other ideas of what a table of text looks like.
        return f'<pre style="font-family: monospace; white-space: pre; overflow-x: auto">{html.escape(text)}</pre>'
