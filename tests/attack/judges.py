"""Judges: what must hold of any command and any reader, whatever it was given."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import subprocess as processes
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from partsketch.common.errors import InputError
from tests.attack.case import Fault

#: Seconds after which a case counts as one that would wait for ever.
HANG_SECONDS = 120.0
#: What a command may end with: success, a broken pipe, bad input.
PROMISED = (0, 1, 2)
#: Characters that a terminal may obey, or that turn the direction of text: none may come out of a name.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: Longer than this is not one sentence that somebody reads.
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


def run_command(arguments: Sequence[str]) -> Ended:
    """Run a command in this process, as `partsketch` would."""
    from partsketch.cli import run

    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace", newline="") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            code = run(list(arguments))
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = -1
    texts = []
    for stream in streams:
        with contextlib.suppress(ValueError):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
    return Ended(code, *[*texts, "", ""][:2])


def run_process(
    arguments: Sequence[str | bytes],
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    seconds: float = HANG_SECONDS,
    **options: Any,
) -> Ended | Fault:
    """Run a command in a process of its own, perhaps behind another command; one that does not end is a hang."""
    made = [*before, sys.executable, "-m", "partsketch", *arguments]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})}
    options = {"stdin": processes.DEVNULL, "stdout": processes.PIPE, "stderr": processes.PIPE, **options}
    process = processes.Popen(made, env=variables, start_new_session=True, **options)
    try:
        out, err = process.communicate(timeout=seconds)
    except processes.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Fault("hang", f"{arguments} did not end within {seconds:.0f} s")
    return Ended(process.returncode, (out or b"").decode("utf-8", "replace"), (err or b"").decode("utf-8", "replace"))


def judge_ended(
    ended: Ended,
    must: Literal["refuse", "accept", "any"] = "any",
    codes: Collection[int] = PROMISED,
    plain: bool = True,
) -> Fault | None:
    """Judge how a command ended.

    Parameters
    ----------
    ended
        Exit code and what it printed.
    must
        Whether it must be refused, must succeed, or may do either.
    codes
        Exit codes that are promised.
    plain
        Whether nothing that it prints may hold control characters.
    """
    seen = f"exit {ended.code}\n{ended.out[-800:]}\n{ended.err[-1500:]}"
    if "Traceback (most recent call last)" in ended.err + ended.out or ended.code not in codes:
        return Fault("traceback", seen)
    if must == "refuse" and ended.code == 0:
        return Fault("wrong accept", seen)
    if must == "accept" and ended.code != 0:
        return Fault("wrong refusal", seen)
    if ended.code == 2:
        errors = [line for line in ended.err.splitlines() if line.startswith("Error: ")]
        if len(errors) != 1 or len(errors[0]) > _LONGEST_MESSAGE or not errors[0].rstrip().endswith((".", ")", "?")):
            return Fault("sentence", seen)
    if ended.code == 0 and ended.out.startswith('{"'):
        try:
            json.loads(ended.out, parse_constant=_not_finite)
        except ValueError as error:
            return Fault("wrong accept", f"{error}\n{seen}")
    if plain and (found := CONTROL.search(ended.out + ended.err)):
        return Fault("raw control", f"{found.group()!r}: {seen!r}")
    return None


def _not_finite(text: str) -> None:
    raise ValueError(f"{text} is no number that JSON has")


def judge_command(
    arguments: Sequence[str],
    folder: Path,
    must: Literal["refuse", "accept", "any"] = "any",
    inputs: Iterable[Path] | None = None,
    outputs: Iterable[Path] | None = (),
    subprocess: bool = False,
) -> Fault | None:
    """Run a command and judge it, and what has become of the folder.

    Parameters
    ----------
    arguments
        Of the command line.
    folder
        Where it works; nothing may appear here but the outputs, and nothing at all when the command is refused.
    must
        As for `judge_ended`.
    inputs
        Files that must stay as they are; None means all that are there but the outputs.
    outputs
        Files that it may write when it succeeds; None means any, where there is none yet.
    subprocess
        Whether it runs in a process of its own.
    """
    written = {path.absolute() for path in outputs or ()}
    watched = [path for path in sorted(folder.rglob("*")) if path not in written] if inputs is None else list(inputs)
    before = fingerprints(watched)
    there = set(folder.rglob("*"))
    ended = run_process(arguments) if subprocess else run_command(arguments)
    if isinstance(ended, Fault):
        return ended
    fault = judge_ended(ended, must)
    if fault is not None:
        return fault
    after = fingerprints(watched)
    changed = [str(path) for path in before if before[path] != after[path]]
    if changed:
        return Fault("input changed", f"{changed} by {arguments}")
    new = [path for path in sorted(set(folder.rglob("*")) - there) if not _is_kept(path)]
    if ended.code == 0:
        # Temporary files are hidden; nothing that is written on purpose is.
        new = [path for path in new if path.absolute() not in written and (outputs is not None or path.name[0] == ".")]
    return Fault("left behind", f"{list(map(str, new))} by {arguments}: exit {ended.code}") if new else None


def _is_kept(path: Path) -> bool:
    """Tell whether a path is a checkpoint, or in one: that is there for fits that do not end well."""
    return any((place / "checkpoint.lock").exists() for place in (path, path.parent, path.parent.parent))


def judge_reading(read: Callable[[], object], must: Literal["refuse", "accept", "any"] = "any") -> Fault | None:
    """Call what reads a forged file: it may return or raise an `InputError` of one sentence, as `must` says."""
    try:
        read()
    except InputError as error:
        message = str(error)
        if must == "accept":
            return Fault("wrong refusal", message)
        if "\n" in message or len(message) > _LONGEST_MESSAGE or CONTROL.search(message):
            return Fault("sentence", repr(message[: 2 * _LONGEST_MESSAGE]))
        return None
    except Exception:
        return Fault("traceback", traceback.format_exc(limit=-6))
    return Fault("wrong accept", "it was read") if must == "refuse" else None


def fingerprints(paths: Iterable[Path]) -> dict[Path, object]:
    """Return what tells whether a file was changed: kind, inode, time, and a digest of what it holds."""
    found: dict[Path, object] = {}
    for path in paths:
        try:
            state = os.lstat(path)
        except OSError:
            found[path] = None
            continue
        content: object = os.readlink(path) if path.is_symlink() else None
        if path.is_file() and not path.is_symlink():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
        # Times of folders change with what is in them, which is judged apart.
        found[path] = (state.st_mode, state.st_ino, 0 if path.is_dir() else state.st_mtime_ns, content)
    return found
