"""The summary: what a partition becomes. Small, immutable, mergeable in two ways, with a file format of its own."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from partsketch.blas import triangular_factor
from partsketch.errors import InputError
from partsketch.files import write_atomically
from partsketch.sketches.base import get_sketch

FloatArray = NDArray[np.float64]

_MAGIC = b"PSKETCH\n"
FORMAT_VERSION = 1
_LARGEST_HEADER = 2**24
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Part:
    """Which rows, and which random numbers, stand behind some rows of a summary.

    Attributes
    ----------
    origin
        Name of the data set or site; row numbers of different origins are unrelated.
    stream
        Stream of random numbers; also the partition's number.
    start, stop
        Rows numbered start to stop (of the stream's partition) are in; stop is excluded.
    size
        Rows of the summary that belong to this part.
    seed
        Seed of the sketch; None for exact summaries.
    contiguous
        Whether all rows of the range are in; False when only those of this stream's partition are.
    """

    origin: str
    stream: int
    start: int
    stop: int
    size: int
    seed: int | None
    contiguous: bool = True

    def overlaps(self, other: Part) -> bool:
        """Whether a row may be in both: the ranges overlap, and do not merely share rows out among partitions."""
        apart = not self.contiguous and not other.contiguous and self.stream != other.stream
        return self.start < other.stop and other.start < self.stop and not apart


@dataclass(frozen=True, eq=False)
class Summary:
    """A small matrix Z = S A that stands for the rows A, with what is needed to merge and to solve.

    Attributes
    ----------
    matrix
        Z, read-only; its columns are those of `columns`.
    columns
        Column names: the intercept first if there is one, then features and targets.
    kind
        Kind of sketch.
    parts
        What stands behind the rows of Z, in order.
    row_count, weight_sum
        How many rows, and how much weight, were summarised.
    """

    matrix: FloatArray
    columns: tuple[str, ...]
    kind: str
    parts: tuple[Part, ...]
    row_count: int
    weight_sum: float

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64, order="C")
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise InputError(f"A summary of {len(self.columns)} columns cannot hold a matrix of shape {matrix.shape}.")
        if len(set(self.columns)) != len(self.columns):
            raise InputError("A summary needs distinct column names.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Summary):
            return NotImplemented
        return self._header() == other._header() and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.columns, self.kind, self.parts, self.matrix.tobytes()))

    def _check_same_columns(self, other: Summary) -> None:
        if self.kind != other.kind:
            raise InputError(f"Cannot merge a {self.kind} summary with a {other.kind} one: make both of one kind.")
        if self.columns != other.columns:
            differing = sorted(set(self.columns) ^ set(other.columns))
            detail = f"these are in one only: {', '.join(differing)}" if differing else "their order differs"
            raise InputError(f"Cannot merge summaries with different columns ({detail}).")

    def stack(self, other: Summary) -> Summary:
        """Merge with a summary of other rows by putting one below the other (exact factors are factored again)."""
        self._check_same_columns(other)
        exact = not get_sketch(self.kind).is_random
        for mine in self.parts:
            for theirs in other.parts:
                same_numbers = (mine.seed, mine.stream) == (theirs.seed, theirs.stream)
                if mine.origin == theirs.origin and mine.overlaps(theirs):
                    raise InputError(
                        f"Cannot stack: rows {max(mine.start, theirs.start)} to {min(mine.stop, theirs.stop)} of "
                        "the same data are in both summaries and would count twice."
                    )
                if same_numbers and not exact:
                    raise InputError(
                        f"Cannot stack: both sketches use the random numbers of seed {mine.seed}, stream "
                        f"{mine.stream}; sum them if they are parts of one sketch, else make one with another seed."
                    )
        matrix = triangular_factor(self.matrix, other.matrix) if exact else np.vstack([self.matrix, other.matrix])
        return Summary(
            matrix=matrix,
            columns=self.columns,
            kind=self.kind,
            parts=self.parts + other.parts,
            row_count=self.row_count + other.row_count,
            weight_sum=self.weight_sum + other.weight_sum,
        )

    def sum(self, other: Summary) -> Summary:
        """Merge with the same sketch rows of other rows: the result is the sketch of the union."""
        self._check_same_columns(other)
        if not get_sketch(self.kind).is_random:
            raise InputError("Exact summaries are merged by stacking, not by summing.")
        identity = [(part.seed, part.stream, part.size) for part in self.parts]
        if identity != [(part.seed, part.stream, part.size) for part in other.parts]:
            raise InputError("Cannot sum: the summaries are not made by the same sketch rows (seed, stream, size).")
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            if mine.overlaps(theirs):
                raise InputError(
                    f"Cannot sum: rows {max(mine.start, theirs.start)} to {min(mine.stop, theirs.stop)} have the "
                    "same numbers in both summaries; number the rows of the second one after the first."
                )
            if mine.stop != theirs.start and theirs.stop != mine.start:
                raise InputError("Cannot sum: the rows of the two summaries do not follow one another.")
        parts = tuple(
            Part(
                mine.origin,
                mine.stream,
                min(mine.start, theirs.start),
                max(mine.stop, theirs.stop),
                mine.size,
                mine.seed,
            )
            for mine, theirs in zip(self.parts, other.parts, strict=True)
        )
        return Summary(
            matrix=get_sketch(self.kind).merge(self.matrix, other.matrix),
            columns=self.columns,
            kind=self.kind,
            parts=parts,
            row_count=self.row_count + other.row_count,
            weight_sum=self.weight_sum + other.weight_sum,
        )

    def select(self, columns: tuple[str, ...]) -> FloatArray:
        """Return the matrix of these columns in this order."""
        missing = [name for name in columns if name not in self.columns]
        if missing:
            raise InputError(f"The summary has no column {missing[0]!r}; it has {', '.join(self.columns)}.")
        return self.matrix[:, [self.columns.index(name) for name in columns]]

    def _header(self) -> dict[str, object]:
        return {
            "version": FORMAT_VERSION,
            "shape": list(self.matrix.shape),
            "columns": list(self.columns),
            "kind": self.kind,
            "parts": [asdict(part) for part in self.parts],
            "row_count": self.row_count,
            "weight_sum": self.weight_sum.hex(),
        }

    def to_bytes(self) -> bytes:
        """Return the file format: magic, header length, JSON header, little-endian doubles by row, SHA-256."""
        header = json.dumps(self._header(), sort_keys=True, ensure_ascii=False).encode()
        body = _MAGIC + struct.pack("<I", len(header)) + header + self.matrix.astype("<f8").tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "summary") -> Summary:
        """Read what `to_bytes` wrote; `name` is used in messages."""
        if not data.startswith(_MAGIC):
            raise InputError(f"{name} is not a partsketch summary.")
        start = len(_MAGIC) + 4
        damaged = InputError(f"{name} is damaged or cut short: make it again.")
        if len(data) < start + _DIGEST_BYTES or hashlib.sha256(data[:-_DIGEST_BYTES]).digest() != data[-_DIGEST_BYTES:]:
            raise damaged
        length = struct.unpack("<I", data[len(_MAGIC) : start])[0]
        if length > min(_LARGEST_HEADER, len(data) - start - _DIGEST_BYTES):
            raise damaged
        try:
            header = json.loads(data[start : start + length])
            version = int(header["version"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise damaged from error
        if version > FORMAT_VERSION:
            raise InputError(f"{name} has format version {version}, newer than {FORMAT_VERSION}: update partsketch.")
        try:
            rows, width = (int(size) for size in header["shape"])
            body = data[start + length : -_DIGEST_BYTES]
            if rows < 0 or width < 1 or len(body) != rows * width * 8:
                raise damaged
            return cls(
                matrix=np.frombuffer(body, dtype="<f8").reshape(rows, width),
                columns=tuple(str(column) for column in header["columns"]),
                kind=get_sketch(header["kind"]).kind,
                parts=tuple(Part(**part) for part in header["parts"]),
                row_count=int(header["row_count"]),
                weight_sum=float.fromhex(header["weight_sum"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise damaged from error

    def save(self, path: str | Path) -> None:
        """Write to a file, whole or not at all."""
        write_atomically(Path(path), self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Summary:
        """Read a file that `save` wrote."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
        return cls.from_bytes(data, str(path))
