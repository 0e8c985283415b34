"""Names of sketch files, and writing several of them, all or none."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from partsketch.common.errors import InputError
from partsketch.common.files import atomic_path
from partsketch.summaries.summary import Summary

_PLACE = "{partition}"


def site_of(output: str | None, directory: Path | None) -> str:
    """Return the site's name when none is given: that of its file or folder."""
    if output is not None:
        return Path(output.replace(_PLACE, "")).stem.strip("-_. ")
    return "" if directory is None else directory.resolve().name


def file_names(output: str | None, directory: Path | None, site: str, partitions: Sequence[str] | None) -> list[Path]:
    """Return one path per partition (None: rows that were not cut), refusing what cannot be written."""
    if (output is None) == (directory is None):
        raise InputError("Say where to write: either --output FILE or --output-directory FOLDER.")
    if directory is not None:
        if not directory.is_dir():
            raise InputError(f"There is no folder {directory}: make it first.")
        pattern = f"{_safe(site) or 'site'}{'' if partitions is None else '-' + _PLACE}.psk"
        output = str(directory / pattern)
    assert output is not None
    if partitions is None:
        paths = [Path(output)]
    elif _PLACE not in Path(output).name:
        raise InputError(f"Several partitions need several files: write {_PLACE} into the name given to --output.")
    else:
        safe = [_safe(name) for name in partitions]
        width = len(str(len(safe) - 1))
        # Names that differ only in what a file name cannot hold are told apart by their number.
        if len(set(safe)) < len(safe) or "" in safe:
            safe = [f"{number:0{width}d}-{name}" for number, name in enumerate(safe)]
        elif all(name.isdigit() for name in safe):
            safe = [name.zfill(width) for name in safe]
        paths = [Path(output).with_name(Path(output).name.replace(_PLACE, name)) for name in safe]
    for path in paths:
        if not path.parent.is_dir():
            raise InputError(f"Cannot write {path}: there is no folder {path.parent}.")
    return paths


def _safe(name: str) -> str:
    return re.sub(r"[^\w.=-]+", "_", name).strip("._")[:100]


def save_all(
    summaries: Sequence[Summary], paths: Sequence[Path], inputs: Sequence[str | os.PathLike[str]] = ()
) -> None:
    """Write every summary to its file, none of which may be an input; when one cannot be written, none is."""
    contents = [summary.to_bytes() for summary in summaries]
    with ExitStack() as stack:
        for path, content in zip(paths, contents, strict=True):
            stack.enter_context(atomic_path(path, inputs)).write_bytes(content)
