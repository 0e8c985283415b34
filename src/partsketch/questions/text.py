"""Tables of aligned text."""

from __future__ import annotations

from collections.abc import Sequence

from partsketch.common.text import plain


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text: the first column to the left, all others to the right, a rule below the headings."""
    cells = [[plain(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(head))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "─" * (sum(widths) + 2 * (len(widths) - 1)), *lines[1:]])
