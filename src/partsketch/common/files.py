"""Writing files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from partsketch.common.errors import InputError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success it becomes `path`, on failure nothing is left."""
    if not path.parent.is_dir():
        raise InputError(f"Cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise InputError(f"Cannot write {path}: it is a folder.")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from error
    os.close(handle)
    # mkstemp makes private files; a result gets the permissions any new file would have.
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(name, 0o666 & ~umask)
    try:
        yield Path(name)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Write bytes to a file, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
