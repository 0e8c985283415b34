"""Names of columns as the commands take them: an option may be repeated, and hold several, separated by commas."""

from __future__ import annotations

from collections.abc import Sequence


def column_names(features: Sequence[str]) -> list[str] | None:
    """Return the names that were given, or None when there are none."""
    return [name.strip() for text in features for name in text.split(",") if name.strip()] or None
