"""Files that a command will write, checked before it starts to work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from partsketch.common.errors import InputError
from partsketch.common.files import check_output, shown


def check_outputs(
    outputs: Mapping[str, str | os.PathLike[str] | None],
    data: Any = (),
    files: Iterable[str | os.PathLike[str]] = (),
    checkpoint: str | os.PathLike[str] | None = None,
) -> None:
    """Refuse outputs that cannot be written, that are inputs, or that are each other.

    Parameters
    ----------
    outputs
        Option → the file that it names, None where it was not given.
    data
        Paths, folders, globs and URIs of rows that are read, or `CsvFiles`.
    files
        Other files that are read: models, sketches, levels.
    checkpoint
        A folder that is the checkpoint's own.
    """
    given = {option: path for option, path in outputs.items() if path is not None}
    if not given:
        return
    from partsketch.sources.files.paths import local_files

    inputs = [*files, *local_files(data)]
    taken: dict[Path, str] = {}
    for option, path in given.items():
        target = check_output(path, inputs)
        if target in taken:
            raise InputError(f"{taken[target]} and {option} name the same file, {shown(path)}: name two.")
        taken[target] = option
        if checkpoint is not None and target.parent == Path(os.path.realpath(checkpoint)):
            raise InputError(f"Cannot write {shown(path)}: its folder is that of the checkpoint; name another one.")
