"""Rows of CSV files, read as a stream of small blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from partsketch.common.errors import InputError, UnreadableError
from partsketch.sources.files import csv_faults
from partsketch.sources.files.csv_chunks import csv_batches
from partsketch.sources.files.csv_stream import open_csv, texts_as_numbers
from partsketch.sources.files.file_rows import FileRows, declared_columns
from partsketch.sources.files.filesystems import reading
from partsketch.sources.files.paths import DataFiles, check_same_columns
from partsketch.sources.storage import DATES, Column, schema_columns, type_in_words


@dataclass(frozen=True)
class CsvRows(FileRows):
    """Rows of CSV files, in the order of the files.

    Attributes
    ----------
    columns
        Columns with the types that the first block of the first file with values suggests.
    booleans
        Columns that looked like true and false there: read as text, for numbers may follow.
    first_file
        Index of the first file with rows.
    texts
        Columns that are delivered as text.
    times
        Arrow types of the columns of dates and times.
    """

    columns: tuple[Column, ...]
    booleans: frozenset[str]
    first_file: int
    texts: frozenset[str] = frozenset()
    times: tuple[tuple[str, Any], ...] = ()

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> CsvRows:
        """Return the rows with these columns."""
        return replace(self, chosen=tuple(names), texts=frozenset(texts))

    def explain_text(self, name: str) -> str:
        """Quote the first text of a column that also has numbers."""
        return csv_faults.first_text_among_numbers(self.data_files, self.first_file, name)

    def other_decimal(self, name: str) -> str:
        """Quote a number with another decimal mark, if all values of a column of text are such numbers."""
        return csv_faults.other_decimal(self.data_files, self.first_file, name)

    def _file_batches(self, index: int, file_start: int) -> Iterator[Any]:
        import pyarrow as pa

        as_text = self.texts | (self.booleans & frozenset(self.chosen))
        types = {name: pa.string() if name in as_text else pa.float64() for name in self.chosen}
        times = {name: kind for name, kind in self.times if name in types and name not in as_text}
        types |= times
        flexible = as_text - self.texts
        name = self.data_files.names[index]
        try:
            with reading(name, "CSV"):
                for batch in csv_batches(self.data_files, index, types, self.chosen):
                    yield _with_numbers(batch, flexible, self.data_files.csv.decimal)
        except InputError as error:
            numeric = [column for column in self.chosen if column not in self.texts and column not in times]
            fault = csv_faults.find_fault(self.data_files, index, file_start, numeric, flexible)
            raise (UnreadableError(fault) if fault else error) from error


def csv_rows(data_files: DataFiles) -> CsvRows:
    """Return the rows of CSV files from their headers and the first block of values."""
    schemas: list[tuple[Column, ...]] = []
    first_file, header = -1, None
    times: dict[str, Any] = {}
    if not data_files.csv.header:
        data_files = _with_names(data_files)
    for index, name in enumerate(data_files.names):
        try:
            with reading(name, "CSV"), open_csv(data_files, index, use_threads=False) as reader:
                schema, names = reader.schema, reader.schema.names
                has_rows = first_file >= 0 or any(batch.num_rows for batch in reader)
        except InputError as error:
            fault = _something_else(data_files, index)
            if not fault and "Empty CSV file" in str(error):
                raise UnreadableError(f"{name} has no rows.") from error
            fault = fault or csv_faults.find_fault(data_files, index, 0, (), frozenset())
            raise (UnreadableError(fault) if fault else error) from error
        if len(names) == 1 and (other := _something_else(data_files, index)):
            raise UnreadableError(other)
        if len(names) == 1 and (other := csv_faults.other_separator(data_files, index)):
            raise InputError(other)
        header = header or names
        check_same_columns(name, names, data_files.names[0], header)
        if has_rows:
            first_file = index if first_file < 0 else first_file
            schemas.append(schema_columns(schema))
            for field in schema:
                if field.name not in times and type_in_words(field.type) in DATES:
                    times[field.name] = _time_type(field.type)
    if first_file < 0:
        raise InputError(f"{' and '.join(data_files.names)} has no rows.")
    columns = tuple(
        replace(column, type_name="text that is not UTF-8") if column.type_name == "binary" else column
        for column in declared_columns(schemas)
    )
    booleans = frozenset(column.name for column in columns if column.type_name == "bool")
    told = tuple((column.name, times[column.name]) for column in columns if column.type_name in DATES)
    names = tuple(column.name for column in columns)
    return CsvRows(data_files, None, names, columns, booleans, first_file, times=told)


def _something_else(data_files: DataFiles, index: int) -> str:
    """Return the sentence for a file that is no CSV file; nothing for one that cannot be opened, which has its own."""
    with suppress(OSError):
        return csv_faults.something_else(data_files, index)
    return ""


def _time_type(found: Any) -> Any:
    """Return the type for a column of dates and times, given that of its first rows: others may have fractions."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(found):
        return pa.timestamp("ns" if found.unit == "ns" else "us", found.tz)
    return pa.timestamp("us") if types.is_date(found) else found


def _with_names(data_files: DataFiles) -> DataFiles:
    """Return files without a header with names for the columns, as many as the first file has."""
    with suppress(InputError), reading(data_files.names[0], "CSV"), open_csv(data_files, 0) as reader:
        names = tuple(f"c{number}" for number in range(len(reader.schema.names)))
        return replace(data_files, csv=replace(data_files.csv, names=names))
    # What is wrong with the file is said when it is read.
    return data_files


def _with_numbers(batch: Any, flexible: frozenset[str], decimal: str) -> Any:
    for name in flexible:
        position = batch.schema.get_field_index(name)
        batch = batch.set_column(position, name, texts_as_numbers(batch.column(position), decimal, True))
    return batch
