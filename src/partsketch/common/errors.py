"""What can go wrong, in one sentence each."""

from __future__ import annotations


class PartsketchError(Exception):
    """Base of every error that partsketch raises on purpose."""


class InputError(PartsketchError, ValueError):
    """Bad input: the message is one sentence that names the culprit and says what to do."""


class UnreadableError(InputError):
    """A file, or a part of one, that cannot be read at all: missing, truncated or damaged."""


class PartsketchWarning(UserWarning):
    """Something works but is not what most users want; the model's record repeats it."""
