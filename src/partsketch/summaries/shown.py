"""Summaries in a session or a notebook: what they are of, not their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from partsketch.common.shown import ShownAsText
from partsketch.common.text import plain

_MOST_COLUMNS = 8


def columns_in_short(columns: Sequence[str]) -> str:
    """Return the first names of columns."""
    return plain(", ".join(columns[:_MOST_COLUMNS])) + (", …" if len(columns) > _MOST_COLUMNS else "")


class ShownInShort(ShownAsText):
    """Shows in one line what it holds; its numbers are those of `np.asarray`."""

    def _in_short(self) -> tuple[str, Sequence[str], str]:
        """Return what it is, its columns, and the name of its site."""
        raise NotImplementedError

    def __str__(self) -> str:
        what, columns, site = self._in_short()
        where = f"; site {plain(site)}" if site else ""
        return f"{type(self).__name__}({what}, columns: {columns_in_short(columns)}{where})"
