"""What can go wrong, in one sentence each.

Messages quote names and values that come from data. They are shown on terminals and written to logs, so whatever is
quoted, a message is one line without control characters.
"""

from __future__ import annotations

from partsketch.common.text import plain, sentence


class PartsketchError(Exception):
    """Base of every error that partsketch raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(sentence(message))


class InputError(PartsketchError, ValueError):
    """Bad input: the message is one sentence that names the culprit and says what to do."""


class UnreadableError(InputError):
    """A file, or a part of one, that cannot be read at all: missing, truncated or damaged."""


class PartsketchWarning(UserWarning):
    """Something works but is not what most users want; the model's record repeats it."""

    def __init__(self, message: str = "") -> None:
        super().__init__(sentence(message))


def reason_of(error: BaseException) -> str:
    """Return why something failed, as the end of a sentence: short, one line, without a full stop."""
    text = getattr(error, "strerror", None) or str(error)
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].endswith(":"):
        # What it announces is the end of a traceback.
        lines[0] = f"{lines[0]} {lines[-1]}"
    return plain(lines[0][:200]).rstrip(". ") if lines else type(error).__name__
