"""CSV files as streams of Arrow batches, and the conversion of columns of true and false."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from partsketch.sources.files.paths import COMPRESSED, DataFiles

# pyarrow may hold 32 blocks that are read ahead.
BLOCK_BYTES = 1 << 20


def open_csv(
    data_files: DataFiles,
    index: int,
    types: dict[str, Any] | None = None,
    names: Sequence[str] = (),
    use_threads: bool = True,
) -> Any:
    """Open a CSV file as a stream of batches of these columns (none: all) with these types."""
    from pyarrow import csv

    read_options, parse_options, convert_options = csv_options(data_files, index, types, names)
    read_options.use_threads = use_threads
    return csv.open_csv(
        data_files.filesystem().open_input_stream(data_files.paths[index]),
        read_options,
        parse_options,
        convert_options,
    )


def csv_options(
    data_files: DataFiles, index: int, types: dict[str, Any] | None, names: Sequence[str]
) -> tuple[Any, Any, Any]:
    """Return how a file is read, parsed and converted."""
    from pyarrow import csv

    form = data_files.csv
    return (
        csv.ReadOptions(
            block_size=BLOCK_BYTES,
            column_names=list(form.names),
            autogenerate_column_names=not form.header and not form.names,
        ),
        csv.ParseOptions(delimiter=separator_of(data_files, index)),
        csv.ConvertOptions(
            column_types=types or {},
            include_columns=list(names),
            strings_can_be_null=True,
            decimal_point=form.decimal,
        ),
    )


def separator_of(data_files: DataFiles, index: int) -> str:
    """Return what separates the values of a file."""
    stem, ending = posixpath.splitext(data_files.paths[index].lower())
    is_tabbed = (stem if ending in COMPRESSED else stem + ending).endswith(".tsv")
    return data_files.csv.separator or ("\t" if is_tabbed else ",")


def texts_as_numbers(column: Any, decimal: str, flexible: bool) -> Any:
    """Convert texts to float64, true to 1 and false to 0 where it is `flexible`; pyarrow raises for any other text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    if flexible:
        lower = pc.utf8_lower(text)
        text = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", text))
    if decimal != ".":
        # A point is no decimal mark here: it may not become one.
        text = pc.replace_substring(pc.replace_substring(text, ".", "?"), decimal, ".")
    return text.cast(pa.float64())
