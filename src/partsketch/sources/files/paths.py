"""Finding data files: paths, directories and globs, local or on any file system that pyarrow knows by URI."""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from partsketch.common.errors import InputError, UnreadableError
from partsketch.sources.opener import opener_of, openers

FORMATS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".csv.gz": "CSV",
    ".tsv": "CSV",
    ".tsv.gz": "CSV",
    ".feather": "Feather",
    ".arrow": "Feather",
    ".ipc": "Feather",
    ".npy": "NumPy",
}
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
    """

    uri: str
    paths: tuple[str, ...]
    names: tuple[str, ...]
    format: str

    @property
    def description(self) -> str:
        """The files in one phrase."""
        return f"1 {self.format} file" if len(self.paths) == 1 else f"{len(self.paths)} {self.format} files"

    def only(self, indices: Sequence[int]) -> DataFiles:
        """Return some of the files, under the names they have among all."""
        paths, names = (tuple(values[index] for index in indices) for values in (self.paths, self.names))
        return DataFiles(self.uri, paths, names, self.format)

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine."""
        return not self.uri or self.uri.startswith("file:")

    def filesystem(self) -> Any:
        """Open the file system."""
        return _filesystem(self.uri)[0]


def find_files(data: Any, tolerant: bool = False) -> DataFiles:
    """Return the files that a path, directory, glob, URI or list of these means, in order of their names.

    Files that do not exist or are empty are refused, unless `tolerant`: opening them will fail.
    """
    entries = [data] if isinstance(data, str | os.PathLike) else list(data)
    if not entries:
        raise InputError("The list of files is empty.")
    found = [_expand(os.fspath(entry), tolerant) for entry in entries]
    uris = {uri.split("://")[0] for uri, _ in found}
    if len(uris) > 1:
        raise InputError("The files are on different file systems: use files of one of them at a time.")
    paths = [path for _, several in found for path in several]
    repeated = [path for path, count in Counter(paths).items() if count > 1]
    if repeated:
        raise InputError(f"{repeated[0]} is listed more than once: list every file once.")
    names = _short_names(paths)
    formats = [_format_of(path, name) for path, name in zip(paths, names, strict=True)]
    for name, kind in zip(names, formats, strict=True):
        if kind != formats[0]:
            raise InputError(
                f"The files have different formats ({names[0]} is {formats[0]}, {name} is {kind}): use one at a time."
            )
    return DataFiles(found[0][0], tuple(paths), tuple(names), formats[0])


def local_files(data: Any) -> list[str]:
    """Return the files of this machine that paths, folders and globs lead to; what leads nowhere is left out."""
    found: list[str] = []
    for entry in data if isinstance(data, list | tuple) else [data]:
        if isinstance(entry, str | os.PathLike):
            text = os.fspath(entry)
            with suppress(InputError):
                # Other file systems are not asked: nothing is written there, and asking may take long.
                found += _expand(text, tolerant=True)[1] if "://" not in text or text.startswith("file:") else []
    return found


@contextmanager
def reading(name: str, kind: str) -> Iterator[None]:
    """Turn what pyarrow raises for an unreadable file into one sentence."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        text = bytes(error.object)[:60].decode("utf-8", "backslashreplace")
        raise UnreadableError(
            f"{name} has a name or a text that is not UTF-8 ('{text}'): save it as UTF-8, or rename the column."
        ) from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise UnreadableError(f"{name} does not exist.") from error
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        # A damaged file may be quoted in the message.
        reason = "".join(letter if letter.isprintable() else "?" for letter in first_line[:160]).rstrip(". ")
        raise UnreadableError(f"{name} cannot be read as {kind}, it may be truncated or damaged: {reason}.") from error


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


@lru_cache(maxsize=32)
def _filesystem(location: str) -> tuple[Any, str]:
    """Return the file system of a path or URI and the path on it; kept, for a URI may cost a request to a server."""
    from pyarrow import fs

    if "://" not in location:
        return fs.LocalFileSystem(), location
    with reading(location, "a file or directory"):
        filesystem, path = fs.FileSystem.from_uri(location)
    return filesystem, path


def _expand(entry: str, tolerant: bool) -> tuple[str, list[str]]:
    """Return the URI of the file system (empty: local paths) and the paths that one entry means."""
    remote = "://" in entry
    # In a URI a question mark begins the options of the file system, such as the region.
    location, mark, query = entry.partition("?") if remote else (str(Path(entry).expanduser().absolute()), "", "")
    beginning = location.find("://") + 3 if remote else 0
    glob = None if not remote and Path(location).exists() else _GLOB.search(location, beginning)
    if glob is None:
        filesystem, path = _filesystem(location + mark + query)
        return entry if remote else "", _expand_path(filesystem, path, entry, tolerant)
    base = location[: glob.start()].rpartition("/")[0] or "/"
    uri = base + mark + query
    filesystem, base_path = _filesystem(uri)
    pattern = location[len(base) :].strip("/")
    parts = (unquote(pattern) if remote else pattern).split("/")
    matched = [
        info.path
        for info in _listed(filesystem, base_path, entry, recursive=len(parts) > 1)
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


def _listed(filesystem: Any, directory: str, entry: str, recursive: bool) -> list[Any]:
    from pyarrow import fs

    with reading(entry, "a directory"):
        found: list[Any] = filesystem.get_file_info(
            fs.FileSelector(directory, recursive=recursive, allow_not_found=True)
        )
    return found


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
    inside = [
        found
        for found in _listed(filesystem, path, entry, recursive=True)
        if found.type == fs.FileType.File
        and not any(part[0] in "._" for part in found.path[len(path) :].strip("/").split("/"))
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
    return posixpath.splitext(stem)[1] + extension if extension == ".gz" else extension


def _format_of(path: str, name: str) -> str:
    known = known_format(path)
    if known is None:
        endings = [*FORMATS, *(ending for opener in openers() for ending in opener.endings)]
        raise InputError(f"{name} has an unknown extension: use one of {', '.join(endings)}.")
    return known


def known_format(path: str) -> str | None:
    """Return the format of a file by its ending, ours or that of another package; None when nobody knows it."""
    extension = _extension(path)
    if extension in FORMATS:
        return FORMATS[extension]
    opener = opener_of(extension)
    return None if opener is None else opener.name


def _short_names(paths: Sequence[str]) -> list[str]:
    short = [posixpath.basename(path) for path in paths]
    if len(set(short)) == len(paths):
        return short
    common = posixpath.commonpath([posixpath.dirname(path) for path in paths])
    return [path[len(common) :].lstrip("/") for path in paths]
