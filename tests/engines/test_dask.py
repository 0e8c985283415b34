"""The Dask engine: collections, errors, bounded work, stopping, dying workers, and leaving no traces."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import partsketch as ps
from partsketch import InputError, LocalEngine, SketchedRegression
from partsketch.engines.base import get_engine
from partsketch.engines.gather import make_tasks
from partsketch.fitting.fit import fit_source
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.summaries.partitions import single_partition
from tests.engines import made_up
from tests.engines.made_up import EXACT, FRAME_ROWS, eventually, peak_bytes
from tests.engines.test_local import MadeUpRows, options

da = pytest.importorskip("dask.array") if not os.environ.get("CI") else __import__("dask.array").array
dd = pytest.importorskip("dask.dataframe") if not os.environ.get("CI") else __import__("dask.dataframe").dataframe

pytestmark = pytest.mark.xdist_group("clusters")


def frame(rows: int = FRAME_ROWS) -> pd.DataFrame:
    return made_up.frame(rows).drop_columns(["row"]).to_pandas()


def running(engine: Any) -> int:
    """Count what the workers are executing and what they have been asked to."""
    executing: dict[str, int] = engine.client.run(lambda dask_worker: dask_worker.state.executing_count)
    return sum(executing.values()) + sum(map(len, engine.client.processing().values()))


ARRAYS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "aligned": lambda X, y: (da.from_array(X, chunks=(30_000, -1)), da.from_array(y, chunks=30_000)),
    "columns in chunks": lambda X, y: (da.from_array(X, chunks=(47_000, 2)), da.from_array(y, chunks=30_000)),
    "target in memory": lambda X, y: (da.from_array(X, chunks=(47_000, 2)), y),
    "unknown chunk sizes": lambda X, y: (lambda A: (A[A[:, 0] < 100], da.from_array(y, chunks=30_000)[A[:, 0] < 100]))(
        da.from_array(X, chunks=(30_000, -1))
    ),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_stay_on_the_cluster_and_give_the_same_bits(kind: str, dask_engine: Any) -> None:
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(140_000, 3)), generator.normal(size=140_000)
    here = SketchedRegression("stack", n_partitions=3, random_state=5).fit(X, y)
    there = SketchedRegression("stack", n_partitions=3, random_state=5, engine=dask_engine).fit(*ARRAYS[kind](X, y))
    assert there.summaries_ == here.summaries_
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert there.intercept_ == here.intercept_
    assert there.n_features_in_ == 3
    assert there.model_.record.options["engine"] == "dask"


def test_weights_and_several_targets(dask_engine: Any) -> None:
    generator = np.random.default_rng(1)
    X, y, w = generator.normal(size=(9000, 3)), generator.normal(size=(9000, 2)), generator.random(9000)
    here = SketchedRegression("exact").fit(X, y, w)
    remote = [da.from_array(part, chunks=(2000, *part.shape[1:])) for part in (X, y, w)]
    there = SketchedRegression("exact", engine=dask_engine).fit(*remote)
    np.testing.assert_array_equal(there.coef_, here.coef_)


@pytest.mark.filterwarnings("ignore:2 rows with missing values or of weight zero were dropped")
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"method": "partition"},
        {"method": "partition", "partition_by": "site"},
        {"method": "partition", "encode": True, "partition_by": "file"},
        {"method": "exact"},
    ],
)
def test_data_frames_of_unknown_sizes(how: dict[str, Any], dask_engine: Any) -> None:
    values = frame()
    features = None if how.get("encode") else ["a", "b", "c"]
    # What a filter leaves is known to nobody before it has run.
    whole = dd.from_pandas(values, npartitions=4)
    remote = whole[whole["a"] < 100]
    common: dict[str, Any] = {"target": "y", "features": features, "missing": "drop", "random_state": 2, **how}
    common.setdefault("n_partitions", 3)
    there = ps.fit(remote, engine=dask_engine, **common)
    if how.get("partition_by") == "file":
        # A chunk is to a collection what a file is to a folder.
        values["chunk"] = np.repeat(range(4), [len(part) for part in whole.partitions])
        common["features"] = [name for name in values.columns if name not in ("y", "chunk")]
        common["partition_by"] = "chunk"
    here = ps.fit(values, **common)
    if how.get("partition_by") != "file":
        np.testing.assert_array_equal(there.coefficients, here.coefficients)
        np.testing.assert_array_equal(there.partition_coefficients, here.partition_coefficients)
    assert there.feature_names == here.feature_names
    assert there.record.rows_dropped == here.record.rows_dropped == 2
    assert [part.row_count for part in there.record.partitions] == [part.row_count for part in here.record.partitions]


def test_sketches_of_a_collection_and_answers(dask_engine: Any) -> None:
    """A collection is sketched where it lies, with the same bytes; a question is not answered from it."""
    rng = np.random.default_rng(0)
    values = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "y"])
    rows = dd.from_pandas(values, npartitions=3)
    asked: dict[str, Any] = {"sketch_size": 20, "random_state": 0, "site": "north"}
    here, there = ps.sketch(values, "y", **asked), ps.sketch(rows, "y", engine=dask_engine, **asked)
    assert there.to_bytes() == here.to_bytes()
    rounds = ps.refine(here)
    with pytest.raises(
        InputError, match=r"^A question is answered from files or rows in memory, not from a .*: write it"
    ):
        ps.answer(rounds.question, rows, site="north", engine=dask_engine)
    with pytest.raises(InputError, match="pass paths of sketch files"):
        ps.refine(rows)


def test_a_persisted_collection_and_its_own_client(dask_engine: Any) -> None:
    """Without an engine the data bring theirs: the client of the process."""
    values = frame(20_000).drop(columns="colour").dropna()
    here = ps.fit(values, "y", method="stack", random_state=4)
    with dask_engine.client.as_current():
        persisted = dd.from_pandas(values, npartitions=3).persist()
        there = ps.fit(persisted, "y", method="stack", random_state=4)
    np.testing.assert_array_equal(there.coefficients, here.coefficients)
    assert there.record.options["engine"] == "dask"
    with dask_engine.client.as_current():
        rows = da.from_array(values.to_numpy(), chunks=(3000, -1))
        X, y = rows[:, :-1].persist(), rows[:, -1].persist()
        arrays = SketchedRegression("stack", random_state=4).fit(X, y)
    np.testing.assert_array_equal(arrays.coef_, here.coefficients[:, 0])
    with pytest.raises(InputError, match="stays on its cluster: use engine='dask'"):
        ps.fit(persisted, "y", engine=LocalEngine(1))


def test_what_cannot_be_used(dask_engine: Any) -> None:
    X = da.ones((100, 2), chunks=(50, 2))
    model = SketchedRegression("exact", engine=dask_engine)
    with pytest.raises(InputError, match="X has 100 rows but y has 99"):
        model.fit(X, da.ones(99, chunks=50))
    with pytest.raises(InputError, match="2 chunks of rows and y has 1, of unknown sizes"):
        model.fit(X[X[:, 0] > 0], da.ones(100, chunks=100))
    with pytest.raises(InputError, match="complex"):
        model.fit(X.astype(complex), da.ones(100, chunks=50))
    with pytest.raises(InputError, match="'site' names a column"):
        SketchedRegression(partition_by="site", engine=dask_engine).fit(X, X[:, 0])
    with pytest.raises(InputError, match="no target column 'z'"):
        ps.fit(X, "z", engine=dask_engine)
    with pytest.raises(InputError, match="Dask Array cannot be used"):
        ps.fit(da.ones(5), "x0", engine=dask_engine)
    with pytest.raises(InputError, match="at least 1"):
        get_engine("dask").__class__(workers=0)  # type: ignore[call-arg]


def test_the_error_is_that_of_the_local_engine(dask_engine: Any) -> None:
    """Two rows are bad in two tasks; the first is named, in the same words."""
    values = frame()
    messages = []
    for data, engine in ((values, "local"), (dd.from_pandas(values, npartitions=6), dask_engine)):
        with pytest.raises(InputError) as caught:
            ps.fit(data, "y", ["a", "b"], method="exact", engine=engine)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "row 77" in messages[0]


def test_one_failing_task_leaves_the_others(dask_engine: Any) -> None:
    source = MadeUpRows(8 * SEGMENT_ROWS, fail_from=(3 * SEGMENT_ROWS + 1,))
    outcomes = list(dask_engine.run(source, EXACT, make_tasks(source, single_partition(source.row_count))))
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [outcome.tasks for outcome in failed] == [(3,)]
    assert str(failed[0].error) == f"row {3 * SEGMENT_ROWS + 1} cannot be read"
    good = [outcome for outcome in outcomes if outcome.error is None]
    assert sorted(task for outcome in good for task in outcome.tasks) == [0, 1, 2, 4, 5, 6, 7]
    # Merged on the cluster: fewer outcomes than tasks.
    assert len(good) < 7


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_driver_and_scheduler_hold_no_more_for_more_rows(dask_engine: Any) -> None:
    """Sixteen times the rows: no more memory here, and no more tasks at once (the scheduler runs in this process)."""
    known: list[int] = []
    fit_source(MadeUpRows(25 * SEGMENT_ROWS), options(), dask_engine)
    before = peak_bytes()
    source = MadeUpRows(400 * SEGMENT_ROWS)
    tasks = make_tasks(source, single_partition(source.row_count))
    assert len(tasks) == 400
    for _ in dask_engine.run(source, EXACT, tasks):
        known.append(len(dask_engine.client.cluster.scheduler.tasks))
    # The rows are 420 MB; a driver that kept them, or their order, would be seen.
    assert peak_bytes() - before < 30e6
    # Results come while others are still made: two merges for each of two threads.
    assert len(known) >= 4
    # Of 26 bundles, four merges and a request: seven bundles under way, at most two groups of seven that wait to be
    # merged, and their merges.
    assert max(known) < 24
    assert eventually(lambda: not dask_engine.client.cluster.scheduler.tasks)


SLOW = MadeUpRows(1000 * SEGMENT_ROWS, slow_until=1000 * SEGMENT_ROWS)


def test_closing_stops_the_remote_work(dask_engine: Any) -> None:
    """One task of hours has begun on a worker; cancelling alone would let it run on."""
    endless = MadeUpRows(10_000 * SEGMENT_ROWS, slow_until=10_000 * SEGMENT_ROWS, random_access=False)
    for source in (endless, SLOW):
        outcomes = dask_engine.run(source, EXACT, make_tasks(source, single_partition(source.row_count)), None)
        main = threading.main_thread().ident
        assert main is not None
        threading.Timer(0.8, signal.pthread_kill, [main, signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            list(outcomes)
        assert eventually(lambda: running(dask_engine) == 0)
        assert eventually(lambda: not dask_engine.client.cluster.scheduler.tasks)


def test_a_deadline_brings_what_is_there(dask_engine: Any) -> None:
    tasks = make_tasks(SLOW, single_partition(SLOW.row_count))
    # Workers load what they need, which may take longer than the deadline.
    fit_source(MadeUpRows(4 * SEGMENT_ROWS), options(), dask_engine)
    # On a busy machine nothing may be done within the first deadline.
    for seconds in (3, 10):
        started = time.monotonic()
        outcomes = list(dask_engine.run(SLOW, EXACT, tasks, started + seconds))
        assert time.monotonic() - started < seconds + 5
        done = [task for outcome in outcomes for task in outcome.tasks]
        if done:
            break
    assert done
    # Two workers need 0.2 seconds for a task at least.
    assert len(set(done)) == len(done) <= 10 * seconds + 2
    assert all(outcome.error is None for outcome in outcomes)
    assert eventually(lambda: running(dask_engine) == 0)


def test_a_killed_worker_changes_nothing(dask_engine: Any) -> None:
    """SIGKILL in the middle: what the worker had done is done again by another."""
    source = MadeUpRows(14 * SEGMENT_ROWS, slow_until=14 * SEGMENT_ROWS)
    expected = fit_source(MadeUpRows(14 * SEGMENT_ROWS), options(), LocalEngine(1))
    pids = list(dask_engine.client.run(os.getpid).values())

    def kill() -> None:
        # After its first results exist, which are lost with it.
        eventually(lambda: any("task" in str(key) for keys in dask_engine.client.has_what().values() for key in keys))
        os.kill(pids[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = fit_source(source, options(), dask_engine)
    killer.join()
    assert found.summaries == expected.summaries
    np.testing.assert_array_equal(found.model.coefficients, expected.model.coefficients)
    # The nanny starts another worker; the tests that follow need both.
    assert eventually(lambda: len(dask_engine.client.nthreads()) == 2, 30)
    assert pids[0] not in dask_engine.client.run(os.getpid).values()


def test_addresses(
    dask_engine: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from partsketch.cli import main

    monkeypatch.setattr("partsketch.engines.dask.engine.CONNECT_SECONDS", 1)
    frame(5000).drop(columns="colour").dropna().to_parquet(tmp_path / "rows.parquet")
    address = dask_engine.client.scheduler.address.replace("tcp://", "dask://")
    command = ["fit", str(tmp_path / "rows.parquet"), "--target", "y", "--seed", "1", "--json"]
    models = []
    for engine in ("local", address):
        with pytest.raises(SystemExit) as code:
            main([*command, "--engine", engine])
        assert code.value.code == 0
        models.append(capfd.readouterr().out.split('"partition_coefficients"')[1].split('"record"')[0])
    assert models[0] == models[1]
    with pytest.raises(SystemExit) as code:
        main([*command, "--engine", "dask://127.0.0.1:1"])
    assert code.value.code == 2
    assert "Nobody answers at dask://127.0.0.1:1" in capfd.readouterr().err


def test_an_interrupt_while_the_cluster_starts_closes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a cluster cannot be closed; Dask says so in tracebacks when Python ends."""
    done: list[str] = []

    class Started:
        asynchronous = False

        def __init__(self, *_: Any, **__: Any) -> None:
            signal.raise_signal(signal.SIGINT)
            done.append("started")

        @staticmethod
        def current() -> None:
            raise ValueError

        def close(self) -> None:
            done.append("closed")

    monkeypatch.setattr("distributed.LocalCluster", Started)
    monkeypatch.setattr("distributed.Client", Started)
    with pytest.raises(KeyboardInterrupt):
        get_engine("dask").__enter__()
    assert done == ["started", "started", "closed", "closed"]


def test_a_cluster_of_our_own_is_stopped(tmp_path: Path) -> None:
    """Started for one fit, gone afterwards."""
    import multiprocessing

    before = set(multiprocessing.active_children())
    threads = set(threading.enumerate())
    frame(5000).drop(columns="colour").dropna().to_parquet(tmp_path / "rows.parquet", index=False)
    here = ps.fit(str(tmp_path / "rows.parquet"), "y", random_state=1)
    there = ps.fit(str(tmp_path / "rows.parquet"), "y", random_state=1, engine="dask")
    np.testing.assert_array_equal(there.coefficients, here.coefficients)
    assert set(multiprocessing.active_children()) <= before
    assert eventually(lambda: not [t for t in set(threading.enumerate()) - threads if not t.daemon])
