"""What is wrong with a CSV file that could not be read: found by reading it again, value by value."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from partsketch.sources.files.csv_stream import open_csv, truth_values
from partsketch.sources.files.paths import DataFiles

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INVALID_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_SHOWN = 40


def find_fault(
    data_files: DataFiles, index: int, file_start: int, numeric: Sequence[str], flexible: Collection[str]
) -> str:
    """Return the sentence for the first row with a wrong number of values, else with text for a number, else nothing.

    Parameters
    ----------
    file_start
        Number of the file's first row in the source.
    numeric
        Columns that should hold numbers.
    flexible
        Those of them that may also hold true and false.
    """
    import pyarrow as pa

    name = data_files.names[index]
    text_fault = ""
    position = 0
    try:
        types = {column: pa.string() for column in numeric}
        # Only a single thread knows the numbers of lines.
        with open_csv(data_files, index, types, numeric, use_threads=False) as reader:
            for batch in reader:
                found = _first_text(batch, flexible) if numeric and not text_fault else None
                if found:
                    column, row, text = found
                    place = f"row {file_start + position + row} ({name}, row {position + row})"
                    text_fault = f"Column '{column}' has the text {_shown(text)} in {place} where a number belongs"
                position += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        invalid = _INVALID_ROW.search(str(error))
        # A file that is damaged in another way is described by the error that led here.
        if invalid is None:
            return ""
        line, expected, actual = invalid.groups()
        return f"{name} has {actual} values instead of {expected} in line {line}: give every row one value per column."
    return f"{text_fault}: correct it or choose features without this column." if text_fault else ""


def first_text_among_numbers(data_files: DataFiles, index: int, column: str) -> str:
    """Quote the first value that is not a number near the top of a text column that has numbers too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with open_csv(data_files, index, {column: pa.string()}, [column]) as reader:
        batch = reader.read_next_batch()
    values = pc.utf8_trim_whitespace(batch.column(0))
    found = _first_text(batch, ())
    if not found or not pc.any(pc.match_substring_regex(values, _NUMBER)).as_py():
        return ""
    _, row, text = found
    return f"'{column}' has numbers, but {_shown(text)} in row {row} of {data_files.names[index]} is not one"


def _first_text(batch: Any, flexible: Collection[str]) -> tuple[str, int, str] | None:
    """Return column, row and value of the first text that does not convert to a number."""
    best: tuple[str, int, str] | None = None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _converts(column, name in flexible):
            continue
        low, high = 0, len(column)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _converts(column[low:middle], name in flexible) else (low, middle)
        if best is None or low < best[1]:
            best = name, low, column[low].as_py()
    return best


def _converts(column: Any, flexible: bool) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if flexible:
            truth_values(column)
        else:
            pc.utf8_trim_whitespace(column).cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
