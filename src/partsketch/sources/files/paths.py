"""Finding data files: paths, directories and globs, local or on any file system that pyarrow knows by URI."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from partsketch.common.errors import InputError
from partsketch.common.files import check_path
from partsketch.sources.files.csv_format import PLAIN, CsvFiles, CsvFormat
from partsketch.sources.files.filesystems import filesystem_of, listed, reading, same_file
from partsketch.sources.files.folder_names import Pairs, folders_of, named_folders
from partsketch.sources.files.lakes import refuse_tables_with_logs
from partsketch.sources.files.standard_input import NAME, standard_input
from partsketch.sources.opener import opener_of, openers

FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".tsv": "CSV",
    ".feather": "Feather",
    ".arrow": "Feather",
    ".ipc": "Feather",
    ".npy": "NumPy",
}
#: Endings of compressed CSV files, which follow that of the format.
COMPRESSED = (".gz", ".zst", ".bz2")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class DataFiles:
    """Files of one format on one file system.

    Attributes
    ----------
    uri
        A URI on the file system, from which it is opened again after pickling; empty for local paths.
    paths, names
        Path of each file on that file system, and the shortest name that tells it from the others.
    format
        "Parquet", "CSV", "Feather", "NumPy", or the name of an opener of another package.
    folders
        For each file the columns that stand in the names of its folders, as in year=2024/month=01, with their texts.
    named
        Those of these columns whose folders were named when the files were asked for.
    csv
        How CSV files are written.
    """

    uri: str
    paths: tuple[str, ...]
    names: tuple[str, ...]
    format: str
    folders: tuple[Pairs, ...] = ()
    named: frozenset[str] = frozenset()
    csv: CsvFormat = PLAIN

    @property
    def description(self) -> str:
        """The files in one phrase."""
        what = f"1 {self.format} file" if len(self.paths) == 1 else f"{len(self.paths)} {self.format} files"
        return f"{what} ({self.csv.description})" if self.csv.description else what

    def only(self, indices: Sequence[int]) -> DataFiles:
        """Return some of the files, under the names they have among all."""
        paths, names = (tuple(values[index] for index in indices) for values in (self.paths, self.names))
        folders = tuple(self.folders[index] for index in indices) if self.folders else ()
        return replace(self, paths=paths, names=names, folders=folders)

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine."""
        return not self.uri or self.uri.startswith("file:")

    def filesystem(self) -> Any:
        """Open the file system."""
        return filesystem_of(self.uri)[0]


def find_files(data: Any, tolerant: bool = False) -> DataFiles:
    """Return the files that a path, directory, glob, URI or list of these means, in order of their names.

    Files that do not exist or are empty are refused, unless `tolerant`: opening them will fail.
    """
    csv = data.format if isinstance(data, CsvFiles) else PLAIN
    entries = entries_of(data)
    if not entries:
        raise InputError("The list of files is empty.")
    found = _standard_input(entries) if "-" in entries else _found(entries, tolerant)
    if not csv.is_plain and found.format != "CSV":
        raise InputError(
            f"{found.names[0]} is {found.format}, and separator, decimal and header (--separator, --decimal, "
            "--no-header) are for CSV files: leave them out."
        )
    return replace(found, csv=csv)


def entries_of(data: Any) -> list[str]:
    """Return the paths, folders, globs and URIs that were given."""
    data = data.paths if isinstance(data, CsvFiles) else data
    return [os.fspath(entry) for entry in ([data] if isinstance(data, str | os.PathLike) else data)]


def are_paths(data: Any) -> bool:
    """Tell whether data is a path or a list of paths."""
    data = data.paths if isinstance(data, CsvFiles) else data
    entries = data if isinstance(data, list | tuple) else [data]
    return all(isinstance(entry, str | os.PathLike) for entry in entries)


def _standard_input(entries: Sequence[str]) -> DataFiles:
    if len(entries) > 1:
        raise InputError("'-' is the standard input and stands alone: name it or files, not both.")
    path, kind = standard_input()
    return DataFiles("", (path,), (NAME,), kind)


def _found(entries: Sequence[str], tolerant: bool) -> DataFiles:
    found = [_expand(entry, tolerant) for entry in entries]
    uris = {uri.split("://")[0] for uri, _ in found}
    if len(uris) > 1:
        raise InputError("The files are on different file systems: use files of one of them at a time.")
    paths = [path for _, several in found for path in several]
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    if repeated:
        raise InputError(f"{repeated[0]} is listed more than once: list every file once.")
    if uris in ({""}, {"file"}) and (same := same_file(paths)):
        one, two = _short_names(same)
        raise InputError(f"{one} and {two} are the same file, whose rows would count twice: name it once.")
    names = _short_names(paths)
    formats = [_format_of(path, name) for path, name in zip(paths, names, strict=True)]
    for name, kind in zip(names, formats, strict=True):
        if kind != formats[0]:
            raise InputError(
                f"The files have different formats ({names[0]} is {formats[0]}, {name} is {kind}): use one at a time."
            )
    folders = tuple(
        pairs for entry, (_, several) in zip(entries, found, strict=True) for pairs in folders_of(entry, several)
    )
    globs = [-1 if (glob := _GLOB.search(entry)) is None else glob.start() for entry in entries]
    named = named_folders(entries, globs)
    return DataFiles(found[0][0], tuple(paths), tuple(names), formats[0], folders, named)


def local_files(data: Any) -> list[str]:
    """Return the files of this machine that paths, folders and globs lead to; what leads nowhere is left out."""
    found: list[str] = []
    data = data.paths if isinstance(data, CsvFiles) else data
    for entry in data if isinstance(data, list | tuple) else [data]:
        if isinstance(entry, str | os.PathLike):
            text = os.fspath(entry)
            with suppress(InputError):
                # Other file systems are not asked: nothing is written there, and asking may take long.
                found += _expand(text, tolerant=True)[1] if "://" not in text or text.startswith("file:") else []
    return found


def check_same_columns(name: str, columns: Sequence[str], first_name: str, first_columns: Sequence[str]) -> None:
    """Refuse a file whose columns are not those of the first file, whatever their order."""
    if sorted(columns) == sorted(first_columns):
        return
    lacking = [column for column in first_columns if column not in columns]
    extra = [column for column in columns if column not in first_columns]
    parts = [f"lacks {_quoted(lacking)}" if lacking else "", f"has {_quoted(extra)} besides" if extra else ""]
    difference = " and ".join(part for part in parts if part) or "repeats a column"
    raise InputError(f"{name} {difference}, unlike {first_name}: all files must have the same columns.")


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _expand(entry: str, tolerant: bool) -> tuple[str, list[str]]:
    """Return the URI of the file system (empty: local paths) and the paths that one entry means."""
    check_path(entry, "read")
    remote = "://" in entry
    # In a URI a question mark begins the options of the file system, such as the region.
    location, mark, query = entry.partition("?") if remote else (str(Path(entry).expanduser().absolute()), "", "")
    beginning = location.find("://") + 3 if remote else 0
    glob = None if not remote and os.path.exists(location) else _GLOB.search(location, beginning)
    if glob is None:
        filesystem, path = filesystem_of(location + mark + query)
        return entry if remote else "", _expand_path(filesystem, path, entry, tolerant)
    base = location[: glob.start()].rpartition("/")[0] or "/"
    uri = base + mark + query
    filesystem, base_path = filesystem_of(uri)
    pattern = location[len(base) :].strip("/")
    parts = (unquote(pattern) if remote else pattern).split("/")
    matched = [
        info.path
        for info in listed(filesystem, base_path, entry, recursive=len(parts) > 1)
        if _matches(info.path[len(base_path) :].strip("/").split("/"), parts)
    ]
    paths = [path for top in sorted(matched) for path in _expand_path(filesystem, top, entry, tolerant)]
    if not paths:
        raise InputError(f"No file matches {entry}.")
    return uri if remote else "", list(dict.fromkeys(paths))


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Tell whether path components match a glob; `**` stands for any number of them, `*` for no hidden one."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skip:], pattern[1:]) for skip in range(len(parts) + 1))
    if not parts or (parts[0].startswith(".") and not pattern[0].startswith(".")):
        return False
    return fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _expand_path(filesystem: Any, path: str, entry: str, tolerant: bool) -> list[str]:
    from pyarrow import fs

    with reading(entry, "a file or directory"):
        info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound and not (tolerant and known_format(path)):
        raise InputError(f"{entry} does not exist.")
    if info.type == fs.FileType.Unknown:
        # Neither file nor folder: reading a pipe may wait for ever, reading a device may never end.
        raise InputError(f"{entry} is a named pipe or a device: write its rows to a file first.")
    if info.type != fs.FileType.Directory:
        if info.size == 0 and not tolerant:
            raise InputError(f"{posixpath.basename(path)} is empty: it has no bytes.")
        return [path]
    everything = listed(filesystem, path, entry, recursive=True)
    refuse_tables_with_logs((found.path[len(path) :].strip("/") for found in everything), entry)
    inside = [
        found
        for found in everything
        if found.type == fs.FileType.File
        and not any(
            part[0] == "." or (part[0] == "_" and "=" not in part)
            for part in found.path[len(path) :].strip("/").split("/")
        )
        and known_format(found.path)
    ]
    if not inside:
        raise InputError(f"The directory {entry} has no data files (Parquet, CSV, Feather or .npy).")
    for found in inside:
        if found.size == 0 and not tolerant:
            raise InputError(f"{posixpath.basename(found.path)} is empty: it has no bytes.")
    return sorted(found.path for found in inside)


def _extension(path: str) -> str:
    stem, extension = posixpath.splitext(posixpath.basename(path).lower())
    return posixpath.splitext(stem)[1] + extension if extension in COMPRESSED else extension


def _format_of(path: str, name: str) -> str:
    known = known_format(path)
    if known is None:
        endings = [
            *FORMATS,
            ".csv.gz",
            ".csv.zst",
            ".csv.bz2",
            *(ending for opener in openers() for ending in opener.endings),
        ]
        raise InputError(f"{name} has an unknown extension: use one of {', '.join(endings)}.")
    return known


def known_format(path: str) -> str | None:
    """Return the format of a file by its ending, ours or that of another package; None when nobody knows it."""
    extension = _extension(path)
    if extension in FORMATS:
        return FORMATS[extension]
    if extension.endswith(COMPRESSED) and FORMATS.get(posixpath.splitext(extension)[0]) == "CSV":
        return "CSV"
    opener = opener_of(extension)
    return None if opener is None else opener.name


def _short_names(paths: Sequence[str]) -> list[str]:
    short = [posixpath.basename(path) for path in paths]
    if len(set(short)) == len(paths):
        return short
    common = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return [path[len(common) :].lstrip("/") for path in paths]
