"""What rows of files have in common, whatever the format; and files that another package opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

from partsketch.common.errors import InputError, PartsketchError, UnreadableError
from partsketch.sources.base import FilePart
from partsketch.sources.files.filesystems import reading
from partsketch.sources.files.paths import DataFiles, check_same_columns
from partsketch.sources.memory.streams import cut
from partsketch.sources.opener import Opener, opener_named
from partsketch.sources.storage import Column, RawBlock, StorageCapabilities, schema_columns


@dataclass(frozen=True)
class FileRows(StorageCapabilities):
    """Rows of files, in the order of the files; whole files can be skipped once their rows are counted.

    Attributes
    ----------
    sizes
        Number of rows of each file; None until they are counted.
    chosen
        Names of the delivered columns.
    """

    data_files: DataFiles
    sizes: tuple[int, ...] | None
    chosen: tuple[str, ...]

    @property
    def random_access(self) -> bool:
        """No: the rows of a file that lie before must be read first."""
        return False

    @cached_property
    def row_count(self) -> int | None:
        """Number of rows of all files, once counted."""
        return None if self.sizes is None else sum(self.sizes)

    @cached_property
    def files(self) -> tuple[FilePart, ...]:
        """The files and, once counted, their rows."""
        if self.sizes is None:
            return tuple(FilePart(name, None, None) for name in self.data_files.names)
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

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield the rows; whole files before them are skipped once they are counted, other rows are read."""
        position = 0
        for index, name in enumerate(self.data_files.names):
            if stop is not None and position >= stop:
                return
            if self.sizes is not None and position + self.sizes[index] <= start:
                position += self.sizes[index]
                continue
            file_start = position
            for batch in self._file_batches(index, file_start):
                yield from cut(batch, self.chosen, position, start, stop, block_rows, name, file_start)
                position += batch.num_rows
                if stop is not None and position >= stop:
                    break

    def _file_batches(self, index: int, file_start: int) -> Iterator[Any]:
        """Yield the record batches of one file, whose first row has the number `file_start`."""
        raise NotImplementedError

    def counted(self) -> Self:
        """Return these rows with their number known: the files are read once if need be."""
        if self.sizes is not None:
            return self
        narrow = replace(self, chosen=self.chosen[:1])
        indices = range(len(self.data_files.names))
        return replace(
            self, sizes=tuple(sum(batch.num_rows for batch in narrow._file_batches(index, 0)) for index in indices)
        )


@dataclass(frozen=True)
class TypedFileRows(FileRows):
    """Rows of files that declare the types of their columns: `schemas` has those of each file."""

    schemas: tuple[tuple[Column, ...], ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the first file, each of the type it has in the first file that declares one."""
        return declared_columns(self.schemas)

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> Self:
        """Return the rows with these columns, which must be numbers in every file or text in every file."""
        check_kinds_of_files(self.data_files.names, self.schemas, names)
        return replace(self, chosen=tuple(names))


@dataclass(frozen=True)
class OpenedFileRows(TypedFileRows):
    """Rows of files that the opener of another package reads."""

    opener: Opener

    def _file_batches(self, index: int, file_start: int) -> Iterator[Any]:
        yield from _reader(self.opener, self.data_files, index)


def opened_file_rows(data_files: DataFiles) -> OpenedFileRows:
    """Return the rows of files of another package's format, from the schema of each."""
    opener = opener_named(data_files.format)
    schemas = []
    for index in range(len(data_files.names)):
        schemas.append(schema_columns(next(_reader(opener, data_files, index)).schema))
    chosen = common_columns(data_files, schemas)
    return OpenedFileRows(data_files, None, chosen, tuple(schemas), opener)


def _reader(opener: Opener, data_files: DataFiles, index: int) -> Iterator[Any]:
    """Yield the record batches of a file, at least one; whatever goes wrong is told with the name of the file."""
    import pyarrow as pa

    name = data_files.names[index]
    try:
        with (
            reading(name, opener.name),
            data_files.filesystem().open_input_file(data_files.paths[index]) as file,
        ):
            opened = opener.open_file(file)
            reader = opened if isinstance(opened, pa.RecordBatchReader) else pa.table(opened).to_reader()
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
    except PartsketchError:
        raise
    # Another package may raise anything.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0].rstrip(". ")
        raise UnreadableError(f"{name} cannot be read as {opener.name}: {type(error).__name__}: {reason}.") from error


def common_columns(data_files: DataFiles, schemas: Sequence[Sequence[Column]]) -> tuple[str, ...]:
    """Return the names of the columns, which must be the same in all files."""
    names = [[column.name for column in schema] for schema in schemas]
    for file_name, columns in zip(data_files.names, names, strict=True):
        check_same_columns(file_name, columns, data_files.names[0], names[0])
    return tuple(names[0])


def declared_columns(schemas: Sequence[Sequence[Column]]) -> tuple[Column, ...]:
    """Return the columns of the first schema, each as the first schema has it in which it is not of null type.

    A file in which a column has no value at all may declare it as null, and says nothing about the others.
    """
    declared: dict[str, Column] = {}
    for schema in schemas:
        for column in schema:
            if column.name not in declared or (declared[column.name].is_null and not column.is_null):
                declared[column.name] = column
    return tuple(declared[column.name] for column in schemas[0])


def check_kinds_of_files(files: Sequence[str], schemas: Sequence[Sequence[Column]], wanted: Sequence[str]) -> None:
    """Refuse files of which one has numbers where another has text."""
    declaring: dict[str, tuple[str, Column]] = {}
    for file, schema in zip(files, schemas, strict=True):
        for column in schema:
            if column.name in wanted and not column.is_null:
                first_file, first = declaring.setdefault(column.name, (file, column))
                check_same_kinds(file, [column], first_file, [first])


def check_same_kinds(name: str, schema: Sequence[Column], first_name: str, wanted: Sequence[Column]) -> None:
    """Refuse a file in which a column holds text where the first file has numbers, or the other way round."""
    found = {column.name: column for column in schema}
    for column in wanted:
        other = found[column.name]
        if other.kind != column.kind and not other.is_null:
            raise InputError(
                f"Column '{column.name}' is {other.type_name} in {name} but {column.type_name} in {first_name}: "
                "give it the same type in all files."
            )
