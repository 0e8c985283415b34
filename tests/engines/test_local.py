"""The local engine: order, errors, stopping, and leaving no traces."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from partsketch import InputError, LocalEngine, SketchedRegression
from partsketch.engines.base import Outcomes, get_engine, using_engine
from partsketch.engines.local import usable_cores
from partsketch.fitting.fit import fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sketches.base import SEGMENT_ROWS, SketchSpecification
from partsketch.sources import DenseBlock, Encoding
from partsketch.sources.base import Capabilities
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import PassRequest, SummaryRequest, Task


@dataclass(frozen=True)
class MadeUpRows(Capabilities):
    """Rows without storage; some ranges are slow to read, some fail."""

    row_count: int
    slow_until: int = 0
    fail_from: tuple[int, ...] = ()
    feature_names: tuple[str, ...] = ("a",)
    target_names: tuple[str, ...] = ("b",)
    replayable: bool = True
    random_access: bool = True
    boundaries: tuple[int, ...] = ()
    files: tuple[Any, ...] = ()
    partition_values: tuple[str, ...] = ()
    has_weights: bool = False
    encoding: Encoding = Encoding()  # noqa: RUF009
    description: str = "made-up rows"

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
        for begin in range(start, self.row_count if stop is None else stop, block_rows):
            end = min(begin + block_rows, self.row_count if stop is None else stop)
            if begin < self.slow_until:
                time.sleep(0.2)
            for row in self.fail_from:
                if begin <= row < end:
                    raise InputError(f"row {row} cannot be read")
            values = np.sin(np.arange(begin, end, dtype=np.float64))[:, None]
            yield DenseBlock(np.arange(begin, end), values, 2 * values)

    def counted(self) -> MadeUpRows:
        return self


def options(**changes: Any) -> FitOptions:
    values: dict[str, Any] = {
        "method": "exact", "n_partitions": 1, "partition_by": "order", "remainder": "spread",
        "sketch": "gaussian", "sketch_size": None, "fit_intercept": True, "seed": 0, **changes,
    }  # fmt: skip
    return FitOptions(**values)


def test_results_come_in_order_whoever_is_first() -> None:
    source = MadeUpRows(6 * SEGMENT_ROWS, slow_until=SEGMENT_ROWS)
    slow = fit_source(source, options(), LocalEngine(4))
    quick = fit_source(MadeUpRows(6 * SEGMENT_ROWS), options(), LocalEngine(1))
    assert slow.summaries == quick.summaries


def test_the_error_of_the_earliest_rows_wins() -> None:
    """The first failing range is read slowly, later ones fail at once."""
    fails = (SEGMENT_ROWS - 1, SEGMENT_ROWS + 5, 2 * SEGMENT_ROWS, 4 * SEGMENT_ROWS)
    source = MadeUpRows(6 * SEGMENT_ROWS, slow_until=SEGMENT_ROWS, fail_from=fails)
    for threads in (1, 2, 4):
        with pytest.raises(InputError, match=f"row {SEGMENT_ROWS - 1} "):
            fit_source(source, options(), LocalEngine(threads))


def test_an_error_stops_the_other_workers() -> None:
    """The other worker has 256 slow blocks, 50 seconds of work, before it: it stops after the block it is at."""
    source = MadeUpRows(1000 * SEGMENT_ROWS, slow_until=1000 * SEGMENT_ROWS, fail_from=(10,))
    started = time.monotonic()
    with pytest.raises(InputError, match="row 10 "):
        fit_source(source, options(), LocalEngine(2, block_rows=SEGMENT_ROWS // 256))
    assert time.monotonic() - started < 15
    assert not [thread for thread in threading.enumerate() if "partsketch" in thread.name]


def _threads() -> list[tuple[str, int]]:
    return [(entry["internal_api"], entry["num_threads"]) for entry in threadpool_info()]


class Watching(MadeUpRows):
    """Notes how many threads the linear algebra may use while rows are read."""

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
        for block in super().read(start, stop, block_rows):
            SEEN.extend(number for _, number in _threads())
            yield block


SEEN: list[int] = []


def test_one_thread_each_and_limits_are_restored() -> None:
    """Tests run with one thread of the library; here it has two before a fit, one in it, and two after."""
    with threadpool_limits(2):
        before = _threads()
        assert {number for _, number in before} == {2}
        SEEN.clear()
        fit_source(Watching(1000), options(), LocalEngine(2))
        assert set(SEEN) == {1}
        assert _threads() == before
        with pytest.raises(InputError):
            fit_source(MadeUpRows(1000, fail_from=(5,)), options(), LocalEngine(2))
        assert _threads() == before


@pytest.mark.skipif(usable_cores() < 2, reason="needs two cores, so that limits can differ")
def test_thread_limits_are_restored_after_fits_side_by_side() -> None:
    """The second fit starts while the first runs and ends after it: both together must leave no limit behind."""
    code = """
        import threading, time
        import numpy as np
        from threadpoolctl import threadpool_info
        from tests.engines.test_local import MadeUpRows, options
        from partsketch import LocalEngine
        from partsketch.fitting.fit import fit_source

        fit_source(MadeUpRows(1000), options(), LocalEngine(1))
        before = [entry["num_threads"] for entry in threadpool_info()]
        def work(rows): fit_source(MadeUpRows(rows, slow_until=rows), options(), LocalEngine(1, 1000))
        threads = [threading.Thread(target=work, args=(rows,)) for rows in (4000, 8000)]
        for thread in threads:
            thread.start()
            time.sleep(0.3)
        for thread in threads:
            thread.join()
        after = [entry["num_threads"] for entry in threadpool_info()]
        assert after == before, (before, after)
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=root, capture_output=True, text=True, timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "2"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


SLOW_FIT = """
    import sys
    from tests.engines.test_local import MadeUpRows, options
    from partsketch import LocalEngine
    from partsketch.fitting.fit import fit_source

    fit_source(MadeUpRows(1000), options(), LocalEngine(2))
    print("started", flush=True)
    rows = 10_000 * 65536
    try:
        source = MadeUpRows(rows, slow_until=rows, random_access=sys.argv[1] == "shared")
        fit_source(source, options(), LocalEngine(2, 256))
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(130)
"""


@pytest.mark.parametrize("access", ["shared", "sequential"])
def test_an_interrupt_stops_cleanly(access: str) -> None:
    """SIGINT to a fit whose every task would take a minute or hours: it ends in seconds, and no thread complains."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SLOW_FIT), access],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        output, errors = process.communicate(timeout=30)
        assert time.monotonic() - sent < 8
    finally:
        process.kill()
    assert output == "stopped\n"
    assert process.returncode == 130
    assert errors == ""


@pytest.mark.parametrize(("threads", "block_rows"), [(0, 10), (-1, 10), (1, 0), (1, -5)])
def test_settings_that_make_no_sense(threads: int, block_rows: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        LocalEngine(threads, block_rows)


def test_engines_are_names_or_objects() -> None:
    assert isinstance(get_engine("local"), LocalEngine)
    engine = LocalEngine(1)
    assert get_engine(engine) is engine
    for wrong in ("mainframe", object(), None):
        with pytest.raises(InputError, match="engine"):
            get_engine(wrong)


def test_engines_made_for_a_fit_are_closed_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cluster(LocalEngine):
        closed = False

        def __enter__(self) -> Cluster:
            return self

        def __exit__(self, *_: object) -> None:
            self.closed = True

    made = Cluster(1)
    monkeypatch.setattr("partsketch.engines.base.engine_class", lambda name: lambda: made)
    with using_engine("local") as engine:
        assert engine is made
        assert not made.closed
    assert made.closed
    own = Cluster(1)
    with using_engine(own) as engine:
        assert engine is own
    assert not own.closed


def test_the_deadline_ends_the_work() -> None:
    """The first and second segments are quick; the third hangs in one read, longer than anyone would wait."""
    release = threading.Event()

    class Hanging(MadeUpRows):
        def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
            if start == 2 * SEGMENT_ROWS:
                release.wait(60)
            yield from super().read(start, stop, block_rows)

    request = SummaryRequest(SketchSpecification("triangular"), single_partition(4 * SEGMENT_ROWS), True)
    tasks = [Task(i * SEGMENT_ROWS, (i + 1) * SEGMENT_ROWS) for i in range(4)]
    list(LocalEngine(1).run(MadeUpRows(4 * SEGMENT_ROWS), request, tasks))  # loads what is compiled
    started = time.monotonic()
    outcomes = list(LocalEngine(1).run(Hanging(4 * SEGMENT_ROWS), request, tasks, started + 2))
    assert 1.9 < time.monotonic() - started < 20
    assert [outcome.tasks for outcome in outcomes] == [(0,), (1,)]
    release.set()
    assert list(LocalEngine(1).run(MadeUpRows(4 * SEGMENT_ROWS), request, [])) == []


def test_an_engine_object_is_used() -> None:
    seen: list[Task] = []

    class Watching(LocalEngine):
        name = "watching"

        def run(self, source: Any, request: PassRequest, tasks: Any, deadline: Any = None) -> Outcomes:
            seen.extend(tasks)
            return super().run(source, request, tasks, deadline)

    X = np.random.default_rng(0).normal(size=(100, 2))
    model = SketchedRegression("average", n_partitions=4, engine=Watching(1)).fit(X, X[:, 0] + X[:, 1] ** 2)
    assert [(task.start, task.stop) for task in seen] == [(0, 25), (25, 50), (50, 75), (75, 100)]
    assert model.model_.record.options["engine"] == "watching"


def test_cores_are_those_this_process_may_use() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """Silence without a terminal, however long it takes."""
    fit_source(MadeUpRows(8 * 8192, slow_until=8 * 8192), options(), LocalEngine(1, 8192))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
