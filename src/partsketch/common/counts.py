"""Counts that can be worked with: larger ones overflow somewhere before they mean anything."""

from __future__ import annotations

from partsketch.common.errors import InputError

#: Most partitions, sketch rows and columns.
MOST = 2**31 - 1
#: Most rows: beyond, doubles do not count.
MOST_ROWS = 2**53


def refuse_too_many(most: int = MOST, **counts: object) -> None:
    """Refuse whole numbers above `most`; keywords are the names that messages show, other values are not looked at."""
    for name, count in counts.items():
        if isinstance(count, int) and count > most:
            raise InputError(f"{name} is {_short(count)}: give at most {most:,}.")


def _short(count: int) -> str:
    # Python refuses to write very long numbers.
    return str(count) if count.bit_length() < 100 else f"about 2 to the power of {count.bit_length()}"
