"""What commands print: sentences and JSON, fit for any terminal and any pipe."""

from __future__ import annotations

import json
import sys
from typing import Any

from partsketch.common.text import plain, plain_json, sentence


def say(text: str) -> None:
    """Print one line."""
    print(plain(text), flush=True)


def complain(text: str) -> None:
    """Print one line on the standard error."""
    print(sentence(text), file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print a warning."""
    complain(f"Warning: {text}")


def print_json(values: Any) -> None:
    """Print JSON on one line; what an ASCII terminal cannot show, and what a terminal would obey, is written out."""
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower()
    text = json.dumps(values, ensure_ascii=False)
    print(plain_json(text, ascii_only=not encoding.startswith("utf")), flush=True)
