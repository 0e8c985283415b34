"""Names of the columns of clusters, as one text: "city", or "city + year" for two ways at once."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: A name in backticks, or one without a plus, and what follows it.
_NAME = re.compile(r"\s*(?:`([^`]+)`|([^+`]+?))\s*(?:\+|$)")


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a text such as "city + year"; a name with a plus of its own stands in backticks.

    The result is empty where the text is no such list.
    """
    names, place = [], 0
    while place < len(text):
        found = _NAME.match(text, place)
        if found is None:
            return ()
        names.append(found[1] or found[2])
        place = found.end()
    return () if text.rstrip().endswith("+") else tuple(names)


def joined_names(names: Sequence[str]) -> str:
    """Return names as one text."""
    return " + ".join(f"`{name}`" if "+" in name else name for name in names)
