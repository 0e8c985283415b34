"""Running cases: in a worker process with bounded memory, watched from outside."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.attack.case import Counted, Fault
from tests.attack.classes import AttackClass
from tests.attack.judges import HANG_SECONDS

#: Bytes of addresses that a worker may use: libraries reserve far more than they need.
_MOST_BYTES = 12 << 30


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    class_name: str
    seed: int
    number: int
    case: str
    counts_as: Counted
    seconds: float
    fault: Fault | None


def run_class(
    chosen: AttackClass, seed: int, seconds: float, least: int = 0, most: int | None = None, first: int = 0
) -> Iterator[Outcome]:
    """Yield outcomes of the cases of a class until the time is over and at least so many are done, or `most` are.

    A case that does not end is a hang, one that ends the worker a crash; the next worker goes on behind it.
    """
    started, number = time.monotonic(), first
    while True:
        worker = _Worker(chosen.name, seed, number)
        try:
            while True:
                done = number - first
                if (most is not None and done >= most) or (done >= least and time.monotonic() - started >= seconds):
                    return
                outcome = worker.next_outcome()
                yield outcome
                number = outcome.number + 1
                if worker.is_over:
                    return
                if not worker.is_alive:
                    break
        finally:
            worker.stop()


class _Worker:
    """A process that runs cases one after another, as it is asked."""

    def __init__(self, class_name: str, seed: int, first: int) -> None:
        # Split off from a process that has imported much and done nothing: importing takes longer than a few cases.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([__name__, "partsketch.cli", "pandas", "pyarrow.parquet", "scipy.stats"])
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, class_name, seed, first), daemon=False)
        self._process.start()
        theirs.close()
        self._class_name, self._seed, self._number = class_name, seed, first
        self.is_alive, self.is_over = True, False

    def next_outcome(self) -> Outcome:
        case, counts_as, started = "", "inputs", time.monotonic()
        try:
            self._ours.send("next")
            # The first answer names the case; the worker may still be loading libraries.
            case, counts_as = self._receive(3 * HANG_SECONDS)
            fault = self._receive(2 * HANG_SECONDS)
        except TimeoutError:
            self.is_alive = False
            fault = Fault("hang", f"it did not end within {2 * HANG_SECONDS:.0f} s")
        except (EOFError, OSError):
            self.is_alive = False
            self._process.join(10)
            what = "the process died" if case else "the case could not be made: the process died"
            fault = Fault("traceback", f"{what} with exit code {self._process.exitcode}")
            if not case:
                # The generator ended: there are no other cases behind this one.
                self.is_over = True
        number, self._number = self._number, self._number + 1
        seconds = time.monotonic() - started
        return Outcome(self._class_name, self._seed, number, case, counts_as, seconds, fault)  # type: ignore[arg-type]

    def _receive(self, seconds: float) -> Any:
        if not self._ours.poll(seconds):
            raise TimeoutError
        return self._ours.recv()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._ours.close()
        self._process.join(2)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(channel: Connection, class_name: str, seed: int, first: int) -> None:
    """Run cases when asked; runs in a process of its own."""
    # Written through a copy: cases redirect and close the streams.
    faulthandler.enable(os.fdopen(os.dup(2), "w"))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    cases = islice(AttackClass(class_name, 1).cases(seed), first, None)
    for case in cases:
        with contextlib.suppress(EOFError, OSError):
            if channel.recv() != "next":
                return
            channel.send((case.name, case.counts_as))
            with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
                fault = case.attack(Path(folder))
            channel.send(fault)
            continue
        return
