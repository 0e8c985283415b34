"""CSV files as streams of Arrow batches, and the conversion of columns of true and false."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partsketch.sources.files.paths import DataFiles

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

    path = data_files.paths[index]
    delimiter = "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","
    return csv.open_csv(
        data_files.filesystem().open_input_stream(path),
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=use_threads),
        parse_options=csv.ParseOptions(delimiter=delimiter),
        convert_options=csv.ConvertOptions(
            column_types=types or {}, include_columns=list(names), strings_can_be_null=True
        ),
    )


def truth_values(column: Any) -> Any:
    """Convert texts to float64, true to 1 and false to 0; pyarrow raises for any other text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    lower = pc.utf8_lower(text)
    numbers = pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", text))
    return numbers.cast(pa.float64())
