"""The Spark engine: data frames, errors, failing executors, stopping, sessions."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch import InputError, LocalEngine, SketchedRegression
from partsketch.engines.base import get_engine
from partsketch.engines.gather import make_tasks
from partsketch.engines.spark import SparkEngine
from partsketch.engines.spark import engine as engine_module
from partsketch.fitting.fit import fit_source
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources import DenseBlock
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import Task
from tests.engines.made_up import EXACT, FRAME_ROWS, eventually, frame, notes, peak_bytes, quiet
from tests.engines.test_local import MadeUpRows, options

pytestmark = [
    pytest.mark.xdist_group("clusters"),
    # PySpark says so whenever it is loaded; pandas is not used here.
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Dropped rows are part of these tests.
    pytest.mark.filterwarnings("ignore:2 rows with missing values:partsketch.common.errors.PartsketchWarning"),
]


@dataclass(frozen=True)
class FrailRows(MadeUpRows):
    """Rows whose first reader dies in the middle, the second raises; and which leave notes of the blocks read."""

    folder: str = ""
    dies: bool = False

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
        from pyspark import TaskContext

        for block in super().read(start, stop, block_rows):
            with (Path(self.folder) / str(os.getpid())).open("a") as file:
                file.write(f"{block.row_numbers[0]}\n")
            context = TaskContext.get()
            if self.dies and start == SEGMENT_ROWS and context is not None and context.attemptNumber() == 0:
                os._exit(9)
            yield block


@pytest.mark.parametrize(
    "how",
    [{}, {"partition_by": "site"}, {"encode": True, "partition_by": "file"}],
    ids=["order", "column", "partitions"],
)
def test_data_frames_stay_on_the_cluster_and_give_the_same_bits(
    how: dict[str, Any], spark_engine: Any, rows_in_files: Path
) -> None:
    """Two Spark partitions that fit neither segments nor, except for the last case, our partitions."""
    features = ["a", "b", "colour"] if how.get("encode") else ["a", "b"]
    common: dict[str, Any] = {
        "target": "y",
        "features": features,
        "missing": "drop",
        "random_state": 2,
        "method": "partition",
        **how,
    }
    here = ps.fit(str(rows_in_files), n_partitions=3, **common)
    there = ps.fit(spark_frame(spark_engine), n_partitions=3, engine=spark_engine, **common)
    np.testing.assert_array_equal(there.coefficients, here.coefficients)
    np.testing.assert_array_equal(there.partition_coefficients, here.partition_coefficients)
    assert there.record.rows_dropped == here.record.rows_dropped == 2
    assert there.record.options["engine"] == "spark"


@pytest.fixture(scope="module")
def rows_in_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frame")
    table = frame()
    for name, first, last in (("a", 0, FRAME_ROWS // 2), ("b", FRAME_ROWS // 2, FRAME_ROWS)):
        pq.write_table(table.slice(first, last - first), folder / f"{name}.parquet")
    return folder


def spark_frame(engine: Any) -> Any:
    """Return the same rows in two partitions of Spark, one for each worker."""
    return engine.session.createDataFrame(frame())


def test_sketches_of_a_frame(spark_engine: Any) -> None:
    asked: dict[str, Any] = {"sketch_size": 20, "random_state": 0, "site": "north"}
    there = ps.sketch(spark_frame(spark_engine), "y", ["a", "c"], engine=spark_engine, **asked)
    assert there.to_bytes() == ps.sketch(frame(), "y", ["a", "c"], **asked).to_bytes()


def test_a_frame_brings_its_engine(spark_engine: Any) -> None:
    remote = spark_frame(spark_engine)
    there = ps.fit(remote, "y", ["a", "c"], method="exact")
    assert there.record.options["engine"] == "spark"
    np.testing.assert_array_equal(there.coefficients, ps.fit(frame(), "y", ["a", "c"], method="exact").coefficients)
    with pytest.raises(InputError, match="stays on its cluster: use engine='spark'"):
        ps.fit(remote, "y", engine=LocalEngine(1))


def test_a_frame_that_changes_is_noticed(spark_engine: Any, tmp_path: Path) -> None:
    """The second time Spark makes the rows, there are fewer: the answer would be of rows that never were together."""
    flag = tmp_path / "made"

    def changing(batches: Any) -> Any:
        first = not flag.exists()
        flag.touch()
        for batch in batches:
            yield batch if first else batch.slice(1)

    from partsketch.engines.spark.frame import quietly

    with quietly():
        remote = spark_engine.session.range(1000, numPartitions=1).selectExpr("id AS x", "id * 2 AS y")
        remote = remote.mapInArrow(changing, "x long, y long")
    with pytest.raises(InputError, match=r"Chunk 0 of the Spark data frame has 999 rows now, and had 1000.*persist"):
        ps.fit(remote, "y", method="exact", engine=spark_engine)


def test_the_error_is_that_of_the_local_engine(spark_engine: Any) -> None:
    """Row 77 is bad, and row 70,003 in another partition; the message names the first."""
    from partsketch.sources import open_source

    with pytest.raises(InputError) as expected:
        ps.fit(frame(), "y", ["a", "b"], method="exact")
    source = open_source(spark_frame(spark_engine), target="y", features=["a", "b"], engine=spark_engine)
    with pytest.raises(InputError) as caught:
        fit_source(source, options(), spark_engine)
    assert str(caught.value) == str(expected.value)
    assert "row 77" in str(caught.value)


def test_arrays_are_sent_in_parts(spark_engine: Any) -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(140_000, 3)), generator.normal(size=140_000)
    here = SketchedRegression("stack", n_partitions=3, random_state=5).fit(X, y)
    there = SketchedRegression("stack", n_partitions=3, random_state=5, engine=spark_engine.session).fit(X, y)
    assert there.summaries_ == here.summaries_
    np.testing.assert_array_equal(there.coef_, here.coef_)


def test_one_failing_task_leaves_the_others_which_are_merged(spark_engine: Any) -> None:
    source = MadeUpRows(80 * SEGMENT_ROWS, fail_from=(3 * SEGMENT_ROWS + 1,))
    outcomes = list(spark_engine.run(source, EXACT, make_tasks(source, single_partition(source.row_count))))
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [outcome.tasks for outcome in failed] == [(3,)]
    assert str(failed[0].error) == f"row {3 * SEGMENT_ROWS + 1} cannot be read"
    good = [outcome for outcome in outcomes if outcome.error is None]
    assert sorted(task for outcome in good for task in outcome.tasks) == [*range(3), *range(4, 80)]
    # Eight bundles of ten tasks.
    assert len(good) <= 8


def test_the_driver_holds_no_more_for_more_rows(spark_engine: Any) -> None:
    fit_source(MadeUpRows(12 * SEGMENT_ROWS), options(), spark_engine)
    before = peak_bytes()
    fit_source(MadeUpRows(100 * SEGMENT_ROWS), options(), spark_engine)
    # The rows are 105 MB; a driver that kept them would be seen.
    assert peak_bytes() - before < 30e6


def test_a_python_worker_that_dies_changes_nothing(spark_engine: Any, tmp_path: Path) -> None:
    """The first attempt ends its process in the middle; Spark makes another."""
    source = FrailRows(6 * SEGMENT_ROWS, folder=str(tmp_path), dies=True)
    expected = fit_source(MadeUpRows(6 * SEGMENT_ROWS), options(), LocalEngine(1))
    found = fit_source(source, options(), spark_engine)
    assert found.summaries == expected.summaries
    np.testing.assert_array_equal(found.model.coefficients, expected.model.coefficients)
    # Two blocks per segment; the one that was read before the end was read again.
    assert sum(notes(tmp_path).values()) > 12


def test_closing_stops_the_remote_work(spark_engine: Any, tmp_path: Path) -> None:
    endless = FrailRows(10_000 * SEGMENT_ROWS, slow_until=10_000 * SEGMENT_ROWS, folder=str(tmp_path))
    outcomes = spark_engine.run(endless, EXACT, [Task(0, endless.row_count)], None)

    def interrupt() -> None:
        eventually(lambda: bool(notes(tmp_path)))
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        list(outcomes)
    assert notes(tmp_path)
    # Spark gives a Python worker two seconds before it ends it.
    assert eventually(lambda: quiet(tmp_path))


def test_jobs_that_lost_their_group_are_cancelled_too(
    spark_engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt may cost a thread its connection; what it submits by another one belongs to no group."""
    monkeypatch.setattr(type(spark_engine.session.sparkContext), "setJobGroup", lambda *_, **__: None)
    slow = FrailRows(400 * SEGMENT_ROWS, slow_until=400 * SEGMENT_ROWS, folder=str(tmp_path))
    tasks = make_tasks(slow, single_partition(slow.row_count))
    assert not list(spark_engine.run(slow, EXACT, tasks, time.monotonic() + 1))
    assert eventually(lambda: quiet(tmp_path))


def test_a_deadline_ends_and_cancels(spark_engine: Any, tmp_path: Path) -> None:
    slow = FrailRows(400 * SEGMENT_ROWS, slow_until=400 * SEGMENT_ROWS, folder=str(tmp_path))
    tasks = make_tasks(slow, single_partition(slow.row_count))
    started = time.monotonic()
    outcomes = list(spark_engine.run(slow, EXACT, tasks, started + 1))
    assert time.monotonic() - started < 7
    assert not outcomes
    assert eventually(lambda: quiet(tmp_path))


def test_sessions(spark_engine: Any) -> None:
    """The session of the process is taken, and another cannot be had at the same time."""
    for where in ("spark", "spark://local[2]", spark_engine.session):
        with get_engine(where) as engine:
            assert isinstance(engine, SparkEngine)
            assert engine.session is spark_engine.session
        assert spark_engine.session.range(3).count() == 3
    with pytest.raises(InputError, match="has a Spark session already"):
        get_engine("spark://127.0.0.1:1")


@pytest.mark.parametrize("inside", ["0", "x", "", "-1", "2,", "2,0", "100000"])
def test_numbers_of_workers_that_are_none(inside: str) -> None:
    with pytest.raises(
        InputError, match=r"between the brackets stands a number of workers, such as 'spark://local\[2\]'"
    ):
        get_engine(f"spark://local[{inside}]").__enter__()


def test_what_java_says_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Builder:
        def __getattr__(self, name: str) -> Any:
            return lambda *given: self

        def getOrCreate(self) -> None:  # noqa: N802
            raise RuntimeError(
                "An error occurred while calling None.\n: java.lang.Odd: No room here.\n\tat Odd.java:1\n"
            )

    monkeypatch.setattr(engine_module, "_running", lambda session_class: None)
    monkeypatch.setattr(engine_module, "import_session", lambda: SimpleNamespace(builder=Builder()))
    with pytest.raises(InputError, match=r"can be started \(spark://local\[1\]\): java\.lang\.Odd: No room here\.$"):
        SparkEngine("spark://local[1]")


def test_another_thread_does_not_stop_the_session(spark_engine: Any) -> None:
    """No session is active for it in Java; after an interrupt that holds for the first thread too."""

    def open_and_close() -> None:
        with get_engine("spark") as engine:
            sessions.append(engine.session)  # type: ignore[attr-defined]

    sessions: list[Any] = []
    thread = threading.Thread(target=open_and_close)
    thread.start()
    thread.join()
    assert sessions == [spark_engine.session]
    assert spark_engine.session.range(3).count() == 3


def test_executors_without_partsketch_are_named(
    spark_engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A Python with its own library and that of Spark, which Spark itself gives to its workers.
    bare = tmp_path / "python"
    only_spark = "$(printf %s \"$PYTHONPATH\" | tr ':' '\\n' | grep 'zip$' | paste -sd:)"
    bare.write_text(f'#!/bin/sh\nPYTHONPATH={only_spark} exec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(spark_engine.session.sparkContext, "pythonExec", str(bare))
    missing = r"cannot import it \(ModuleNotFoundError: No module named 'partsketch'\); install the same version there"
    with pytest.raises(InputError, match=rf"the executor on {re.escape(socket.gethostname())} {missing}"):
        SparkEngine(spark_engine.session)
    # One that is not there at all.
    monkeypatch.setattr(spark_engine.session.sparkContext, "pythonExec", str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"an executor \(Python .*none\) cannot import it \(Cannot run program"):
        SparkEngine(spark_engine.session)


def test_a_session_with_another_python_is_asked_and_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment may name a Python for workers (PYSPARK_PYTHON), also for a session that is started for a fit."""

    class Session:
        stopped = False
        sparkContext = SimpleNamespace(master="local[2,4]", pythonExec="/usr/bin/other")  # noqa: N815

        def stop(self) -> None:
            self.stopped = True

    made = Session()
    monkeypatch.setattr(engine_module, "_running", lambda session_class: None)
    monkeypatch.setattr(engine_module, "_start", lambda session_class, master, where: made)
    monkeypatch.setattr(engine_module, "_versions", lambda context: {"the executor on odd": "0.0.1"})
    with pytest.raises(InputError, match=r"the executor on odd has 0\.0\.1"):
        SparkEngine()
    assert made.stopped
    made.sparkContext.pythonExec = sys.executable
    SparkEngine()
