"""Trying mutants: a copy of `src` for every worker, one fault at a time, and the tests that must see it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.killers import Killers, first_failure
from tests.mutants.reading import ROOT, Mutant, MutantError

#: Seconds for the tests of one mutant; a fault that makes them hang counts as seen.
TIMEOUT = 240.0

#: What pytest returns when tests fail, or cannot be collected because the program does not load any more.
_FAILED = (1, 2)

_COMPILED = re.compile(r"\bnjit\b|\bintrinsic\b")


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: "killed", "survived" or "hung", after how long, and the test that saw it."""

    mutant: Mutant
    result: str
    seconds: float
    killer: str


class Workshop:
    """A copy of the program in which faults are put and taken out again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        self._later = time.time()
        # Compiled code is kept from mutant to mutant, apart from that of other workers, whose faults are others.
        self._cache = folder / "compiled"
        found = self._run([sys.executable, "-c", "import partsketch; print(partsketch.__file__)"], self._cache, 60)
        if not found[1].startswith(str(folder)):
            raise MutantError(f"the tests would look at {found[1].strip()} instead of the copy in {folder}")

    def run(self, tests: Sequence[str], cache: Path | None = None) -> tuple[int, str]:
        """Run tests on the copy as it is; return what pytest returns (-1: too late) and what it says."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]
        return self._run(command, cache or self._cache, TIMEOUT)

    def try_out(self, mutant: Mutant, likely: str = "") -> Outcome:
        """Put a fault in, run its tests, a likely one first, and take it out again."""
        path = self.folder / mutant.file
        original, times = path.read_text("utf-8"), path.stat()
        started = time.monotonic()
        with self._cache_for(original) as cache:
            try:
                path.write_text(mutant.applied(original), "utf-8")
                # Python knows a changed file by seconds and size: every fault gets a second of its own.
                self._later += 2.0
                os.utime(path, (self._later, self._later))
                code, words = self.run([likely], cache) if likely else (0, "")
                # A test that is not there any more cannot be found, and one that passes says nothing.
                if code not in (-1, *_FAILED):
                    code, words = self.run(mutant.tests, cache)
            finally:
                path.write_text(original, "utf-8")
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if code not in (0, -1, *_FAILED):
            raise MutantError(f"{mutant.id}: pytest could not run {' '.join(mutant.tests)} ({_end_of(words)}).")
        result = "hung" if code == -1 else "killed" if code in _FAILED else "survived"
        return Outcome(mutant, result, time.monotonic() - started, first_failure(words) if code in _FAILED else "")

    @contextmanager
    def _cache_for(self, source: str) -> Iterator[Path]:
        """Give the folder of compiled code: a new one when code that others inline may change."""
        if not _COMPILED.search(source):
            yield self._cache
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            yield Path(name)

    def _run(self, command: Sequence[str], cache: Path, timeout: float) -> tuple[int, str]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder / "src"), str(ROOT)]),
            "NUMBA_CACHE_DIR": str(cache),
            "OPENBLAS_NUM_THREADS": "1",
            # Hypothesis then draws the same examples every time.
            "CI": "mutants",
        }
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return -1, f"nothing after {timeout:.0f} s"
        return process.returncode, said


def _end_of(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1]


def all_tests(mutants: Sequence[Mutant]) -> list[str]:
    """Return every test that some mutant names; single tests of a file that is named as a whole are in it."""
    named = {test for mutant in mutants for test in mutant.tests}
    return sorted(test for test in named if "::" not in test or test.partition("::")[0] not in named)


def try_all(mutants: Sequence[Mutant], jobs: int, quick: bool = False) -> Iterator[Outcome]:
    """Yield what becomes of the mutants, as they get done.

    First, unless `quick`, all their tests are run on the program as it is: tests that fail anyway see nothing.
    """
    killers = Killers()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        shops: SimpleQueue[Workshop] = SimpleQueue()
        for number in range(jobs):
            shops.put(Workshop(Path(name) / str(number)))

        def check(tests: list[str]) -> None:
            shop = shops.get()
            try:
                for test in tests:
                    code, words = shop.run([test])
                    if code:
                        raise MutantError(f"{test} does not pass on the program as it is ({_end_of(words)}).")
            finally:
                shops.put(shop)

        def one(mutant: Mutant) -> Outcome:
            shop = shops.get()
            try:
                outcome = shop.try_out(mutant, killers.of(mutant.id))
                killers.remember(mutant.id, outcome.killer)
                return outcome
            finally:
                shops.put(shop)

        with ThreadPoolExecutor(jobs) as pool:
            tests = [] if quick else all_tests(mutants)
            for done in [pool.submit(check, tests[number::jobs]) for number in range(jobs)]:
                done.result()
            waiting = [pool.submit(one, mutant) for mutant in mutants]
            try:
                for ended in as_completed(waiting):
                    yield ended.result()
            finally:
                pool.shutdown(cancel_futures=True)
