"""Files of many summaries (.psk, format version 3): an index, then the summaries, each a sketch file of its own.

What is checked of a sketch file is checked of every one inside, by the same code; docs/sketch-format.md describes both.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.common.reading import ordinary_file
from partsketch.summaries.file import COLLECTION_VERSION, MAGIC, read
from partsketch.summaries.file import to_bytes as summary_bytes
from partsketch.summaries.file_header import parse
from partsketch.summaries.file_rules import HeaderError
from partsketch.summaries.summary import Summary

MOST_SUMMARIES = 2**20
LARGEST_INDEX = 2**24
LARGEST_FILE = 2**33

_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32


def to_bytes(summaries: Sequence[Summary]) -> bytes:
    """Return summaries as one file: a single one as a sketch file, several behind an index."""
    if not summaries:
        raise InputError("There are no summaries to write.")
    if len(summaries) == 1:
        return summary_bytes(summaries[0])
    entries = [summary_bytes(summary) for summary in summaries]
    index = json.dumps({"bytes": [len(entry) for entry in entries]}).encode()
    if len(entries) > MOST_SUMMARIES or len(index) > LARGEST_INDEX:
        raise InputError(f"A file holds at most {MOST_SUMMARIES} summaries: write several files.")
    content = b"".join([_PREFIX.pack(MAGIC, COLLECTION_VERSION, len(index)), index, *entries])
    return content + hashlib.sha256(content).digest()


def save(summaries: Sequence[Summary], path: Path) -> None:
    """Write summaries to one file, whole or not at all."""
    write_atomically(path, to_bytes(summaries))


def load(path: Path) -> tuple[Summary, ...]:
    """Read all summaries of a file: of one that holds many, or the one of a sketch file."""
    with ordinary_file(path) as (file, size):
        prefix = file.read(_PREFIX.size)
        if not _is_collection(prefix):
            file.seek(0)
            return (read(file, size, str(path)),)
        if size > LARGEST_FILE:
            raise InputError(f"{path} has {size} bytes: files of summaries have at most {LARGEST_FILE}.")
        return from_bytes(prefix + file.read(size - len(prefix) + 1), str(path))


def _is_collection(prefix: bytes) -> bool:
    if len(prefix) < _PREFIX.size:
        return False
    magic, version, _ = _PREFIX.unpack(prefix)
    return bool(magic == MAGIC and version == COLLECTION_VERSION)


def from_bytes(data: bytes, name: str = "summaries") -> tuple[Summary, ...]:
    """Read what `to_bytes` wrote; `name` is used in messages."""
    if not _is_collection(data[: _PREFIX.size]):
        return (read(BytesIO(data), len(data), name),)
    try:
        sizes, start = _sizes(data)
        if hashlib.sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
            raise HeaderError("its contents do not match its checksum")
    except HeaderError as error:
        raise InputError(f"{name} is damaged or not a valid file of summaries: {error}.") from error
    found = []
    for number, size in enumerate(sizes):
        entry = data[start : start + size]
        if _is_collection(entry[: _PREFIX.size]):
            raise InputError(f"{name} is damaged or not a valid file of summaries: summary {number} holds others.")
        found.append(read(BytesIO(entry), size, f"{name} (summary {number})"))
        start += size
    return tuple(found)


def _sizes(data: bytes) -> tuple[list[int], int]:
    """Return how many bytes each summary takes, and where the first begins."""
    *_, index_bytes = _PREFIX.unpack(data[: _PREFIX.size])
    start = _PREFIX.size + index_bytes
    if index_bytes > LARGEST_INDEX:
        raise HeaderError(f"its index has {index_bytes} bytes, more than {LARGEST_INDEX}")
    if len(data) < start + _DIGEST_BYTES:
        raise HeaderError("it is cut short")
    values = parse(data[_PREFIX.size : start])
    sizes = values.get("bytes")
    if set(values) != {"bytes"} or not isinstance(sizes, list):
        raise HeaderError("its index has other keys than 'bytes'")
    if not all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes):
        raise HeaderError("its index has sizes that are no positive whole numbers")
    if not 2 <= len(sizes) <= MOST_SUMMARIES:
        raise HeaderError(f"it has {len(sizes)} summaries: 2 to {MOST_SUMMARIES} are allowed")
    if start + sum(sizes) + _DIGEST_BYTES != len(data):
        raise HeaderError("its size is not what its index says")
    return sizes, start
