"""Faults in the middle of a command, at any call inside the package: one sentence, nothing changed, nothing left.

An error that nobody foresaw ends with exit code 70; memory that cannot be had and a system that refuses with 2; an
interrupt with 130. Whoever catches such an error on purpose may go on.
"""

from __future__ import annotations

import errno
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import partsketch
from tests.attack.case import Case, Fault
from tests.attack.judges import Ended, fingerprints, judge_ended, run_command
from tests.attack.material import COMMANDS, command, is_whole, lay_out, outputs_of

_PACKAGE = os.path.dirname(partsketch.__file__)

#: What is raised, and what a command may then end with.
ERRORS: tuple[tuple[Callable[[], BaseException], int], ...] = (
    (lambda: RuntimeError("a fault that was put in"), 70),
    (lambda: ValueError("a fault that was put in"), 70),
    (lambda: KeyError("a fault that was put in"), 70),
    (lambda: AssertionError("a fault that was put in"), 70),
    (lambda: ZeroDivisionError("a fault that was put in"), 70),
    (lambda: MemoryError("a fault that was put in"), 2),
    (lambda: OSError(errno.ENOSPC, "No space left on device"), 2),
    (lambda: OSError(errno.EIO, "Input/output error"), 2),
    (KeyboardInterrupt, 130),
)


class _Trap:
    """Raises an error at the n-th call of a function of the package, in whatever thread; without one it counts."""

    def __init__(self, at: int | None, make: Callable[[], BaseException] | None) -> None:
        self.calls, self._at, self._make, self._raised = 0, at, make, False
        self._lock = threading.Lock()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        # What prints the sentence, and what starts the program, cannot be guarded by itself.
        if frame.f_code.co_filename.endswith(
            ("cli/__init__.py", "last_resort.py", "printing.py", "text.py", "errors.py")
        ):
            return
        with self._lock:
            self.calls += 1
            # Only the main thread is interrupted: it is with its next call.
            only_main = self._make is KeyboardInterrupt and threading.current_thread() is not threading.main_thread()
            due = not self._raised and self._at is not None and self.calls >= self._at and not only_main
            self._raised |= due
        if due and self._make is not None:
            raise self._make()

    def run(self, arguments: list[str]) -> Ended:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            return run_command(arguments)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


@cache
def _calls(name: str) -> int:
    """Return how many calls a command makes."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        places = lay_out(Path(folder))
        run_command(command(name, places))
        trap = _Trap(None, None)
        trap.run(command(name, places))
        return trap.calls


def cases(seed: int) -> Iterator[Case]:
    """Yield a command, an error, and how far the command gets before it."""
    draw = random.Random(seed)
    while True:
        name, error, place = draw.choice(list(COMMANDS)), draw.randrange(len(ERRORS)), draw.random()
        kind = type(ERRORS[error][0]()).__name__
        yield Case(f"{name}: {kind} at {place:.4f}", partial(_attack, name, error, place))


def _attack(name: str, error: int, place: float, folder: Path) -> Fault | None:
    make, code = ERRORS[error]
    trap = _Trap(1 + int(place * _calls(name)), make)
    places = lay_out(folder)
    old = folder / "out.json"
    old.write_bytes(b"old")
    there = set(folder.rglob("*"))
    before = fingerprints(there)
    ended = trap.run(command(name, places))
    if "Exception ignored in" in ended.err:
        # It was raised where Python tidies up, and nobody can catch it.
        return None
    fault = judge_ended(ended, codes={0, 2, code}) or _judge_sentence(ended, make())
    if fault is not None:
        return fault
    after = fingerprints(there)
    changed = [str(path) for path in there if before[path] != after[path] and path != old]
    if changed:
        return Fault("input changed", f"{changed}: exit {ended.code}\n{ended.err}")
    # What was finished before the fault stays, whole; nothing else does.
    new = set(folder.rglob("*")) - there
    broken = [path for path in new if path not in outputs_of(folder) or not is_whole(path)]
    if before[old] != after[old] and not is_whole(old):
        broken.append(old)
    return Fault("left behind", f"{sorted(map(str, broken))}: exit {ended.code}\n{ended.err}") if broken else None


def _judge_sentence(ended: Ended, error: BaseException) -> Fault | None:
    """An unexpected error is told with the step it happened in, and how to see more."""
    if ended.code != 70:
        return None
    lines = [line for line in ended.err.splitlines() if line.startswith("Error: ")]
    right = len(lines) == 1 and " while " in lines[0] and "--debug" in lines[0] and type(error).__name__ in lines[0]
    return None if right else Fault("sentence", ended.err)
