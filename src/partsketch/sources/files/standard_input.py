"""Rows from the standard input: kept in a temporary file, so that they can be read as often as a method needs."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from typing import Any

from partsketch.common.errors import InputError

NAME = "standard input"
_PIECE = 1 << 20
#: Part of the free space of the temporary folder that the rows may take.
_SHARE = 0.5
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
#: The stream that was read, and where its rows are: it can be read once.
_kept: list[tuple[Any, tuple[str, str]]] = []


def standard_input() -> tuple[str, str]:
    """Return the path of a temporary file with what came by the standard input, and its format.

    It is CSV unless it begins like Parquet or Arrow (a file or a stream); what is compressed is unpacked.
    """
    stream: Any = getattr(sys.stdin, "buffer", None)
    for known, found in _kept:
        if known is stream:
            return found
    if stream is None or stream.closed:
        raise InputError("There is no standard input: name a file in place of '-'.")
    if stream.isatty():
        raise InputError("The standard input is a terminal: lead rows to it, as in 'cat rows.csv | partsketch fit -'.")
    found = _spooled(stream)
    _kept[:] = [(stream, found)]
    return found


def _spooled(stream: Any) -> tuple[str, str]:
    import pyarrow as pa

    rows = _Peeked(stream)
    packed = next((name for magic, name in _COMPRESSED.items() if rows.start.startswith(magic)), None)
    descriptor, path = tempfile.mkstemp(prefix="partsketch-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            limited = _Limited(file, int(_SHARE * shutil.disk_usage(path).free))
            if packed:
                rows = _Peeked(pa.CompressedInputStream(pa.PythonFile(rows, mode="r"), packed))
            if not rows.start:
                raise InputError("The standard input is empty: no rows came.")
            kind = _copy(rows, limited)
        return _without_name(path), kind
    except BaseException as error:
        _remove(path)
        if not isinstance(error, pa.ArrowException | OSError) or isinstance(error, InputError):
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
        raise InputError(f"The standard input broke off or is damaged: {reason}.") from error


def _copy(rows: _Peeked, file: _Limited) -> str:
    """Copy all rows and return the format they have in the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rows.start.startswith(b"\xff\xff\xff\xff"):
        with pa.ipc.open_stream(pa.PythonFile(rows, mode="r")) as reader:
            sink = pa.PythonFile(file, mode="w")
            with pq.ParquetWriter(sink, reader.schema, compression="none") as writer:
                for batch in reader:
                    writer.write_batch(batch)
        return "Parquet"
    while piece := rows.read(_PIECE):
        file.write(piece)
    if rows.start.startswith(b"PAR1"):
        return "Parquet"
    return "Feather" if rows.start.startswith(b"ARROW1") else "CSV"


def _without_name(path: str) -> str:
    """Return a path to the file that lasts as long as this process, whatever ends it; else remove it at the end."""
    descriptor = os.open(path, os.O_RDONLY)
    by_number = f"/proc/{os.getpid()}/fd/{descriptor}"
    if os.path.exists(by_number):
        os.unlink(path)
        return by_number
    os.close(descriptor)
    atexit.register(_remove, path)
    return path


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


class _Peeked:
    """A stream whose first bytes are known before they are read."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.start = bytes(stream.read(8))
        self._waiting = self.start

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        if self._waiting:
            piece, self._waiting = self._waiting, b""
            if 0 <= size < len(piece):
                piece, self._waiting = piece[:size], piece[size:]
            return piece + (bytes(self.stream.read(size - len(piece))) if size > len(piece) else b"")
        return bytes(self.stream.read(size))

    def close(self) -> None:
        """Do nothing: the stream is not ours."""


class _Limited:
    """A file that takes no more bytes than it may."""

    closed = False

    def __init__(self, file: Any, limit: int) -> None:
        self.file = file
        self.limit = limit
        self.taken = 0

    def write(self, data: Any) -> int:
        """Write bytes, unless they are too many."""
        self.taken += len(data)
        if self.taken > self.limit:
            raise InputError(
                f"The standard input has more than {self.limit:,} bytes, half of what is free in "
                f"{tempfile.gettempdir()}, where it is kept: write it to a file and name that."
            )
        self.file.write(data)
        return len(data)

    def flush(self) -> None:
        """Write what waits."""
        self.file.flush()

    def close(self) -> None:
        """Do nothing: the file is closed by who opened it."""
