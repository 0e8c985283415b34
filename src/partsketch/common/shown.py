"""What prints as a table does so wherever it is shown: its text in a session, the same preformatted in a notebook."""

from __future__ import annotations

import html


class ShownAsText:
    """Shows its text, not its fields; a dataclass has `repr=False` beside it."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
