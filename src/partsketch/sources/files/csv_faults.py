"""What is wrong with a CSV file that could not be read: found by reading it again, value by value."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any

from partsketch.sources.files.csv_stream import open_csv, separator_of, texts_as_numbers
from partsketch.sources.files.paths import DataFiles

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_INVALID_ROW = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
_SHOWN = 40
_FIRST_BYTES = 1 << 16
#: What separates values in most files that are called CSV.
SEPARATORS = (",", ";", "\t", "|")


#: Beginnings of what is called CSV and is something else → what it is, and what to do.
_NOT_CSV = {
    b"\xff\xfe": "is UTF-16, as spreadsheets write it: save it as UTF-8",
    b"\xfe\xff": "is UTF-16, as spreadsheets write it: save it as UTF-8",
    b"PAR1": "is a Parquet file: give it the ending .parquet",
    b"ARROW1": "is an Arrow file: give it the ending .arrow",
    b"PK\x03\x04": "is a zip archive or a spreadsheet: save its table as CSV",
    b"\x1f\x8b": "is compressed: give it the ending .csv.gz",
}


def something_else(data_files: DataFiles, index: int) -> str:
    """Return the sentence for a file that is no CSV file by its first bytes, else nothing."""
    with data_files.filesystem().open_input_stream(data_files.paths[index]) as stream:
        beginning = stream.read(8)
    found = [what for sign, what in _NOT_CSV.items() if beginning.startswith(sign)]
    return f"{data_files.names[index]} {found[0]}." if found else ""


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

    name, decimal = data_files.names[index], data_files.csv.decimal
    text_fault = ""
    position = 0
    try:
        types = {column: pa.string() for column in numeric}
        # Only a single thread knows the numbers of lines.
        with open_csv(data_files, index, types, numeric, use_threads=False) as reader:
            for batch in reader:
                found = _first_text(batch, flexible, decimal) if numeric and not text_fault else None
                if found:
                    column, row, text = found
                    place = f"row {file_start + position + row} ({name}, row {position + row})"
                    text_fault = f"Column '{column}' has the text {_shown(text)} in {place} where a number belongs"
                    text_fault += f": {_remedy(text, decimal) or 'correct it or choose features without this column'}."
                position += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        invalid = _INVALID_ROW.search(str(error))
        # A file that is damaged in another way is described by the error that led here.
        if invalid is None:
            return ""
        line, expected, actual = invalid.groups()
        other = other_separator(data_files, index)
        if other:
            return other
        return f"{name} has {actual} values instead of {expected} in line {line}: give every row one value per column."
    return text_fault


def first_text_among_numbers(data_files: DataFiles, index: int, column: str) -> str:
    """Quote the first value that is not a number near the top of a text column that has numbers too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with open_csv(data_files, index, {column: pa.string()}, [column]) as reader:
        batch = reader.read_next_batch()
    values = pc.utf8_trim_whitespace(batch.column(0))
    decimal = data_files.csv.decimal
    found = _first_text(batch, (), decimal)
    if not found:
        return ""
    _, row, text = found
    remedy = _remedy(text, decimal)
    if not remedy and not pc.any(pc.match_substring_regex(values, _NUMBER)).as_py():
        return ""
    if remedy:
        return f"'{column}' has {_shown(text)} in row {row} of {data_files.names[index]}; {remedy}"
    return f"'{column}' has numbers, but {_shown(text)} in row {row} of {data_files.names[index]} is not one"


def other_decimal(data_files: DataFiles, index: int, column: str) -> str:
    """Say that the texts near the top of a column are numbers with another decimal mark, if all of them are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with open_csv(data_files, index, {column: pa.string()}, [column]) as reader:
        texts = pc.drop_null(pc.utf8_trim_whitespace(reader.read_next_batch().column(0)))
    for mark in ",.":
        number = _NUMBER.replace(r"\.", f"[{mark}]")
        marked = texts.filter(pc.match_substring(texts, mark))
        if mark != data_files.csv.decimal and len(marked) and pc.all(pc.match_substring_regex(texts, number)).as_py():
            return f"'{column}' has {_shown(marked[0].as_py())}; {_remedy(marked[0].as_py(), data_files.csv.decimal)}"
    return ""


def other_separator(data_files: DataFiles, index: int) -> str:
    """Say which other separator the first line of a file has, if it has none of the one that is looked for."""
    with data_files.filesystem().open_input_stream(data_files.paths[index]) as stream:
        line = bytes(stream.read(_FIRST_BYTES)).split(b"\n")[0].decode("utf-8", "replace")
    used = separator_of(data_files, index)
    if used in line:
        return ""
    counts = {mark: line.count(mark) for mark in SEPARATORS if mark != used and mark in line}
    if not counts:
        return ""
    best = max(counts, key=lambda mark: counts[mark])
    spelled = "tab" if best == "\t" else best
    return (
        f"The first line of {data_files.names[index]} has no {_shown(used)} but {_shown(best)}: say that it separates "
        f"the values with CsvFiles(..., separator={best!r}) (--separator {shlex.quote(spelled)})."
    )


def _remedy(text: str, decimal: str) -> str:
    """Say what to do about a number that is written with another decimal mark."""
    for mark in ",.":
        if mark != decimal and re.fullmatch(_NUMBER.replace(r"\.", re.escape(mark)), text.strip()):
            return f"if {mark!r} is its decimal mark, say so with CsvFiles(..., decimal={mark!r}) (--decimal {mark!r})"
    return ""


def _first_text(batch: Any, flexible: Collection[str], decimal: str) -> tuple[str, int, str] | None:
    """Return column, row and value of the first text that does not convert to a number."""
    best: tuple[str, int, str] | None = None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _converts(column, name in flexible, decimal):
            continue
        low, high = 0, len(column)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _converts(column[low:middle], name in flexible, decimal) else (low, middle)
        if best is None or low < best[1]:
            best = name, low, column[low].as_py()
    return best


def _converts(column: Any, flexible: bool, decimal: str) -> bool:
    import pyarrow as pa

    try:
        texts_as_numbers(column, decimal, flexible)
    except pa.ArrowInvalid:
        return False
    return True


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
