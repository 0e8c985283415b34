"""The Ray engine: datasets, errors, bounded work, stopping, dying workers, addresses."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch import InputError, LocalEngine, SketchedRegression
from partsketch.engines.base import get_engine
from partsketch.engines.gather import make_tasks
from partsketch.fitting.fit import fit_source
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources import DenseBlock
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import Task
from tests.engines.made_up import EXACT, eventually, frame, notes, peak_bytes, quiet
from tests.engines.test_local import MadeUpRows, options

pytestmark = [
    pytest.mark.xdist_group("clusters"),
    # Ray Data sets its own deprecated settings when it makes its defaults.
    pytest.mark.filterwarnings("ignore:`use_:DeprecationWarning"),
    # Dropped rows are part of these tests.
    pytest.mark.filterwarnings("ignore:2 rows with missing values:partsketch.common.errors.PartsketchWarning"),
]


@dataclass(frozen=True)
class NotedRows(MadeUpRows):
    """Rows that leave a note of the process that reads them, and of every block read."""

    folder: str = ""

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
        for block in super().read(start, stop, block_rows):
            with (Path(self.folder) / str(os.getpid())).open("a") as notes:
                notes.write(f"{block.row_numbers[0]}\n")
            yield block


@pytest.mark.parametrize("how", [{}, {"partition_by": "site", "encode": True}, {"method": "exact"}])
def test_datasets_stay_on_the_cluster_and_give_the_same_bits(how: dict[str, Any], ray_engine: Any) -> None:
    import ray.data

    table = frame()
    features = ["a", "b", "colour"] if how.get("encode") else ["a", "b"]
    common: dict[str, Any] = {
        "target": "y",
        "features": features,
        "missing": "drop",
        "random_state": 2,
        "method": "partition",
        **how,
    }
    here = ps.fit(table, n_partitions=3, **common)
    remote = ray.data.from_arrow([table.slice(0, 47_000), table.slice(47_000, 1), table.slice(47_001)])
    there = ps.fit(remote, n_partitions=3, engine=ray_engine, **common)
    np.testing.assert_array_equal(there.coefficients, here.coefficients)
    np.testing.assert_array_equal(there.partition_coefficients, here.partition_coefficients)
    assert there.record.rows_dropped == here.record.rows_dropped == 2
    assert there.record.options["engine"] == "ray"


def test_sketches_of_a_dataset(ray_engine: Any) -> None:
    import ray.data

    table = frame().select(["a", "c", "y"])
    asked: dict[str, Any] = {"sketch_size": 20, "random_state": 0, "site": "north"}
    remote = ray.data.from_arrow([table.slice(0, 47_000), table.slice(47_000)])
    there = ps.sketch(remote, "y", ["a", "c"], engine=ray_engine, **asked)
    assert there.to_bytes() == ps.sketch(table, "y", ["a", "c"], **asked).to_bytes()


def test_a_lazy_dataset_brings_its_engine_and_keeps_its_order(ray_engine: Any, tmp_path: Path) -> None:
    """Files are read at different speeds; rows have the numbers they would have in order."""
    import pyarrow.parquet as pq
    import ray.data

    table = frame(40_000).drop_columns(["colour"]).slice(100)
    for i in range(4):
        pq.write_table(table.slice(i * 10_000, 10_000), tmp_path / f"{i}.parquet")

    def slow_at_first(batch: Any) -> Any:
        time.sleep(0.3 if batch["row"][0] == 100 else 0)
        return batch

    remote = ray.data.read_parquet(str(tmp_path)).map_batches(slow_at_first, batch_format="numpy")
    here = ps.fit(table, "y", ["a", "c"], method="stack", n_partitions=3, random_state=4)
    there = ps.fit(remote, "y", ["a", "c"], method="stack", n_partitions=3, random_state=4)
    np.testing.assert_array_equal(there.coefficients, here.coefficients)
    assert there.record.options["engine"] == "ray"
    with pytest.raises(InputError, match="stays on its cluster: use engine='ray'"):
        ps.fit(remote, "y", engine=LocalEngine(1))


def test_arrays_are_sent_in_parts(ray_engine: Any) -> None:
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(140_000, 3)), generator.normal(size=140_000)
    here = SketchedRegression("stack", n_partitions=3, random_state=5).fit(X, y)
    there = SketchedRegression("stack", n_partitions=3, random_state=5, engine=ray_engine).fit(X, y)
    assert there.summaries_ == here.summaries_
    np.testing.assert_array_equal(there.coef_, here.coef_)


def test_the_error_is_that_of_the_local_engine(ray_engine: Any) -> None:
    import ray.data

    table = frame()
    messages = []
    for data, engine in ((table, "local"), (ray.data.from_arrow([table.slice(0, 30_000), table.slice(30_000)]), "ray")):
        with pytest.raises(InputError) as caught:
            ps.fit(data, "y", ["a", "b"], method="exact", engine=engine)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "row 77" in messages[0]


def test_one_failing_task_leaves_the_others_which_are_merged(ray_engine: Any) -> None:
    source = MadeUpRows(24 * SEGMENT_ROWS, fail_from=(3 * SEGMENT_ROWS + 1,))
    outcomes = list(ray_engine.run(source, EXACT, make_tasks(source, single_partition(source.row_count))))
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    assert [outcome.tasks for outcome in failed] == [(3,)]
    assert str(failed[0].error) == f"row {3 * SEGMENT_ROWS + 1} cannot be read"
    good = [outcome for outcome in outcomes if outcome.error is None]
    assert sorted(task for outcome in good for task in outcome.tasks) == [*range(3), *range(4, 24)]
    assert len(good) <= 3


def test_the_driver_holds_no_more_for_more_rows(ray_engine: Any) -> None:
    """Eight times the rows: no more memory here, and no more tasks at once."""
    from ray.util.state import list_tasks  # noqa: F401  (loaded before memory is looked at)

    fit_source(MadeUpRows(12 * SEGMENT_ROWS), options(), ray_engine)
    before = peak_bytes()
    fit_source(MadeUpRows(100 * SEGMENT_ROWS), options(), ray_engine)
    # The rows are 105 MB; a driver that kept them would be seen.
    assert peak_bytes() - before < 30e6


def test_only_few_tasks_are_under_way(ray_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is submitted beyond two bundles per worker while their results are not taken."""
    from partsketch.engines.ray import engine as module

    most = 0
    submit = module._Run._submit

    def counted(run: Any) -> None:
        nonlocal most
        submit(run)
        most = max(most, len(run._under_way) + len(run._merging) + len(run._to_merge))

    monkeypatch.setattr(module._Run, "_submit", counted)
    fit_source(MadeUpRows(80 * SEGMENT_ROWS), options(), ray_engine)
    assert 4 <= most <= 4 + 2 * module._FAN_IN


def test_closing_stops_the_remote_work(ray_engine: Any, tmp_path: Path) -> None:
    """One task of hours has begun on a worker; nothing is read after the interrupt."""
    endless = NotedRows(
        10_000 * SEGMENT_ROWS, slow_until=10_000 * SEGMENT_ROWS, random_access=False, folder=str(tmp_path)
    )
    outcomes = ray_engine.run(endless, EXACT, [Task(0, endless.row_count)], None)

    def interrupt() -> None:
        eventually(lambda: bool(notes(tmp_path)))
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        list(outcomes)
    assert notes(tmp_path)
    assert eventually(lambda: quiet(tmp_path))


def test_a_deadline_brings_what_is_there(ray_engine: Any) -> None:
    """Eight bundles of two seconds each for two workers."""
    # Workers that were ended before are started again, which may take longer than the deadline.
    fit_source(MadeUpRows(4 * SEGMENT_ROWS), options(), ray_engine)
    # On a busy machine nothing may be done within the first deadline.
    for seconds, count in ((3, 40), (9, 120)):
        slow = MadeUpRows(count * SEGMENT_ROWS, slow_until=count * SEGMENT_ROWS)
        tasks = make_tasks(slow, single_partition(slow.row_count))
        started = time.monotonic()
        outcomes = list(ray_engine.run(slow, EXACT, tasks, started + seconds))
        assert seconds <= time.monotonic() - started < seconds + 5
        done = [task for outcome in outcomes for task in outcome.tasks]
        if done:
            break
    assert done
    assert len(set(done)) == len(done) < len(tasks)


def test_a_killed_worker_changes_nothing(ray_engine: Any, tmp_path: Path) -> None:
    """SIGKILL in the middle of a task: Ray has it done again by another worker."""
    source = NotedRows(10 * SEGMENT_ROWS, slow_until=10 * SEGMENT_ROWS, folder=str(tmp_path))
    expected = fit_source(MadeUpRows(10 * SEGMENT_ROWS), options(), LocalEngine(1))
    killed: list[int] = []

    def kill() -> None:
        eventually(lambda: any(count >= 3 for count in notes(tmp_path).values()))
        killed.append(next(pid for pid, count in notes(tmp_path).items() if count >= 3))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = fit_source(source, options(), ray_engine)
    killer.join()
    assert found.summaries == expected.summaries
    np.testing.assert_array_equal(found.model.coefficients, expected.model.coefficients)
    # 20 blocks in all; those that the killed worker had read were read again by others.
    read = notes(tmp_path)
    assert sum(read.values()) > 20
    assert killed[0] in read
    assert not Path(f"/proc/{killed[0]}").exists()


def test_workers_take_compiled_kernels_from_the_disk(ray_engine: Any) -> None:
    import ray

    fit_source(MadeUpRows(5000), options(method="partition"), ray_engine)

    @ray.remote
    def kernels() -> tuple[int, int]:
        from partsketch.sketches import random as counter_random

        found = [value.stats for value in vars(counter_random).values() if hasattr(value, "stats")]
        return sum(sum(s.cache_hits.values()) for s in found), sum(sum(s.cache_misses.values()) for s in found)

    fit_source(MadeUpRows(8 * SEGMENT_ROWS), options(method="partition"), ray_engine)
    counts = ray.get([kernels.remote() for _ in range(8)])
    assert max(hits for hits, _ in counts) > 0
    assert all(misses == 0 for _, misses in counts)


def test_addresses(ray_engine: Any) -> None:
    """The runtime of the process is taken, and another cannot be had at the same time."""
    import ray

    for address in ("ray", "ray://auto"):
        with get_engine(address) as engine:
            assert engine.name == "ray"
        assert ray.is_initialized()
    with pytest.raises(InputError, match="connected to a Ray runtime already"):
        get_engine("ray://127.0.0.1:1")
