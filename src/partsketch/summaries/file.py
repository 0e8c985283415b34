"""Sketch files (.psk): a fixed prefix, a JSON header, doubles, and a checksum; docs/sketch-format.md describes them.

A file may come from anybody. Nothing in it is executed or unpickled, every size is checked against the limits and
against the size of the file before memory is set aside, and whatever is wrong becomes one sentence.
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.reading import ordinary_file
from partsketch.summaries.file_header import check, contents, header_of, parse
from partsketch.summaries.file_rules import HeaderError, check_numbers
from partsketch.summaries.noise_rules import check_noise
from partsketch.summaries.summary import Summary

MAGIC = b"PSKETCH\n"
#: Version 2 has a centre in its header, and a second matrix behind the first: what its doubles leave out of it.
PLAIN_VERSION, CENTRED_VERSION = 1, 2
#: Version 3 holds many summaries (`collection_file.py`), version 4 sums of products with noise (`noisy_file.py`).
COLLECTION_VERSION, NOISY_VERSION = 3, 4
#: Version 5 tells the noise of its targets, measured on the rows; it has a centre and a second matrix or has not.
MEASURED_VERSION = 5
LARGEST_HEADER = 2**22
LARGEST_BODY = 2**31

_PREFIX = struct.Struct("<8sII")
_DIGEST_BYTES = 32
_READ_BYTES = 2**20


def to_bytes(summary: Summary) -> bytes:
    """Return a summary as a file."""
    values = header_of(summary)
    try:
        version = _version_of(values)
        sketch = check(values)
        rows, columns = summary.matrix.shape
        body = [summary.matrix]
        if "centre" in values:
            body.append(np.zeros((rows, columns)) if summary.low is None else summary.low)
        check_numbers(values, sketch, body)
        check_noise(summary, sketch)
        header = json.dumps(values, sort_keys=True, ensure_ascii=False).encode()
        _check_sizes(len(header), rows * len(body), columns)
    except HeaderError as error:
        raise InputError(f"The summary cannot be written to a file: {error}.") from error
    content = _PREFIX.pack(MAGIC, version, len(header)) + header
    content += b"".join(matrix.astype("<f8").tobytes() for matrix in body)
    return content + hashlib.sha256(content).digest()


def load(path: Path) -> Summary:
    """Read a sketch file."""
    with ordinary_file(path) as (file, size):
        return read(file, size, str(path))


def read(stream: BinaryIO, size: int, name: str) -> Summary:
    """Read a sketch file of `size` bytes; `name` is used in messages."""
    prefix = stream.read(_PREFIX.size)
    if not prefix.startswith(MAGIC):
        raise InputError(f"{name} is not a partsketch sketch file.")
    try:
        if len(prefix) < _PREFIX.size:
            raise HeaderError("it is cut short")
        _, version, header_bytes = _PREFIX.unpack(prefix)
        if version == COLLECTION_VERSION:
            raise InputError(f"{name} holds several summaries: read it with `read_summaries`.")
        if version == NOISY_VERSION:
            raise InputError(f"{name} holds sums of products with noise, made with epsilon: `combine` alone takes it.")
        if version not in (PLAIN_VERSION, CENTRED_VERSION, MEASURED_VERSION):
            age = "newer" if version > MEASURED_VERSION else "older"
            raise InputError(
                f"{name} has format version {version}, {age} than {MEASURED_VERSION}: "
                f"{'update partsketch' if version > MEASURED_VERSION else 'make it again'}."
            )
        return _read_rest(stream, size, prefix, header_bytes, version)
    except HeaderError as error:
        raise InputError(f"{name} is damaged or not a valid sketch file: {error}.") from error


def _version_of(values: dict[str, Any]) -> int:
    """Return the version of a file with this header."""
    if "noise" in values:
        return MEASURED_VERSION
    return CENTRED_VERSION if "centre" in values else PLAIN_VERSION


def _read_rest(stream: BinaryIO, size: int, prefix: bytes, header_bytes: int, version: int) -> Summary:
    _check_sizes(header_bytes, 0, 0)
    if size < _PREFIX.size + header_bytes + _DIGEST_BYTES:
        raise HeaderError("it is cut short")
    header = stream.read(header_bytes)
    values = parse(header)
    if _version_of(values) != version:
        raise HeaderError(
            "a centre goes with format version 2, measured noise with version 5 whether there is a centre or not, and "
            "neither with version 1"
        )
    matrices = 2 if "centre" in values else 1
    sketch = check(values)
    rows, columns = values["sketch_rows"], len(values["columns"])
    _check_sizes(header_bytes, rows * matrices, columns)
    if size != _PREFIX.size + header_bytes + 8 * matrices * rows * columns + _DIGEST_BYTES:
        raise HeaderError("its size is not what its header says")
    digest = hashlib.sha256(prefix)
    digest.update(header)
    try:
        matrix = np.empty((matrices, rows, columns), dtype="<f8")
    except MemoryError as error:
        raise HeaderError(f"its {rows} × {columns} numbers do not fit into memory") from error
    body = matrix.reshape(-1).view(np.uint8).data.cast("B")
    filled = 0
    while filled < len(body):
        count = stream.readinto(body[filled : filled + _READ_BYTES])  # type: ignore[attr-defined]
        if not count:
            raise HeaderError("it is cut short")
        digest.update(body[filled : filled + count])
        filled += count
    if stream.read(_DIGEST_BYTES + 1) != digest.digest():
        raise HeaderError("its contents do not match its checksum")
    check_numbers(values, sketch, list(matrix))
    parts, about = contents(values)
    summary = Summary(
        matrix=matrix[0],
        low=matrix[1] if matrices == 2 else None,
        centre=np.array(values.get("centre", ()), dtype=np.float64),
        columns=tuple(values["columns"]),
        kind=values["kind"],
        parts=parts,
        row_count=values["row_count"],
        weight_sum=float(values["weight_sum"]),
        about=about,
    )
    check_noise(summary, sketch)
    return summary


def _check_sizes(header_bytes: int, rows: int, columns: int) -> None:
    if header_bytes > LARGEST_HEADER:
        raise HeaderError(f"its header has {header_bytes} bytes, more than {LARGEST_HEADER}")
    if 8 * rows * columns > LARGEST_BODY:
        raise HeaderError(f"its {rows} × {columns} numbers take more than {LARGEST_BODY} bytes")
