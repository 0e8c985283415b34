"""What commands print: sentences and JSON, fit for any terminal and any pipe."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from partsketch.common.text import plain, plain_json, sentence


def say(text: str) -> None:
    """Print one line."""
    print(plain(text), flush=True)


def show(text: str) -> None:
    """Print a table, or another text of several lines."""
    print(plain(text, keep="\n"), flush=True)


def complain(text: str) -> None:
    """Print one line on the standard error."""
    print(sentence(text), file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print a warning."""
    complain(f"Warning: {text}")


def _without_non_finite(values: Any) -> Any:
    """Return plain data with None for infinities and what is not a number: JSON has neither."""
    if isinstance(values, float):
        return values if math.isfinite(values) else None
    if isinstance(values, dict):
        return {name: _without_non_finite(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_without_non_finite(value) for value in values]
    return values


def print_json(values: Any) -> None:
    """Print JSON on one line, with null for what is infinite or not a number.

    What an ASCII terminal cannot show, and what a terminal would obey, is written out.
    """
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    text = json.dumps(_without_non_finite(values), ensure_ascii=False, allow_nan=False)
    print(plain_json(text, ascii_only=not encoding.startswith("utf")), flush=True)
