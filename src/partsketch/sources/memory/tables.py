"""Rows of Arrow tables and streams, and of everything that offers itself as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import with_codes
from partsketch.sources.memory.streams import Once, Reopened, StreamRows, called
from partsketch.sources.storage import Column, RawBlock, Rows, StorageCapabilities, clip, schema_columns


def table_rows(data: Any) -> Rows:
    """Return the rows of an object that offers the Arrow C stream interface, without reading a stream."""
    import pyarrow as pa

    modules = {base.__module__.partition(".")[0] for base in type(data).__mro__}
    try:
        if "pandas" in modules:
            if not hasattr(data, "columns"):
                raise InputError("A pandas Series is not a table: pass a DataFrame (to_frame()).")
            # The stream interface would add the index as a column, and so as a feature.
            return TableRows(pa.Table.from_pandas(data, preserve_index=False))
        if isinstance(data, pa.RecordBatch):
            return TableRows(pa.Table.from_batches([data]))
        if isinstance(data, pa.Table):
            return TableRows(data)
        if "polars" in modules:
            return TableRows(pa.table(data))
        if modules & {"duckdb", "_duckdb"}:
            return StreamRows(Reopened(partial(_open_stream, data), "DuckDB relation"), _open_stream(data).schema)
        reader = data if isinstance(data, pa.RecordBatchReader) else _open_stream(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"The {type(data).__name__} cannot be read as a table: {reason}.") from error
    return StreamRows(Once(reader), reader.schema)


def other_rows(data: Any) -> Rows | None:
    """Return the rows of what becomes a table or a stream when asked, else None.

    These are a dict, a Dataset, a LazyFrame, and a function that gives a new stream whenever it is called.
    """
    import pyarrow as pa

    try:
        if isinstance(data, dict):
            return TableRows(pa.table(data))
        modules = {base.__module__.partition(".")[0] for base in type(data).__mro__}
        if "pyarrow" in modules and hasattr(data, "scanner"):
            # Its columns of folders are among the others; no more than some batches are in memory.
            return StreamRows(Reopened(partial(_scanned, data), "Arrow dataset"), data.schema)
        if "polars" in modules and hasattr(data, "collect"):
            return _lazy_rows(data)
        if callable(data) and not isinstance(data, type):
            return called(data, _reader_of)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"The {type(data).__name__} cannot be read as a table: {reason}.") from error
    return None


def _lazy_rows(frame: Any) -> Rows:
    """Return the rows of a LazyFrame, as a stream where polars can give one."""
    import pyarrow as pa

    if not hasattr(frame, "collect_batches"):
        return TableRows(pa.table(frame.collect()))
    fields = pa.table(frame.limit(0).collect()).schema
    schema = pa.schema([pa.field(field.name, field.type) for field in fields])
    return StreamRows(Reopened(partial(_collected, frame, schema), "LazyFrame"), schema)


def _collected(frame: Any, schema: Any) -> Any:
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        for frame_batch in frame.collect_batches(maintain_order=True):
            for batch in pa.table(frame_batch).to_batches():
                yield pa.RecordBatch.from_arrays(batch.columns, names=schema.names)

    return pa.RecordBatchReader.from_batches(schema, batches())


def _reader_of(given: Any) -> Any:
    """Return the stream that a function gave."""
    import pyarrow as pa

    if isinstance(given, pa.RecordBatchReader):
        return given
    if isinstance(given, pa.Table):
        return given.to_reader()
    if not hasattr(given, "__arrow_c_stream__"):
        raise InputError(f"The function gave a {type(given).__name__}: it must give an Arrow stream at every call.")
    return _open_stream(given)


def _scanned(data: Any) -> Any:
    return data.scanner().to_reader()


def _open_stream(data: Any) -> Any:
    import pyarrow as pa

    return pa.RecordBatchReader.from_stream(data)


@dataclass(frozen=True)
class TableRows(StorageCapabilities):
    """Rows of an Arrow table in memory.

    Attributes
    ----------
    coded_texts
        Columns of text whose codes have been found: once for all passes.
    """

    table: Any
    coded_texts: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the table."""
        return schema_columns(self.table.schema)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    @property
    def description(self) -> str:
        """The table in one phrase."""
        return f"table of {self.row_count} rows"

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> TableRows:
        """Return the table with these columns; texts of few values as codes, for they are looked at in every pass."""
        table = self.table.select(list(names))
        for name in (name for name in names if name in texts):
            if name not in self.coded_texts:
                self.coded_texts[name] = with_codes(self.table[name])
            table = table.set_column(table.schema.get_field_index(name), name, self.coded_texts[name])
        return replace(self, table=table)

    def __getstate__(self) -> dict[str, Any]:
        # The table itself has the codes that its rows need where they are sent.
        return {"table": self.table, "coded_texts": {}}

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield slices of the table."""
        first, last = clip(start, stop, self.row_count)
        for batch in self.table.slice(first, last - first).to_batches(max_chunksize=block_rows):
            if batch.num_rows:
                yield RawBlock(first, batch.num_rows, batch.columns)
                first += batch.num_rows

    def sliced(self, start: int, stop: int | None) -> TableRows:
        """Return rows start to stop, numbered from zero, without the rest of the table behind them."""
        import pyarrow as pa

        sink = pa.BufferOutputStream()
        part = self.table.slice(start, None if stop is None else stop - start)
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part)
        return TableRows(pa.ipc.open_stream(sink.getvalue()).read_all())
