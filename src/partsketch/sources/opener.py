"""How other packages open data that partsketch does not know: files by their ending, or objects."""

from __future__ import annotations

from functools import cache
from typing import Any

from partsketch.common.errors import InputError
from partsketch.common.registry import Registry


class Opener:
    """Opens one kind of data; registered by an entry point of the group "partsketch.sources".

    Openers are pickled with what they opened, and so should hold no more than settings.

    Attributes
    ----------
    name
        What such data is called: "2 jsonl files".
    endings
        Endings of the files that it opens, in small letters, with their dot; empty when it opens no files.
    """

    name: str
    endings: tuple[str, ...] = ()

    def open_file(self, file: Any) -> Any:
        """Return the rows of a file: a `pyarrow.RecordBatchReader`, or anything that `pyarrow.table` takes.

        The file is open for reading, on whatever file system; it is opened again whenever rows are read again.
        """
        raise NotImplementedError

    def recognises(self, data: Any) -> bool:
        """Tell whether data is an object that it opens."""
        return False

    def open_object(self, data: Any) -> Any:
        """Return the rows of an object: an array, a table, paths, or a `pyarrow.RecordBatchReader`.

        For a reader, which can be read once, it is called again whenever rows are read again.
        """
        raise NotImplementedError


#: All of our own formats are opened by `opening.py`.
OPENERS: Registry[Opener] = Registry("source", {})


@cache
def openers() -> tuple[Opener, ...]:
    """Return the openers of all packages."""
    found = tuple(filter(None, (OPENERS.get(name, Opener) for name in OPENERS.names)))
    return tuple(kind() for kind in found)


def opener_of(ending: str) -> Opener | None:
    """Return the opener of files with this ending."""
    found = [opener for opener in openers() if ending in opener.endings]
    if len(found) > 1:
        names = " and ".join(repr(opener.name) for opener in found)
        raise InputError(f"The sources {names} all open {ending} files: remove all packages but one of them.")
    return found[0] if found else None


def opener_named(name: str) -> Opener:
    """Return the opener of this name, which there is."""
    return next(opener for opener in openers() if opener.name == name)
