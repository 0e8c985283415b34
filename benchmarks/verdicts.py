"""How a contestant that gives no answer is spoken of: in the same few words whoever it is."""

from __future__ import annotations


class DidNotConvergeError(Exception):
    """Raised by a contestant whose iteration stopped before its own tolerance."""


def in_words(last_line: str) -> str:
    """Turn the last line of a traceback into a verdict."""
    name, _, message = last_line.partition(":")
    kind = name.rpartition(".")[2]
    if kind in ("ModuleNotFoundError", "ImportError"):
        return f"not available ({message.strip()})"
    if kind in ("MemoryError", "_ArrayMemoryError"):
        return "out of memory"
    if kind == "DidNotConvergeError":
        return "did not converge"
    return last_line[:200]
