"""Rows of Feather files (Arrow IPC), read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from partsketch.sources.base import FilePart
from partsketch.sources.files.parquet import check_kinds_of_files, declared_columns
from partsketch.sources.files.paths import DataFiles, check_same_columns, reading
from partsketch.sources.memory.tables import cut
from partsketch.sources.storage import Column, RawBlock, StorageCapabilities, clip, schema_columns


@dataclass(frozen=True)
class FeatherRows(StorageCapabilities):
    """Rows of Feather files, in the order of the files; only whole files can be skipped."""

    data_files: DataFiles
    sizes: tuple[int, ...]
    schemas: tuple[tuple[Column, ...], ...]
    chosen: tuple[str, ...]
    replayable: bool = True
    random_access: bool = False
    boundaries: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the first file, each of the type it has in the first file that declares one."""
        return declared_columns(self.schemas)

    @property
    def row_count(self) -> int:
        """Number of rows of all files."""
        return sum(self.sizes)

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The files and their rows."""
        ends = list(accumulate(self.sizes, initial=0))
        return tuple(map(FilePart, self.data_files.names, ends[:-1], ends[1:]))

    @property
    def description(self) -> str:
        """The files in one phrase."""
        return self.data_files.description

    @property
    def opened_files(self) -> DataFiles:
        """The files that are read."""
        return self.data_files

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> FeatherRows:
        """Return the rows with these columns, which must be numbers in every file or text in every file."""
        check_kinds_of_files(self.data_files.names, self.schemas, names)
        return replace(self, chosen=tuple(names))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield the rows; each call opens the files it needs for itself."""
        first, last = clip(start, stop, self.row_count)
        for index, part in enumerate(self.files):
            begin, end = part.start or 0, part.stop or 0
            if max(begin, first) >= min(end, last):
                continue
            with reading(part.name, "Feather"):
                reader = _open(self.data_files, index, self._fields(index))
                position = begin
                for number in range(reader.num_record_batches):
                    if position >= last:
                        break
                    batch = reader.get_batch(number)
                    yield from cut(batch, self.chosen, position, first, last, block_rows, part.name, begin)
                    position += batch.num_rows

    def counted(self) -> FeatherRows:
        """Return these rows: the files tell their number."""
        return self

    def explain_text(self, name: str) -> str:
        """Say nothing: types in Feather are declared."""
        return ""

    def _fields(self, index: int) -> list[int]:
        position = {column.name: i for i, column in enumerate(self.schemas[index])}
        return sorted(position[name] for name in self.chosen)


def feather_rows(data_files: DataFiles) -> FeatherRows:
    """Return the rows of Feather files from their schemas and the headers of their batches."""
    sizes, schemas = [], []
    for index, name in enumerate(data_files.names):
        with reading(name, "Feather"):
            schemas.append(schema_columns(_open(data_files, index, []).schema))
            sizes.append(_count_rows(data_files, index))
    names = [[column.name for column in schema] for schema in schemas]
    for file_name, columns in zip(data_files.names, names, strict=True):
        check_same_columns(file_name, columns, data_files.names[0], names[0])
    return FeatherRows(data_files, tuple(sizes), tuple(schemas), tuple(names[0]))


def _open(data_files: DataFiles, index: int, fields: list[int]) -> Any:
    from pyarrow import ipc

    file = data_files.filesystem().open_input_file(data_files.paths[index])
    return ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields, use_threads=False))


def _count_rows(data_files: DataFiles, index: int) -> int:
    """Count the rows by the headers of the batches; the reader itself can do so in new versions of Arrow only."""
    from pyarrow import dataset

    fragment = dataset.IpcFileFormat().make_fragment(data_files.paths[index], filesystem=data_files.filesystem())
    return int(fragment.count_rows())
