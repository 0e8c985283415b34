"""Keeping the finished tasks of a fit in a folder, so that a run that was killed goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from partsketch.common.errors import InputError, reason_of
from partsketch.common.files import check_path, make_folder, remove_abandoned, shown, write_atomically
from partsketch.engines.base import TaskOutcome
from partsketch.engines.checkpoint_file import load_result, save_result
from partsketch.sketches.base import Merging
from partsketch.summaries.merge import PieceFold
from partsketch.summaries.tasks import TaskResult

_MANIFEST = "checkpoint.json"
_LOCK = "checkpoint.lock"
_FORMAT = "partsketch checkpoint"
#: What a manifest begins with, also one that was cut short; and the names of all in a checkpoint, "exact" that of
#: the comparison.
_BEGINNING = f'{{\n "format": "{_FORMAT}"'.encode()
_OWN = re.compile(r"checkpoint\.(json|lock)|tasks-\d{8,}\.bin|exact|\.partsketch-.*\.part|\.nfs.*")
#: Results are written together, at most this often, and so seldom that writing takes a twentieth of the time.
_LEAST_SECONDS = 0.5
_SHARE_OF_TIME = 20.0


class Checkpoint:
    """An open folder of finished tasks; see `open_checkpoint`."""

    def __init__(self, folder: Path, fingerprint: str, merging: Merging) -> None:
        self._folder, self.fingerprint, self._merging = folder, fingerprint, merging
        self._begin()
        self._next_write = time.monotonic() + _LEAST_SECONDS

    def _begin(self) -> None:
        self._tasks: list[int] = []
        # What has been kept is merged as it comes: merging all of it again each time would take ever longer.
        self._fold = PieceFold(self._merging)
        self._dropped = self._rows_seen = 0

    def load(self, task_count: int) -> Iterator[TaskOutcome]:
        """Yield what earlier runs finished; files that are damaged, or of another fit, count as missing."""
        seen: set[int] = set()
        for path in sorted(self._folder.glob("tasks-*.bin")):
            found = load_result(path, self.fingerprint)
            if found is None:
                continue
            tasks, result = found
            if not seen.isdisjoint(tasks) or not all(0 <= task < task_count for task in tasks):
                continue
            seen.update(tasks)
            yield TaskOutcome(tasks, result)

    def keep(self, tasks: Sequence[int], result: TaskResult) -> None:
        """Keep the result of these tasks: in a file soon, at the latest when the folder is closed."""
        self._tasks.extend(tasks)
        for piece in result.pieces:
            self._fold.add(piece)
        self._dropped += result.dropped
        self._rows_seen += result.rows_seen
        if time.monotonic() >= self._next_write:
            self.write()

    def write(self) -> None:
        """Write what has been kept since the last time into one file."""
        if not self._tasks:
            return
        started = time.monotonic()
        tasks = sorted(self._tasks)
        result = TaskResult(self._fold.pieces(), self._dropped, self._rows_seen)
        try:
            save_result(self._folder / f"tasks-{tasks[0]:08d}.bin", self.fingerprint, tasks, result)
        except OSError as error:
            raise InputError(f"Cannot write to the checkpoint {self._folder}: {error.strerror or error}.") from error
        self._begin()
        now = time.monotonic()
        self._next_write = now + max(_LEAST_SECONDS, _SHARE_OF_TIME * (now - started))


@contextmanager
def open_checkpoint(
    folder: Path, identity: dict[str, dict[str, Any]], seed: int, merging: Merging
) -> Iterator[Checkpoint]:
    """Open a folder for a fit, making it if need be; refuse it when it belongs to another fit.

    Parameters
    ----------
    folder
        Where the files are.
    identity
        What a result depends on, as plain data: a group ("options", "data", …) and in it names and values.
    seed
        The seed of the fit, for a run that goes on without having been given it.
    merging
        How results are merged.
    """
    check_path(folder, "use")
    try:
        make_folder(folder)
    except FileExistsError as error:
        raise InputError(f"Cannot use {shown(folder)} as a checkpoint: it is not a folder; name one.") from error
    except OSError as error:
        raise InputError(f"Cannot use {shown(folder)} as a checkpoint: {reason_of(error)}.") from error
    _check_own(folder)
    with _locked(folder):
        # As JSON gives it back, so that tuples equal lists.
        identity = json.loads(json.dumps(identity))
        manifest = _read_manifest(folder)
        if manifest is not None:
            _check_same(folder, manifest["identity"], identity)
        else:
            _write_manifest(folder, identity, seed)
        remove_abandoned(folder)
        checkpoint = Checkpoint(folder, _digest(identity), merging)
        try:
            yield checkpoint
        finally:
            checkpoint.write()


def recorded_seed(folder: Path) -> int | None:
    """Return the seed of the fit that a folder belongs to, or None when there is no such folder yet.

    A folder that has lost its manifest has lost the seed: another one would silently begin anew.
    """
    _check_own(folder)
    manifest = _read_manifest(folder)
    try:
        is_damaged = manifest is None and ((folder / _MANIFEST).exists() or any(folder.glob("tasks-*.bin")))
    except OSError as error:
        raise InputError(f"Cannot use {shown(folder)} as a checkpoint: {reason_of(error)}.") from error
    if is_damaged:
        raise InputError(
            f"The checkpoint {folder} is damaged: its {_MANIFEST} is missing or cut short, and the seed with it; give "
            "the seed that it was made with (--seed, random_state), or another folder."
        )
    return None if manifest is None else int(manifest["seed"])


def _check_own(folder: Path) -> None:
    """Refuse a folder that is there for something else: files would be added, and one of the same name replaced."""
    if _read_manifest(folder) is not None:
        return
    try:
        names = sorted(os.listdir(folder))
        found = [name for name in names if not _OWN.fullmatch(name)]
        is_own = any(name.startswith("tasks-") for name in names)
        if not is_own and not _BEGINNING.startswith(_first_bytes(folder / _MANIFEST)):
            found.append(_MANIFEST)
    except OSError:
        # It is not there, or nothing can be done with it: whoever makes and locks it says what.
        return
    if found:
        raise InputError(
            f"Cannot use {shown(folder)} as a checkpoint: it holds {shown(found[0])!r}, which is not part of one; name "
            "a folder that is empty or not there yet."
        )


def _first_bytes(path: Path) -> bytes:
    """Return as many bytes of a file as every manifest begins with; none when it is not there."""
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGINNING))
    except FileNotFoundError:
        return b""


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _write_manifest(folder: Path, identity: dict[str, Any], seed: int) -> None:
    values = {"format": _FORMAT, "seed": seed, "identity": identity}
    text = json.dumps({**values, "checksum": _digest(values)}, indent=1)
    write_atomically(folder / _MANIFEST, (text + "\n").encode())


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest; None when there is none, or none that can be trusted."""
    try:
        values = json.loads((folder / _MANIFEST).read_bytes())
        checksum = values.pop("checksum")
    except (OSError, ValueError, KeyError, AttributeError, RecursionError):
        return None
    return values if checksum == _digest(values) else None


def _check_same(folder: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    for group in {**before, **now}:
        old, new = before.get(group, {}), now.get(group, {})
        for name in {**old, **new}:
            if old.get(name) == new.get(name):
                continue
            plain = all(isinstance(value, str | int | float | None) for value in (old.get(name), new.get(name)))
            values = f" ({old.get(name)!r} then, {new.get(name)!r} now)" if plain and group != "data" else ""
            raise InputError(
                f"The checkpoint {folder} was made with other {group}: {name} differs{values}; "
                "give what it was made with, or another folder."
            )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes out; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"Cannot use {shown(folder)} as a checkpoint: {reason_of(error)}.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"The checkpoint {folder} is in use by another process: wait for it to end.") from error
        yield
    finally:
        os.close(handle)
