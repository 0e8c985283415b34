"""Commands that are killed at any moment: outputs are the old file or the new one, and the next run tidies up."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.attack.case import Case, Fault
from tests.attack.forked import run_forked
from tests.attack.judges import Ended, fingerprints, run_command
from tests.attack.material import command, is_whole, lay_out, outputs_of, run_once

#: Commands that write.
KILLED = (
    "fit to files", "keep", "predict", "predict text", "sketch", "sketch parts", "combine", "report", "summarise parts",
    "promise", "predict intervals", "ask a list", "ask", "refine", "answer", "step",
)  # fmt: skip
#: Commands that cannot be repeated once they are done, and what tells that they are.
ONCE = {"refine": "out-rounds", "step": "rounds/question-2.psq"}
#: Seconds that a command takes at most, from which the moment of its end is drawn.
_LONGEST = 0.25


def cases(seed: int) -> Iterator[Case]:
    """Yield a command that writes, and when it is killed; every other one in the middle of writing a file."""
    draw = random.Random(seed)
    while True:
        name, seconds, writing = draw.choice(KILLED), draw.uniform(0.0, _LONGEST), draw.random() < 0.5
        when = "while it writes" if writing else f"after {seconds:.3f} s"
        yield Case(f"{name} killed {when}", partial(_attack, name, seconds, writing), "kills")


def _attack(name: str, seconds: float, writing: bool, folder: Path) -> Fault | None:
    places = lay_out(folder)
    inputs = fingerprints(sorted(folder.iterdir()))
    old = folder / "out.json"
    old.write_bytes(b"old")
    run_once()

    def prepare() -> None:
        if writing:
            _die_while_writing(random.Random(seconds))

    # Who was quicker than the kill is run again and killed earlier.
    code = 0
    while code == 0:
        _undo(name, folder)
        ended = run_forked(command(name, places), prepare, kill_after=None if writing else seconds)
        if isinstance(ended, Fault):
            return ended
        code, seconds = ended.code, seconds / 2
        fault = _judge(ended, inputs, folder)
        if fault is not None:
            return fault
    if name in ONCE and (folder / ONCE[name]).exists():
        return None
    # The process that was killed has just been waited for: its number is free, and its files are nobody's.
    again = run_command(command(name, places))
    if again.code != 0:
        return Fault("wrong refusal", f"after the kill: {again}")
    left = [str(path) for path in folder.rglob("*") if path.name.endswith(".part")]
    return Fault("left behind", f"{left} after the next run") if left else _judge(again, inputs, folder)


def _undo(name: str, folder: Path) -> None:
    """Take back what a command did that cannot be repeated."""
    if name in ONCE:
        shutil.rmtree(folder / "out-rounds", ignore_errors=True)
        shutil.rmtree(folder / "rounds" / "round-1", ignore_errors=True)
        (folder / ONCE["step"]).unlink(missing_ok=True)


def _judge(ended: Ended, inputs: dict[Path, object], folder: Path) -> Fault | None:
    if ended.code not in (0, -signal.SIGKILL):
        return Fault("traceback", repr(ended))
    if fingerprints(inputs) != inputs:
        return Fault("input changed", f"{ended}")
    outputs = [path for path in outputs_of(folder) if path.is_file() and path.read_bytes() != b"old"]
    broken = [str(path) for path in outputs if not is_whole(path)]
    return Fault("left behind", f"cut short: {broken}") if broken else None


def _die_while_writing(draw: random.Random) -> None:
    """Have this process killed between the making of a temporary file and its new name, or just behind that."""
    from partsketch.common import files

    # Every file is flushed, then its folder.
    flush, place = files.flush_to_disk, draw.randrange(2)
    calls = 0

    def dying(path: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == 1 + place:
            if draw.random() < 0.5:
                os.truncate(path, draw.randrange(1 + os.path.getsize(path))) if path.is_file() else None
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        flush(path)

    files.flush_to_disk = dying
