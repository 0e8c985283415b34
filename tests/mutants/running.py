"""Trying mutants: a copy of `src` for every worker, one fault at a time, and the tests that must see it."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.mutants.compiled import Kernels
from tests.mutants.killers import failures
from tests.mutants.outcomes import Outcome, digest_of, revision
from tests.mutants.reading import ROOT, Mutant, MutantError
from tests.warm_process import WarmProcess

Item = TypeVar("Item")
Made = TypeVar("Made")

#: Seconds for the tests of one mutant.
TIMEOUT = 240

#: The time of every file in a copy that is as it should be: a copy that is made anew finds the same compiled code.
_LONG_AGO = 1e9

#: What pytest returns when tests fail, or cannot be collected because the program does not load any more.
_FAILED = (1, 2)

#: What the tests need of others, loaded once. A kernel is compiled so that the compiler is ready, too.
_PREPARATION = """
import hypothesis.extra.numpy, numba, numpy, pandas, pyarrow.csv, pyarrow.dataset, pyarrow.feather, pyarrow.parquet
import pytest, scipy.linalg, scipy.optimize, scipy.sparse, scipy.special, scipy.stats, sklearn.linear_model
numba.njit(lambda x: x[0] + 1.0)(numpy.zeros(2))
"""

_TESTS = """
import sys
numba.config.reload_config()
import partsketch
assert partsketch.__file__.startswith({source!r}), "the tests would look at " + partsketch.__file__
sys.exit(int(pytest.main({arguments!r})))
"""


class Workshop:
    """A copy of the program in which faults are put and taken out again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._source = folder, folder / "src"
        shutil.rmtree(self._source, ignore_errors=True)
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        for path in self._source.rglob("*.py"):
            os.utime(path, (_LONG_AGO, _LONG_AGO))
        self._later = time.time()
        self._kernels = Kernels(self._source)
        # Compiled code is kept from mutant to mutant, apart from that of other workers, whose faults are others.
        self._cache = folder / f"compiled-{self._kernels.digest()}"
        self._cache.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self._source), str(ROOT)]),
            "OPENBLAS_NUM_THREADS": "1",
            # Hypothesis then draws the same examples every time.
            "CI": "mutants",
        }
        self._warm = WarmProcess(_PREPARATION, environment)

    def run(
        self, tests: Sequence[str], cache: Path | None = None, stop: bool = True, seconds: int = TIMEOUT
    ) -> tuple[int | None, str]:
        """Run tests on the copy as it is; return what pytest returns (None: too late) and what it says."""
        options = [*(["-x"] if stop else []), "-q", "--no-header", "--tb=no", "-p", "no:cacheprovider"]
        # Of what is loaded before pytest looks at it, Hypothesis would have its assertions explained.
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        text = _TESTS.format(source=str(self._source), arguments=[*options, *tests])
        out, environment = self.folder / "printed", {"NUMBA_CACHE_DIR": str(cache or self._cache)}
        code = self._warm.run(text, ROOT, out, environment, seconds)
        return code, out.read_text("utf-8", "replace")

    def try_out(self, mutant: Mutant, likely: str = "") -> Outcome:
        """Put a fault in, run its tests, a likely one first, and take it out again."""
        started = time.monotonic()
        with self._put_in(mutant) as cache:
            code, words = self.run([likely], cache) if likely else (0, "")
            # A test that is not there any more cannot be found, and one that passes says nothing.
            if code not in (None, *_FAILED):
                code, words = self.run(mutant.tests, cache)
        if code not in (0, None, *_FAILED):
            raise MutantError(f"{mutant.id}: pytest could not run {' '.join(mutant.tests)} ({_end_of(words)}).")
        result = "hung" if code is None else "killed" if code in _FAILED else "survived"
        killer = "".join(failures(words)[:1]) if result == "killed" else ""
        if result == "killed" and not killer:
            raise MutantError(f"{mutant.id}: no test failed, and yet pytest ended with {code} ({_end_of(words)}).")
        seconds = round(time.monotonic() - started, 1)
        return Outcome(mutant.id, result, seconds, killer, revision(), digest_of(mutant, killer))

    @contextmanager
    def _put_in(self, mutant: Mutant) -> Iterator[Path]:
        """Change the file for a while; give the folder of compiled code."""
        path = self.folder / mutant.file
        stale = self._kernels.made_stale_by(path)
        original, before = path.read_text("utf-8"), path.stat()
        # Python knows a changed file by time and size: every fault gets seconds of its own.
        self._later += 2.0
        path.write_text(mutant.applied(original), "utf-8")
        os.utime(path, (self._later, self._later))
        try:
            with self._copied_cache(stale) if stale else _same(self._cache) as cache:
                yield cache
        finally:
            path.write_text(original, "utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    @contextmanager
    def _copied_cache(self, stale: Sequence[Path]) -> Iterator[Path]:
        """Give a copy of the compiled code but for some files: nothing compiled with a fault outlives it.

        numba knows a kernel by its own file alone, not by those of the kernels that it takes in.
        """
        # What is kept of a kernel begins with the name of its file; one file too many of the same name does no harm.
        gone = shutil.ignore_patterns(*(f"{path.stem}.*" for path in stale))
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            yield shutil.copytree(self._cache, Path(name) / "compiled", ignore=gone)

    def close(self) -> None:
        """End the process that runs the tests."""
        self._warm.close()


@contextmanager
def _same(folder: Path) -> Iterator[Path]:
    yield folder


def _end_of(words: str) -> str:
    return (words.strip().splitlines() or [""])[-1]


class Workshops:
    """Several workshops that work at the same time."""

    def __init__(self, count: int, folder: Path) -> None:
        self._shops = [Workshop(folder / str(number)) for number in range(count)]
        self._free: SimpleQueue[Workshop] = SimpleQueue()
        for shop in self._shops:
            self._free.put(shop)

    def __enter__(self) -> Workshops:
        return self

    def __exit__(self, *_: object) -> None:
        for shop in self._shops:
            shop.close()

    def try_all(
        self, mutants: Sequence[Mutant], likely: Callable[[str], str], go_on: Callable[[], bool]
    ) -> Iterator[Outcome]:
        """Yield what becomes of mutants, as they get done, as long as `go_on` says so.

        What hangs is tried once more in the end, with nothing beside it.
        """

        def one(shop: Workshop, mutant: Mutant) -> Outcome | None:
            return shop.try_out(mutant, likely(mutant.id)) if go_on() else None

        late: list[Mutant] = []
        for mutant, outcome in self._spread(one, mutants):
            if outcome is not None and outcome.result == "hung":
                late.append(mutant)
            elif outcome is not None:
                yield outcome
        for mutant in late:
            if go_on():
                yield self._shops[0].try_out(mutant, likely(mutant.id))

    def failing_anyway(self, tests: Sequence[str]) -> list[str]:
        """Return those of some tests that do not pass on the program as it is."""

        def run(shop: Workshop, part: Sequence[str]) -> list[str]:
            code, words = shop.run(part, stop=False, seconds=3600)
            if code not in (0, *_FAILED):
                raise MutantError(f"pytest could not run the tests that see mutants ({_end_of(words)}).")
            return failures(words)

        count = len(self._shops)
        parts = [part for number in range(count) if (part := tests[number::count])]
        return [test for _, failed in self._spread(run, parts) for test in failed]

    def _spread(self, work: Callable[[Workshop, Item], Made], items: Sequence[Item]) -> Iterator[tuple[Item, Made]]:
        """Yield items with what is made of them, as they get done."""

        def one(item: Item) -> Made:
            shop = self._free.get()
            try:
                return work(shop, item)
            finally:
                self._free.put(shop)

        with ThreadPoolExecutor(len(self._shops)) as pool:
            waiting = {pool.submit(one, item): item for item in items}
            try:
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            finally:
                pool.shutdown(cancel_futures=True)
