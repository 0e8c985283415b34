"""How CSV files are written: their separator, decimal mark and header."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from partsketch.common.errors import InputError

#: What people call separators that are hard to type.
_NAMED = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|"}


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written.

    Attributes
    ----------
    separator
        One character between values; None: a tab in .tsv files, else a comma.
    decimal
        The mark before the decimals of a number.
    header
        Whether the first line has the names of the columns.
    names
        The names of the columns of files without a header, once they are counted.
    """

    separator: str | None = None
    decimal: str = "."
    header: bool = True
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.separator is not None:
            object.__setattr__(self, "separator", _NAMED.get(self.separator, self.separator))
        separator, decimal = self.separator, self.decimal
        if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in "\r\n\"'"):
            raise InputError(
                f"separator (--separator) is {separator!r}: it must be one character, such as ';' or 'tab'."
            )
        if len(decimal) != 1 or not decimal.isascii() or decimal.isalnum() or decimal in " \t\r\n\"'+-":
            raise InputError(f"decimal (--decimal) is {decimal!r}: it must be one mark, such as ','.")
        if decimal == separator or (separator is None and decimal == ","):
            raise InputError(
                f"decimal (--decimal) is {decimal!r}, which separates the values too: give another separator, such as "
                "';' (--separator ';')."
            )

    @property
    def is_plain(self) -> bool:
        """Whether nothing was said of it."""
        return self.separator is None and self.decimal == "." and self.header

    @property
    def description(self) -> str:
        """What was said of it in one phrase; empty for nothing."""
        parts = [
            "" if self.separator is None else f"separator {self.separator!r}",
            "" if self.decimal == "." else f"decimal {self.decimal!r}",
            "" if self.header else "no header",
        ]
        return ", ".join(part for part in parts if part)


#: As most CSV files are written.
PLAIN = CsvFormat()


@dataclass(frozen=True)
class CsvFiles:
    r"""CSV files that are not written with commas, points and a header: data wherever paths are.

    Parameters
    ----------
    paths
        A path, folder, glob or URI, or a list of them; "-" is the standard input.
    separator
        The character between values, such as ";"; None: a tab in .tsv files, else a comma.
    decimal
        The mark before the decimals of a number.
    header
        Whether the first line has the names of the columns; otherwise they are c0, c1, ...

    Examples
    --------
    >>> import partsketch as ps, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = path.write_text("1,5;2,0\n2,5;4,0\n4,5;8,0\n")
    >>> model = ps.fit(ps.CsvFiles(path, separator=";", decimal=",", header=False), target="c1")
    >>> round(float(model.coefficients[0, 0]), 6)
    2.0
    """

    paths: Any
    separator: str | None = None
    decimal: str = "."
    header: bool = True
    format: CsvFormat = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", CsvFormat(self.separator, self.decimal, bool(self.header)))
