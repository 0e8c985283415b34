"""Writing files whole or not at all, and never over what is being read.

A file is written under a temporary name in the same folder, flushed to the disk, and renamed. Who reads the old file
meanwhile keeps it; who looks after a crash finds the old file or the new one. A temporary name tells which process
writes it, so what a killed process left can be told from what another one is writing, and is removed.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import socket
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from partsketch.common.errors import InputError, reason_of

#: Machine and process that write it, and a random number.
_TEMPORARY = re.compile(r"\.partsketch-([0-9a-f]{8})-(\d+)-[0-9a-f]{16}\.part")
#: Seconds without a change after which a temporary file is given up whose process cannot be asked: it is on another
#: machine, or its number has been given to another process.
_GIVEN_UP_SECONDS = 86400.0
#: Seconds after which a folder is looked through again by the same process.
_TIDY_SECONDS = 60.0
#: Longest path that is worth printing.
_SHOWN = 200

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
#: Temporary files that this process is writing.
_under_way: set[str] = set()
#: When this process last looked through a folder.
tidied: dict[str, float] = {}


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for a sentence, shortened in the middle if it is very long."""
    text = os.fspath(path)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 2 :]}"


def special_kind(mode: int) -> str:
    """Return what a path leads to if that is not a file: "a folder", "a device"; empty for files."""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "")


def check_path(path: str | os.PathLike[str], verb: str = "write") -> None:
    """Refuse a path that no file can have here."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        written = os.fsencode(text).decode("utf-8", "backslashreplace")
        raise InputError(f"Cannot {verb} {shown(written)}: its name is not UTF-8; rename it.") from None
    if "\0" in text:
        raise InputError(f"Cannot {verb} {shown(text)}: a name cannot hold a null character.")
    if not text:
        raise InputError(f"Cannot {verb} a file without a name: give its path.")


def check_output(path: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Return where a file will be written, links followed, or refuse.

    Parameters
    ----------
    path
        The file to write.
    inputs
        Files that are read for it; none of them may be the one that is written, under whatever name.

    Raises
    ------
    InputError
        The folder does not exist or cannot be written; the path leads to a folder, a device, a named pipe or a socket;
        or it is one of the inputs.
    """
    check_path(path)
    try:
        target = Path(os.path.realpath(path))
        # What cannot be looked at for another reason than that it is not there cannot be written either.
        state = _state(path)
        if not stat.S_ISDIR(os.stat(target.parent).st_mode):
            raise NotADirectoryError(0, f"{shown(target.parent)} is not a folder")
    except FileNotFoundError as error:
        folder = Path(path).parent if not Path(path).is_symlink() else Path(os.path.realpath(path)).parent
        raise InputError(f"Cannot write {shown(path)}: there is no folder {shown(folder)}.") from error
    except OSError as error:
        raise InputError(f"Cannot write {shown(path)}: {reason_of(error)}.") from error
    if state is not None:
        kind = special_kind(state.st_mode)
        if kind:
            raise InputError(f"Cannot write {shown(path)}: it is {kind}; name a file.")
        for used in inputs:
            other = _state(used)
            if other is not None and (other.st_dev, other.st_ino) == (state.st_dev, state.st_ino):
                same = "" if os.fspath(used) == os.fspath(path) else f" (the same file as {shown(used)})"
                raise InputError(f"Cannot write {shown(path)}: it is one of the inputs{same}; name another file.")
        if any(_is_stream(number, state) for number in (1, 2)):
            raise InputError(f"Cannot write {shown(path)}: what is printed goes there; name another file.")
        if not os.access(target, os.W_OK):
            raise InputError(f"Cannot write {shown(path)}: it is read-only.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InputError(f"Cannot write {shown(path)}: the folder {shown(target.parent)} is read-only.")
    return target


def _state(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def _is_stream(number: int, state: os.stat_result) -> bool:
    """Tell whether a file is what a standard stream leads to."""
    try:
        stream = os.fstat(number)
    except OSError:
        return False
    return (stream.st_dev, stream.st_ino) == (state.st_dev, state.st_ino)


@contextmanager
def atomic_path(path: Path, inputs: Iterable[str | os.PathLike[str]] = ()) -> Iterator[Path]:
    """Give a temporary name beside `path`; on success it becomes `path`, on failure nothing is left.

    Links are followed: the link stays, and what it leads to is replaced. A file that is replaced keeps its permissions.
    `inputs` as in `check_output`.
    """
    target = check_output(path, inputs)
    remove_abandoned(target.parent)
    temporary = target.parent / _temporary_name()
    _under_way.add(temporary.name)
    try:
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        with contextlib.suppress(OSError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        yield temporary
        flush_to_disk(temporary)
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"Cannot write {shown(path)}: {reason_of(error)}.") from error
    finally:
        # After a success there is no such file any more.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        _under_way.discard(temporary.name)
    # Some file systems do not offer to flush a folder: after a crash the old file may be there.
    with contextlib.suppress(OSError):
        flush_to_disk(target.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path`, which must be new or empty; on success it becomes `path`."""
    check_path(path)
    target = Path(os.path.realpath(path))
    temporary = target.parent / _temporary_name()
    _under_way.add(temporary.name)
    try:
        remove_abandoned(target.parent)
        temporary.mkdir()
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(f"Cannot write {shown(path)}: {reason_of(error)}.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _under_way.discard(temporary.name)
    with contextlib.suppress(OSError):
        flush_to_disk(target.parent)


def write_atomically(path: Path, data: bytes, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Write bytes to a file, whole or not at all; `inputs` as in `check_output`."""
    with atomic_path(path, inputs) as temporary:
        temporary.write_bytes(data)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, unless it is there; a link that leads to none yet is followed."""
    # The system makes no folder in the place of a link, not even where it leads to nothing.
    Path(os.path.realpath(path)).mkdir(parents=True, exist_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left in a folder while they were writing; what is being written stays."""
    now = time.monotonic()
    if now - tidied.get(str(folder), -_TIDY_SECONDS) < _TIDY_SECONDS:
        return
    tidied[str(folder)] = now
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            parts = _TEMPORARY.fullmatch(entry.name)
            if parts is None or entry.is_symlink() or entry.name in _under_way:
                continue
            here = parts[1] == machine() and not _is_running(int(parts[2]))
            if here or time.time() - entry.stat().st_mtime > _GIVEN_UP_SECONDS:
                with contextlib.suppress(OSError):
                    shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)


def _temporary_name() -> str:
    return f".partsketch-{machine()}-{os.getpid()}-{secrets.token_hex(8)}.part"


def _is_running(process: int) -> bool:
    """Tell whether another process has this number; in doubt one has."""
    if process == os.getpid():
        # Of an earlier process with the number of this one, as in containers; what this one writes is known.
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def machine() -> str:
    """Return what tells where processes have different numbers: the machine, and the container on it."""
    try:
        inside = os.readlink("/proc/self/ns/pid")
    except OSError:
        inside = ""
    return sha256(f"{socket.gethostname()} {inside}".encode()).hexdigest()[:8]


def flush_to_disk(path: Path) -> None:
    """Have the operating system bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
