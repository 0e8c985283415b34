"""Files that travel, read for their combination: each with a name for messages, in an order that does not matter."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from partsketch.common.errors import InputError
from partsketch.common.reading import ordinary_file
from partsketch.sites.agreement import Named
from partsketch.summaries.collection_file import load
from partsketch.summaries.noisy_file import is_noisy
from partsketch.summaries.noisy_summary import NoisySummary
from partsketch.summaries.summary import Summary

NamedFile = tuple[str, Summary | NoisySummary]


def read_summaries(files: Any) -> list[Named]:
    """Read files, globs and summaries at hand, each with a name for messages; sorted, so that order cannot matter."""
    named: list[Named] = []
    for name, summary in read_files(files):
        if isinstance(summary, NoisySummary):
            raise InputError(f"{name} holds sums of products with noise, made with epsilon: `combine` alone takes it.")
        named.append((name, summary))
    return named


def read_files(files: Any) -> list[NamedFile]:
    """Read the same, noisy summaries too."""
    one = isinstance(files, str | os.PathLike | Summary | NoisySummary)
    # Tables can be gone through too, by the names of their columns.
    if not one and (hasattr(files, "columns") or not isinstance(files, Iterable)):
        raise InputError(
            f"Cannot combine a {type(files).__name__}: pass paths of sketch files, or summaries, which `sketch` makes."
        )
    entries = [files] if one else list(files)
    named: list[NamedFile] = []
    for entry in entries:
        if isinstance(entry, Summary | NoisySummary):
            name = entry.name if isinstance(entry, NoisySummary) else entry.parts[0].name
            named.append((f"the sketch of {name!r}", entry))
        elif isinstance(entry, str | os.PathLike):
            path = os.fspath(entry)
            found = sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]
            if not found:
                raise InputError(f"No file matches {path}.")
            named += [entry for name in found for entry in _entries(name)]
        else:
            raise InputError(f"Cannot combine {type(entry).__name__}: pass paths of sketch files, or summaries.")
    return sorted(named, key=_place)


def _entries(name: str) -> Sequence[NamedFile]:
    """Return the summaries of a file, which may hold many, each with a name."""
    with ordinary_file(Path(name)) as (file, _):
        noisy = is_noisy(file.read(16))
    if noisy:
        return [(name, NoisySummary.load(name))]
    summaries = load(Path(name))
    if len(summaries) == 1:
        return [(name, summaries[0])]
    return [(f"{name} ({summary.parts[0].name})", summary) for summary in summaries]


def _place(entry: NamedFile) -> tuple[str, str, int, int]:
    if isinstance(entry[1], NoisySummary):
        return entry[1].site, entry[1].label, 0, 0
    part = entry[1].parts[0]
    return part.site, part.label, part.stream, part.start or 0
