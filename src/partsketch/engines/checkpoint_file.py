"""The file of a checkpoint: what some tasks of a fit brought back, to the last bit, and nothing when in doubt."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from partsketch.common.files import atomic_path
from partsketch.sketches.accumulator import FloatArray
from partsketch.summaries.tasks import Piece, TaskResult

_MAGIC = b"PSTASKS\n"
FORMAT_VERSION = 3
_DIGEST_BYTES = 32
#: Arrays of the sums beside a sketch.
_BESIDE = 3


def save_result(path: Path, fingerprint: str, tasks: Sequence[int], result: TaskResult) -> None:
    """Write the result of these tasks of the fit with this fingerprint, whole or not at all."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        for part in _parts(fingerprint, tasks, result):
            file.write(part)


def load_result(path: Path, fingerprint: str) -> tuple[tuple[int, ...], TaskResult] | None:
    """Return tasks and result, or None when the file is damaged, cut short, or belongs to another fit."""
    try:
        return from_bytes(path.read_bytes(), fingerprint)
    except OSError:
        return None


def to_bytes(fingerprint: str, tasks: Sequence[int], result: TaskResult) -> bytes:
    """Return the file format: magic, header length, JSON header, little-endian doubles, SHA-256 of all that."""
    return b"".join(_parts(fingerprint, tasks, result))


def _parts(fingerprint: str, tasks: Sequence[int], result: TaskResult) -> Iterator[bytes]:
    """Yield the file bit by bit: matrices by the thousand are not copied together."""
    header = {
        "version": FORMAT_VERSION,
        "fingerprint": fingerprint,
        "tasks": [int(task) for task in tasks],
        "dropped": int(result.dropped),
        "rows_seen": int(result.rows_seen),
        "pieces": [_describe(piece) for piece in result.pieces],
    }
    text = json.dumps(header, sort_keys=True).encode()
    arrays = [array for piece in result.pieces for array in _arrays(piece)]
    digest = hashlib.sha256()
    doubles = (np.ascontiguousarray(array, dtype="<f8").tobytes() for array in arrays)
    for part in chain((_MAGIC, struct.pack("<I", len(text)), text), doubles):
        digest.update(part)
        yield part
    yield digest.digest()


def _arrays(piece: Piece) -> tuple[FloatArray, ...]:
    """Return the arrays of a piece; a centre that there is not has no entries."""
    own = (*piece.matrices, np.empty(0) if piece.centre is None else piece.centre, piece.target_range)
    return own if piece.beside is None else (*_arrays(piece.beside), *own)


def _describe(piece: Piece) -> dict[str, Any]:
    return {
        "partition": int(piece.partition),
        "segment": int(piece.segment),
        "level": int(piece.level),
        "row_count": int(piece.row_count),
        "weight_sum": float(piece.weight_sum).hex(),
        "shapes": [list(array.shape) for array in _arrays(piece)],
        "measured": piece.beside is not None,
    }


def _piece(entry: dict[str, Any], arrays: Sequence[FloatArray]) -> Piece:
    return Piece(
        partition=entry["partition"],
        segment=entry["segment"],
        matrices=tuple(arrays[:-2]),
        row_count=entry["row_count"],
        weight_sum=float.fromhex(entry["weight_sum"]),
        target_range=arrays[-1],
        centre=arrays[-2] if arrays[-2].size else None,
        level=entry["level"],
    )


def from_bytes(data: bytes, fingerprint: str) -> tuple[tuple[int, ...], TaskResult] | None:
    """Read what `to_bytes` wrote; None unless every byte is as it was written, for the fit with this fingerprint."""
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        return None
    start = len(_MAGIC) + 4
    stop = start + struct.unpack("<I", body[len(_MAGIC) : start])[0]
    header = json.loads(body[start:stop])
    if header["version"] != FORMAT_VERSION or header["fingerprint"] != fingerprint:
        return None
    doubles = np.frombuffer(body[stop:], dtype="<f8").astype(np.float64)
    position = 0
    pieces = []
    for entry in header["pieces"]:
        arrays = []
        for shape in entry["shapes"]:
            size = math.prod(shape)
            arrays.append(doubles[position : position + size].reshape(shape))
            position += size
        # Sums beside a sketch are one matrix, with a centre and a range of its own.
        beside = _piece(entry, arrays[:_BESIDE]) if entry["measured"] else None
        own = arrays[_BESIDE:] if entry["measured"] else arrays
        pieces.append(replace(_piece(entry, own), beside=beside))
    return tuple(header["tasks"]), TaskResult(tuple(pieces), header["dropped"], header["rows_seen"])
