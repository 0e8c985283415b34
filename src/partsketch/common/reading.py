"""Reading small files that anybody may have written: ordinary files only, and never more than a bound."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from partsketch.common.errors import InputError


@contextmanager
def ordinary_file(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open a file that is neither pipe nor device, and give it with its size; what goes wrong is one sentence."""
    try:
        with os.fdopen(_descriptor(path), "rb") as file:
            yield file, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error


def _descriptor(path: Path) -> int:
    try:
        # Opening a named pipe must not wait for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError as error:  # a null character
        raise InputError(f"Cannot read {str(path)!r}: {error}.") from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        what = "a folder" if stat.S_ISDIR(mode) else "not an ordinary file"
        raise InputError(f"Cannot read {path}: it is {what}.")
    return descriptor


def read_at_most(path: Path, most: int, what: str) -> bytes:
    """Return all of a file of at most so many bytes; `what` says in the message what it should be."""
    with ordinary_file(path) as (file, size):
        # Some files of the system say that they are empty and are not, so what is read is counted as well.
        content = file.read(most + 1) if size <= most else b""
        if size > most or len(content) > most:
            raise InputError(f"Cannot read {path}: it has more than {most:,} bytes, too many for {what}.")
        return content
