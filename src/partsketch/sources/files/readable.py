"""Opening those of many files that can be opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from partsketch.common.errors import UnreadableError
from partsketch.sources.base import PartitionLeftOut, Source
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.files.paths import DataFiles, find_files


def open_readable(paths: Any, open_files: Callable[[DataFiles], Source]) -> Source:
    """Open files without those that are missing, truncated or damaged; `unreadable` of the source names these.

    Only what cannot be read at all is left out: a file that lacks a column is refused as ever.

    Parameters
    ----------
    paths
        What `find_files` takes.
    open_files
        Opens some of the files. It is called for all of them; when that fails, for each alone to find the culprits.
    """
    files = find_files(paths, tolerant=True)

    def open_counted(some: DataFiles) -> Source:
        # Counting reads some kinds of files to their ends, and so finds damage that their beginnings do not show.
        return open_files(some).counted()

    try:
        return open_counted(files)
    except UnreadableError as error:
        reasons: dict[int, str] = {}
        for index in range(len(files.paths)):
            try:
                open_counted(files.only([index]))
            except UnreadableError as why:
                reasons[index] = str(why)
        good = [index for index in range(len(files.paths)) if index not in reasons]
        if not reasons or not good:
            raise error
        source = open_counted(files.only(good))
    assert isinstance(source, ColumnSource)
    left_out = tuple(PartitionLeftOut(files.names[index], None, reason) for index, reason in reasons.items())
    return replace(source, unreadable=left_out)
