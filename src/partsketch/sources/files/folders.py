"""Columns that stand in the names of folders, as in year=2024/month=01, beside those of the files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, Self
from urllib.parse import unquote

from partsketch.common.errors import InputError
from partsketch.sources.base import FilePart
from partsketch.sources.files.paths import DataFiles
from partsketch.sources.storage import Column, Kind, RawBlock, Rows, StorageCapabilities, clip

#: What Hive and Spark call a folder of missing values.
MISSING = "__HIVE_DEFAULT_PARTITION__"
_IN_NAME_ALONE = "stands in the name of the folder alone"
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")


@dataclass(frozen=True)
class FolderColumn:
    """A column of the names of folders.

    Attributes
    ----------
    texts
        For every file what stands in the name of its folder, None where it is missing.
    values
        The same as numbers or dates where all of them are.
    kind, type_name
        As in `Column`.
    named
        Whether its folders were named when the files were asked for, and are all the same: then it is a feature only
        if that is said.
    """

    name: str
    texts: tuple[str | None, ...]
    values: tuple[int | float | str | date | None, ...]
    kind: Kind
    type_name: str
    named: bool

    @property
    def column(self) -> Column:
        """What a storage says of it."""
        return Column(self.name, self.kind, self.type_name, _IN_NAME_ALONE if self.named else "")

    def repeated(self, index: int, length: int, as_text: bool) -> Any:
        """Return the value of a file in so many rows, as an Arrow array."""
        import pyarrow as pa

        value = self.texts[index] if as_text else self.values[index]
        if as_text or self.kind == "text":
            codes = pa.nulls(length, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), length)
            return pa.DictionaryArray.from_arrays(codes, pa.array([value or ""], pa.string()))
        kinds = {"int64": pa.int64(), "double": pa.float64(), "date": pa.date32(), "timestamp": pa.timestamp("us")}
        arrow_type = kinds.get(self.type_name, pa.null())
        return pa.nulls(length, arrow_type) if value is None else pa.repeat(pa.scalar(value, arrow_type), length)


def folder_columns(data_files: DataFiles) -> tuple[FolderColumn, ...]:
    """Return the columns of the names of folders, which must be the same for all files."""
    first = data_files.folders[0] if data_files.folders else ()
    for name, pairs in zip(data_files.names, data_files.folders, strict=True):
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"{name} lies in two folders '{twice}=…': rename one of them.")
        differing = sorted({key for key, _ in first} ^ set(keys))
        if differing:
            inside, outside = (name, data_files.names[0]) if differing[0] in keys else (data_files.names[0], name)
            raise InputError(
                f"{inside} lies in a folder '{differing[0]}=…' and {outside} does not: put all files into such "
                "folders, or none."
            )
    found = [dict(pairs) for pairs in data_files.folders]
    return tuple(_folder_column(key, [pairs[key] for pairs in found], key in data_files.named) for key, _ in first)


def _folder_column(name: str, raw: Sequence[str], named: bool) -> FolderColumn:
    texts = tuple(None if text in (MISSING, "") else unquote(text) for text in raw)
    there = [text for text in texts if text is not None]
    named = named and len(set(texts)) == 1

    def made(values: Any, kind: Kind, type_name: str) -> FolderColumn:
        return FolderColumn(name, texts, tuple(values), kind, type_name, named)

    def converted(convert: Any) -> list[Any]:
        return [None if text is None else convert(text) for text in texts]

    if not there:
        return made(texts, "number", "null")
    if all(_WHOLE.fullmatch(text) for text in there):
        return made(converted(int), "number", "int64")
    # A whole number of more digits is an identifier, whose digits a double would lose.
    if all(_NUMBER.fullmatch(text) and len(text) <= 18 for text in there):
        return made(converted(float), "number", "double")
    times = ((_DATE, date.fromisoformat, "date"), (_TIME, datetime.fromisoformat, "timestamp"))
    for pattern, convert, type_name in times:
        if all(pattern.fullmatch(text) for text in there):
            try:
                return made(converted(convert), "other", type_name)
            except ValueError:
                break
    return made(texts, "text", "text")


@dataclass(frozen=True)
class FolderRows(StorageCapabilities):
    """Rows of files with the columns that stand in the names of their folders.

    Attributes
    ----------
    rows
        The rows of the files.
    folders
        The columns of the names of folders.
    chosen
        Names of the delivered columns.
    texts
        Columns that are delivered as text.
    """

    rows: Rows
    folders: tuple[FolderColumn, ...]
    chosen: tuple[str, ...]
    texts: frozenset[str] = frozenset()

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the files, then those of the folders that no file has."""
        named = {folder.name for folder in self.folders if folder.named}
        inner = tuple(
            replace(column, aside=_IN_NAME_ALONE) if column.name in named else column for column in self.rows.columns
        )
        known = {column.name for column in inner}
        return inner + tuple(folder.column for folder in self.folders if folder.name not in known)

    @property
    def row_count(self) -> int | None:
        """Number of rows of all files, once counted."""
        return self.rows.row_count

    @property
    def random_access(self) -> bool:
        """Whether reading may start anywhere."""
        return self.rows.random_access

    @property
    def boundaries(self) -> tuple[int, ...]:
        """Rows at which reading starts cheaply."""
        return self.rows.boundaries

    @property
    def files(self) -> tuple[FilePart, ...]:
        """The files and their rows."""
        return self.rows.files

    @property
    def description(self) -> str:
        """The files in one phrase."""
        return self.rows.description

    @property
    def opened_files(self) -> DataFiles | None:
        """The files that are read."""
        return self.rows.opened_files

    def counted(self) -> Self:
        """Return these rows with their number known."""
        return replace(self, rows=self.rows.counted())

    def decoded_by(self, threads: int) -> Self:
        """Return these rows, those of a row group being decoded by several threads."""
        return replace(self, rows=self.rows.decoded_by(threads))

    def other_decimal(self, name: str) -> str:
        """Say that a column of the files has numbers with another decimal mark."""
        return self.rows.other_decimal(name) if name in self._inner_names else ""

    def explain_text(self, name: str) -> str:
        """Say which folder keeps a column of mostly numbers from being numeric."""
        folder = next((folder for folder in self.folders if folder.name == name), None)
        if folder is None or name in self._inner_names:
            return self.rows.explain_text(name)
        there = [text for text in folder.texts if text is not None]
        number = next((text for text in there if _NUMBER.fullmatch(text)), None)
        other = next((text for text in there if not _NUMBER.fullmatch(text)), None)
        if number is None or other is None:
            return ""
        return f"the folder '{name}={number}' has a number, and '{name}={other}' has none"

    @cached_property
    def _inner_names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.rows.columns)

    def choose(self, names: Sequence[str], texts: Sequence[str]) -> FolderRows:
        """Return the rows with these columns; a column of files and folders is read, to be compared."""
        inner = [name for name in names if name in self._inner_names]
        # Rows must come from somewhere: any column will do, as text, which every value is.
        read = inner or [self.rows.columns[0].name]
        inner_texts = [name for name in texts if name in inner] if inner else read
        return replace(self, rows=self.rows.choose(read, inner_texts), chosen=tuple(names), texts=frozenset(texts))

    def raw_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        """Yield the rows of the files with the columns of their folders; these alone need no reading."""
        number = {part.name: index for index, part in enumerate(self.files)}
        folders = {folder.name: folder for folder in self.folders}
        inner = [name for name in self.chosen if name in self._inner_names]
        unread = not inner and self.row_count is not None
        blocks = self._unread_blocks if unread else self.rows.raw_blocks
        for raw in blocks(start, stop, block_rows):
            index = number[raw.file_name]
            columns = dict(zip(inner, raw.columns, strict=False))
            for name in columns.keys() & folders.keys():
                _check_same(raw, name, columns[name], folders[name].texts[index])
            made = [
                columns[name] if name in columns else folders[name].repeated(index, raw.length, name in self.texts)
                for name in self.chosen
            ]
            yield replace(raw, columns=made)

    def _unread_blocks(self, start: int, stop: int | None, block_rows: int) -> Iterator[RawBlock]:
        first, last = clip(start, stop, self.row_count or 0)
        for part in self.files:
            file_start, file_stop = part.start or 0, part.stop or 0
            for begin in range(max(first, file_start), min(last, file_stop), block_rows):
                yield RawBlock(begin, min(block_rows, min(last, file_stop) - begin), (), part.name, file_start)


def _check_same(raw: RawBlock, name: str, column: Any, folder: str | None) -> None:
    """Refuse a file that has other values in a column than the name of its folder says."""
    import numpy as np

    from partsketch.sources.arrow_values import as_texts

    codes, texts = as_texts(column)
    same = np.array([_equal(text, folder) for text in texts] + [folder is None])
    wrong = np.flatnonzero(~same[codes])
    if wrong.size:
        code = int(codes[wrong[0]])
        found = "no value" if code < 0 else repr(texts[code])
        raise InputError(
            f"Column '{name}' has {found} in {raw.place(int(wrong[0]))}, but the name of its folder says "
            f"'{name}={MISSING if folder is None else folder}': correct one of them, or rename the folders."
        )


def _equal(text: str | None, folder: str | None) -> bool:
    if text is None or folder is None or text == folder:
        return text == folder
    for convert in (float, datetime.fromisoformat):
        try:
            return bool(convert(text) == convert(folder))
        except ValueError:
            continue
    return False
