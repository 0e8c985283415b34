"""What tells data from other data, so that results kept from an earlier run are not taken for those of other rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import is_remote
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.files.filesystems import reading
from partsketch.sources.files.folders import FolderRows
from partsketch.sources.files.paths import DataFiles
from partsketch.sources.labelled import LabelledSource
from partsketch.sources.memory.arrays import ArraySource
from partsketch.sources.memory.matrices import MatrixRows, MemoryPart, NpyPart
from partsketch.sources.memory.sparse import SparseSource
from partsketch.sources.memory.tables import TableRows
from partsketch.sources.storage import Rows

#: Bytes at either end of a file that are compared; the middle is trusted to change with size or time.
_END_BYTES = 1 << 16
_HASHED_ROWS = 65536


def column_identity(source: Source) -> dict[str, Any]:
    """Return which columns are used, and how, as plain data."""
    values: dict[str, Any] = {
        "features": list(source.feature_names),
        "targets": list(source.target_names),
        "partition values": list(source.partition_values),
        "encoding": asdict(source.encoding),
    }
    if isinstance(source, ColumnSource):
        values["weights"] = source.selection.weights
        values["partition column"] = source.selection.partition
        values["cluster column"] = source.selection.clusters
        values["missing"] = source.missing
    return values


def data_identity(source: Source) -> dict[str, str]:
    """Return what tells the data from other data.

    Files are known by size, time of the last change and a digest of both ends; rows in memory by a digest of all.
    """
    if is_remote(source):
        return {"the collection": source.chunks.fingerprint}
    if isinstance(source, LabelledSource):
        return {**data_identity(source.source), "labels": _digest(source.labels)}
    if isinstance(source, ArraySource):
        return {"content": _digest(source.features, source.targets, source.weights)}
    if isinstance(source, SparseSource):
        matrix = source.features
        parts = (matrix.data, matrix.indices, matrix.indptr, source.targets, source.weights, source.labels)
        return {"content": _digest(*parts, source.incomplete)}
    if isinstance(source, ColumnSource):
        return _rows_identity(source.rows)
    raise _unknown(source.description)


def _unknown(description: str) -> InputError:
    return InputError(
        f"A checkpoint cannot tell whether the data ({description}) have changed since the last run: "
        "use files, a table or an array."
    )


def _rows_identity(rows: Rows) -> dict[str, str]:
    if isinstance(rows, FolderRows):
        # Paths have the names of the folders.
        return _rows_identity(rows.rows)
    if isinstance(rows, TableRows):
        return {"content": table_digest(rows.table)}
    if isinstance(rows, MatrixRows):
        arrays = [part.array for part in rows.parts if isinstance(part, MemoryPart)]
        if arrays:
            return {"content": _digest(*arrays)}
        parts = [part for part in rows.parts if isinstance(part, NpyPart)]
        paths, names = tuple(part.path for part in parts), tuple(part.name for part in parts)
        return file_identities(DataFiles("", paths, names, "NumPy"))
    if rows.opened_files is None:
        raise _unknown(rows.description)
    return file_identities(rows.opened_files)


def file_identities(data_files: DataFiles) -> dict[str, str]:
    """Return for every file its path, size, time of change and a digest of its ends."""
    filesystem = data_files.filesystem()

    def identify(index: int) -> str:
        path = data_files.paths[index]
        with reading(data_files.names[index], data_files.format):
            info = filesystem.get_file_info(path)
            with filesystem.open_input_file(path) as file:
                size = file.size()
                ends = file.read_at(min(size, _END_BYTES), 0)
                ends += file.read_at(min(size, _END_BYTES), max(0, size - _END_BYTES))
        return f"{path}, {size} bytes, {info.mtime_ns}, {hashlib.sha256(ends).hexdigest()}"

    with ThreadPoolExecutor(max_workers=8) as pool:
        found = list(pool.map(identify, range(len(data_files.paths))))
    return {f"file {name}": text for name, text in zip(data_files.names, found, strict=True)}


def _digest(*arrays: NDArray[Any] | None) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype.descr if array.dtype.names else array.dtype.str} {array.shape}".encode())
        for begin in range(0, len(array), _HASHED_ROWS):
            digest.update(np.ascontiguousarray(array[begin : begin + _HASHED_ROWS]).view(np.uint8).data)
    return digest.hexdigest()


class _Sink:
    """A file that hashes what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Do nothing: the digest is read afterwards."""


def table_digest(table: Any) -> str:
    """Hash a table, in whatever chunks it is held."""
    pieces = (table.slice(begin, _HASHED_ROWS) for begin in range(0, table.num_rows, _HASHED_ROWS))
    return stream_digest(table.schema, pieces)


def stream_digest(schema: Any, pieces: Iterable[Any]) -> str:
    """Hash tables one after another; the digest depends on where one ends and the next begins."""
    import pyarrow as pa

    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema.remove_metadata()) as writer:
        for piece in pieces:
            writer.write_table(piece.combine_chunks().replace_schema_metadata(None).unify_dictionaries())
    return sink.digest.hexdigest()


def joint_digest(digests: Iterable[str]) -> str:
    """Return one digest for those of several chunks."""
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()
