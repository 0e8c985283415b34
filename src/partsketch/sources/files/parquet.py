"""Rows of Parquet files, read row group by row group in small batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.base import FilePart
from partsketch.sources.files.paths import DataFiles, check_same_columns, reading
from partsketch.sources.memory.tables import cut
from partsketch.sources.storage import Column, RawBlock, StorageCapabilities, clip, schema_columns

# Without a buffer pyarrow reads whole column chunks, which for large row groups is most of the memory of a fit. On
# remote file systems every buffer is a request, so there they are larger.
LOCAL_BUFFER = 1 << 16
REMOTE_BUFFER = 1 << 20

# Batches of this size stay in the processor's cache between decoding and use; but a batch of too few rows spends its
# time on overhead per column.
BATCH_BYTES = 1 << 24
BATCH_UNIT = 4096


@dataclass(frozen=True)
class ParquetRows(StorageCapabilities):
    """Rows of Parquet files, in the order of the files.

    Attributes
    ----------
    group_sizes
        For every file the number of rows of each row group.
    schemas
        For every file its columns.
    chosen, texts
        Names of the delivered columns, and of those that are delivered as text.
    """

    data_files: DataFiles
    group_sizes: tuple[tuple[int, ...], ...]
    schemas: tuple[tuple[Column, ...], ...]
    chosen: tuple[str, ...]
    texts: tuple[str, ...] = ()
    replayable: bool = True
    random_access: bool = True

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the first file, each of the type it has in the first file that declares one."""
        return declared_columns(self.schemas)

    @cached_property
    def row_count(self) -> int:
        """Number of rows of all files."""
        return sum(map(sum, self.group_sizes))

    @cached_property
    def boundaries(self) -> tuple[int, ...]:
        """First rows of the row groups."""
        sizes = [size for groups in self.group_sizes for size in groups if size]
        return tuple(accumulate(sizes[:-1], initial=0))

    @cached_property
    def files(self) -> tuple[FilePart, ...]:
        """The files and their rows."""
        ends = list(accumulate(map(sum, self.group_sizes), initial=0))
        return tuple(map(FilePart, self.data_files.names, ends[:-1], ends[1:]))

    @property
    def description(self) -> str:
        """The files in one phrase."""
        return self.data_files.description

    @property
    def opened_files(self) -> DataFiles:
        """The files that are read."""
        return self.data_files

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> ParquetRows:
        """Return the rows with these columns, which must be numbers in every file or text in every file."""
        check_kinds_of_files(self.data_files.names, self.schemas, names)
        return replace(self, chosen=tuple(names), texts=tuple(texts))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield the rows; each call opens the files it needs for itself."""
        first, last = clip(start, stop, self.row_count)
        for index, part in enumerate(self.files):
            begin, end = max(first, part.start or 0), min(last, part.stop or 0)
            if begin < end:
                with reading(part.name, "Parquet"):
                    yield from self._file_batches(index, begin, end, block_rows)

    def counted(self) -> ParquetRows:
        """Return these rows: the files tell their number."""
        return self

    def explain_text(self, name: str) -> str:
        """Say nothing: types in Parquet are declared."""
        return ""

    def _file_batches(self, index: int, first: int, last: int, block_rows: int) -> Iterator[RawBlock]:
        name, file_start = self.data_files.names[index], self.files[index].start or 0
        ends = list(accumulate(self.group_sizes[index], initial=file_start))
        groups = [group for group, (begin, end) in enumerate(pairwise(ends)) if begin < last and end > first]
        texts = [column.name for column in self.schemas[index] if column.name in self.texts and column.kind == "text"]
        # Whole multiples, so that most tiles of rows, which are powers of two, lie within one batch.
        multiples = BATCH_BYTES // (8 * len(self.chosen)) // BATCH_UNIT
        batch_rows = min(block_rows, BATCH_UNIT * max(1, multiples))
        with _open(self.data_files, index, texts) as file:
            position = ends[groups[0]]
            for batch in file.iter_batches(batch_rows, groups, columns=list(self.chosen), use_threads=False):
                yield from cut(batch, self.chosen, position, first, last, block_rows, name, file_start)
                position += batch.num_rows
                if position >= last:
                    return


def parquet_rows(data_files: DataFiles) -> ParquetRows:
    """Return the rows of Parquet files from their footers alone."""

    def footer(index: int) -> tuple[tuple[int, ...], tuple[Column, ...]]:
        with reading(data_files.names[index], "Parquet"), _open(data_files, index, ()) as file:
            metadata = file.metadata
            sizes = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
            return sizes, schema_columns(file.schema_arrow)

    with ThreadPoolExecutor(max_workers=8) as pool:
        footers = list(pool.map(footer, range(len(data_files.paths))))
    schemas = tuple(schema for _, schema in footers)
    names = [[column.name for column in schema] for schema in schemas]
    for file_name, columns in zip(data_files.names, names, strict=True):
        check_same_columns(file_name, columns, data_files.names[0], names[0])
    return ParquetRows(data_files, tuple(sizes for sizes, _ in footers), schemas, tuple(names[0]))


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


def _open(data_files: DataFiles, index: int, texts: Sequence[str]) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(
        data_files.paths[index],
        filesystem=data_files.filesystem(),
        memory_map=False,
        pre_buffer=False,
        buffer_size=LOCAL_BUFFER if data_files.is_local else REMOTE_BUFFER,
        read_dictionary=list(texts),
    )
