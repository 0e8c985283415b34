"""Rows of Parquet files, read row group by row group in small batches."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Self

from partsketch.sources.files.file_rows import TypedFileRows, common_columns
from partsketch.sources.files.filesystems import reading
from partsketch.sources.files.paths import DataFiles
from partsketch.sources.memory.streams import cut
from partsketch.sources.read_ahead import Ahead
from partsketch.sources.storage import Column, RawBlock, clip, schema_columns

# Without a buffer pyarrow reads whole column chunks, which for large row groups is most of the memory of a fit. On
# remote file systems every buffer is a request, so there they are larger.
LOCAL_BUFFER = 1 << 16
REMOTE_BUFFER = 1 << 20

# Batches of this size stay in the processor's cache between decoding and use; but a batch of too few rows spends its
# time on overhead per column.
BATCH_BYTES = 1 << 24
BATCH_UNIT = 4096

#: Columns that a thread should decode at least: fewer take no longer than it takes to hand them over.
_READER_COLUMNS = 4
#: Batches of its columns that such a thread holds at most: the last one it gave, and two for those who sum.
_READER_BATCHES = 3


@dataclass(frozen=True)
class ParquetRows(TypedFileRows):
    """Rows of Parquet files, in the order of the files.

    Attributes
    ----------
    group_sizes
        For every file the number of rows of each row group.
    texts
        Names of the columns that are delivered as text.
    readers
        How many threads decode a row group, some of the columns each.
    """

    group_sizes: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...] = ()
    readers: int = 1

    @property
    def random_access(self) -> bool:
        """Yes: row groups can be skipped."""
        return True

    @cached_property
    def boundaries(self) -> tuple[int, ...]:
        """First rows of the row groups."""
        sizes = [size for groups in self.group_sizes for size in groups if size]
        return tuple(accumulate(sizes[:-1], initial=0))

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> Self:
        """Return the rows with these columns, which must be numbers in every file or text in every file."""
        return replace(super().choose(names, texts), texts=tuple(texts))

    def without(self, names: Collection[str]) -> Self:
        """Return the rows with these columns left out, which are then not decoded."""
        return replace(self, chosen=tuple(name for name in self.chosen if name not in names))

    def decoded_by(self, threads: int) -> Self:
        """Return the same rows, the columns of a row group being shared out among threads."""
        return replace(self, readers=threads)

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield the rows; each call opens the files it needs for itself."""
        first, last = clip(start, stop, self.row_count or 0)
        for index, part in enumerate(self.files):
            begin, end = max(first, part.start or 0), min(last, part.stop or 0)
            if begin < end:
                with reading(part.name, "Parquet"):
                    yield from self._group_batches(index, begin, end, block_rows)

    def _group_batches(self, index: int, first: int, last: int, block_rows: int) -> Iterator[RawBlock]:
        name, file_start = self.data_files.names[index], self.files[index].start or 0
        ends = list(accumulate(self.group_sizes[index], initial=file_start))
        groups = [group for group, (begin, end) in enumerate(pairwise(ends)) if begin < last and end > first]
        texts = [column.name for column in self.schemas[index] if column.name in self.texts and column.kind == "text"]
        # Whole multiples, so that most tiles of rows, which are powers of two, lie within one batch.
        multiples = BATCH_BYTES // (8 * max(1, len(self.chosen))) // BATCH_UNIT
        batch_rows = min(block_rows, BATCH_UNIT * max(1, multiples))

        def batches(names: Sequence[str]) -> Generator[Any, None, None]:
            with _open(self.data_files, index, texts) as file:
                yield from file.iter_batches(batch_rows, groups, columns=list(names), use_threads=False)

        readers = max(1, min(self.readers, len(self.chosen) // _READER_COLUMNS))
        shares = [batches(self.chosen[number::readers]) for number in range(readers)]
        position = ends[groups[0]]
        with closing(shares[0] if readers == 1 else _side_by_side(shares)) as whole:
            for batch in whole:
                yield from cut(batch, self.chosen, position, first, last, block_rows, name, file_start)
                position += batch.num_rows
                if position >= last:
                    return


def _side_by_side(shares: Sequence[Iterator[Any]]) -> Generator[Any, None, None]:
    """Yield batches with the columns of all shares, each of which a thread decodes ahead.

    Shares may be cut in different places: texts are, where their dictionary changes.
    """
    import pyarrow as pa

    with ExitStack() as threads:
        ahead = [threads.enter_context(closing(Ahead(share, _READER_BATCHES))) for share in shares]
        held: list[Any] = [next(share, None) for share in ahead]
        while all(batch is not None for batch in held):
            rows = min(batch.num_rows for batch in held)
            parts = [batch if batch.num_rows == rows else batch.slice(0, rows) for batch in held]
            fields = [field for part in parts for field in part.schema]
            columns = [column for part in parts for column in part.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
            held = [
                next(share, None) if batch.num_rows == rows else batch.slice(rows)
                for share, batch in zip(ahead, held, strict=True)
            ]


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
    groups = tuple(sizes for sizes, _ in footers)
    chosen = common_columns(data_files, schemas)
    return ParquetRows(data_files, tuple(map(sum, groups)), chosen, schemas, groups)


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
