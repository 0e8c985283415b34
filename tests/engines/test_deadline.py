"""At the deadline the model is that of the partitions that have arrived."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import partsketch as ps
from partsketch import InputError, LocalEngine, PartsketchWarning, SketchedRegression
from partsketch.engines.base import Engine, Outcomes, TaskOutcome
from partsketch.fitting.fit import fit_source
from partsketch.fitting.options import FitOptions
from partsketch.sketches.base import SEGMENT_ROWS
from partsketch.sources.base import Source
from partsketch.sources.dense_block import DenseBlock
from partsketch.sources.memory.arrays import ArraySource, array_source
from partsketch.summaries.tasks import PassRequest, Task

ROWS, PARTITIONS = 8000, 8
SIZE = ROWS // PARTITIONS
RNG = np.random.default_rng(5)
X = RNG.normal(size=(ROWS, 4))
Y = X @ [1.0, -1.0, 2.0, 0.5] + RNG.normal(size=ROWS) * np.repeat(np.arange(1, 9), SIZE)
WEIGHTS = RNG.uniform(0.5, 2, ROWS)


class Late(Engine):
    """Runs tasks here and now; those of some partitions never arrive, and the deadline passes in no time."""

    name = "late"

    def __init__(self, late: Sequence[int], bundle: bool = False) -> None:
        self.late, self.bundle = late, bundle
        self.deadline: float | None = None

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        self.deadline = deadline
        outcomes = list(LocalEngine(1).run(source, request, [replace(task, apart=True) for task in tasks]))
        here = [one for one in outcomes if tasks[one.tasks[0]].start // SIZE not in self.late]
        if not self.bundle:
            yield from reversed(here)
            return
        from partsketch.summaries.merge import merge_results

        results = [one.result for one in here if one.result is not None]
        numbers = tuple(number for one in here for number in one.tasks)
        yield TaskOutcome(numbers, merge_results(request.merging, results))


def model(method: str, **options: Any) -> SketchedRegression:
    return SketchedRegression(method, n_partitions=PARTITIONS, random_state=1, **options)


@pytest.mark.parametrize("bundle", [False, True])
@pytest.mark.parametrize("averaging", ["equal", "inverse_variance"])
@pytest.mark.parametrize("late", [(0,), (2, 3, 7), (1, 2, 3, 4, 5, 6, 7)])
def test_average_of_the_partitions_that_arrived(late: tuple[int, ...], averaging: str, bundle: bool) -> None:
    """Weights, certificate and intervals are bit for bit those of a fit to the rows of the others."""
    with pytest.warns(PartsketchWarning, match=f"{len(late)} of 8 partitions .* deadline of 30 s"):
        some = model("average", averaging=averaging, engine=Late(late, bundle), deadline=30).fit(X, Y, WEIGHTS)
    kept = ~np.isin(np.arange(ROWS) // SIZE, late)
    alone = SketchedRegression("average", n_partitions=PARTITIONS - len(late), averaging=averaging)
    alone.fit(X[kept], Y[kept], WEIGHTS[kept])
    assert np.array_equal(some.coef_, alone.coef_)
    assert np.array_equal(some.partition_coef_, alone.partition_coef_)
    assert some.certificate_ == alone.certificate_
    assert np.array_equal(some.conf_int(), alone.conf_int())
    if len(late) < 7:
        assert np.array_equal(some.conf_int(kind="spread"), alone.conf_int(kind="spread"))
    record = some.model_.record
    assert [part.name for part in record.partitions_left_out] == [str(number) for number in late]
    assert (record.row_count, record.weight_sum) == (alone.model_.record.row_count, alone.model_.record.weight_sum)


@pytest.mark.parametrize("method", ["partition", "stack"])
def test_sketches_of_the_partitions_that_arrived(method: str) -> None:
    """The last two are late, so that the others have the random numbers they would have had without them."""
    with pytest.warns(PartsketchWarning, match="2 of 8 partitions were left out"):
        some = model(method, engine=Late((6, 7)), deadline=30).fit(X, Y)
    alone = SketchedRegression(method, n_partitions=6, random_state=1).fit(X[: 6 * SIZE], Y[: 6 * SIZE])
    assert np.array_equal(some.coef_, alone.coef_)
    assert some.certificate_ == alone.certificate_
    assert np.array_equal(some.conf_int(), alone.conf_int())


@pytest.mark.parametrize("fails", [False, True])
def test_half_a_partition_does_not_count(fails: bool) -> None:
    """Three partitions of two segments each; of the second one a segment arrives and the other does not."""
    size = 2 * SEGMENT_ROWS
    rng = np.random.default_rng(2)
    columns = {name: rng.normal(size=3 * size) for name in ("a", "b", "y")}
    columns["a"][rng.choice(3 * size, 500, replace=False)] = np.nan
    rows = pa.table(columns)

    class OneMissing(Late):
        def run(self, source: Any, request: Any, tasks: Any, deadline: float | None = None) -> Outcomes:
            assert len(tasks) == 6
            for outcome in LocalEngine(2).run(source, request, tasks):
                if outcome.tasks != (3,):
                    yield outcome
                elif fails:
                    yield TaskOutcome((3,), None, OSError("the disk is gone"))

    options: dict[str, Any] = {"target": "y", "method": "average", "missing": "drop"}
    asked = {"on_partition_error": "drop"} if fails else {"deadline": 30}
    reason = "OSError: the disk is gone" if fails else "deadline"
    with pytest.warns(PartsketchWarning, match=f"'1' .*{reason}|rows with missing values"):
        some = ps.fit(rows, n_partitions=3, engine=OneMissing(()), **options, **asked)
    others = pa.concat_tables([rows[:size], rows[2 * size :]])
    with pytest.warns(PartsketchWarning, match="rows with missing values"):
        alone = ps.fit(others, n_partitions=2, **options)
    assert np.array_equal(some.coefficients, alone.coefficients)
    assert some.certificate == alone.certificate
    assert np.array_equal(some.conf_int(), alone.conf_int())
    assert (some.record.row_count, some.record.rows_dropped) == (alone.record.row_count, alone.record.rows_dropped)
    (left_out,) = some.record.partitions_left_out
    assert (left_out.name, left_out.row_count) == ("1", size)
    assert reason in left_out.reason


def test_nobody_is_late() -> None:
    engine = Late(())
    in_time = model("average", engine=engine, deadline=1000).fit(X, Y)
    assert np.array_equal(in_time.coef_, model("average").fit(X, Y).coef_)
    assert in_time.model_.record.partitions_left_out == ()
    assert engine.deadline is not None
    assert 900 < engine.deadline - time.monotonic() <= 1000


def test_a_sketch_that_reads_twice_has_no_deadline() -> None:
    with pytest.raises(InputError, match="'leverage_sample' reads the rows twice"):
        model("partition", sketch="leverage_sample", sketch_size=60, deadline=30).fit(X, Y)


def test_fewer_than_enough_is_one_clear_error() -> None:
    late = model("average", engine=Late((1, 2, 3)), deadline=2.5, min_partitions=6)
    sentence = "Only 5 of 8 partitions arrived within the deadline of 2.5 s, fewer than min_partitions=6: allow more"
    with pytest.raises(InputError, match=sentence):
        late.fit(X, Y)
    with pytest.raises(InputError, match=r"Only 0 of 8 .* fewer than min_partitions=1"):
        model("average", engine=Late(range(8)), deadline=2.5).fit(X, Y)
    with pytest.warns(PartsketchWarning, match="left out"):
        late.set_params(min_partitions=5).fit(X, Y)


def test_an_engine_may_not_lose_tasks_without_a_deadline() -> None:
    with pytest.raises(RuntimeError, match="did not report"):
        model("average", engine=Late((3,))).fit(X, Y)


def test_failing_and_late_at_once() -> None:
    """Partition 1 cannot be used, partition 5 is late; without "drop" the first is an error."""
    spoilt = X.copy()
    spoilt[SIZE + 7, 0] = np.inf
    both = model("average", engine=Late((5,)), deadline=30, on_partition_error="drop")
    with pytest.warns(PartsketchWarning, match=r"'1' \(.*infinity.*; '5' \(.*deadline"):
        both.fit(spoilt, Y)
    assert [part.name for part in both.model_.record.partitions] == ["0", "2", "3", "4", "6", "7"]
    with pytest.raises(InputError, match="infinity"):
        model("average", engine=Late((5,)), deadline=30).fit(spoilt, Y)


def test_a_read_that_hangs() -> None:
    """A real straggler on the local engine: the fourth of eight partitions hangs in one read."""
    release = threading.Event()

    class Hanging(ArraySource):
        def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[DenseBlock]:
            if start == 3 * SIZE:
                release.wait(60)
            yield from super().read(start, stop, block_rows)

    quick = array_source(X, Y)
    assert isinstance(quick, ArraySource)
    source = Hanging(quick.features, quick.targets, None, quick.feature_names, quick.target_names)
    options = FitOptions("average", PARTITIONS, "order", "spread", "gaussian", None, True, 0, deadline=2.0)
    fit_source(quick, options, LocalEngine(2))  # loads what is compiled
    started = time.monotonic()
    fit = fit_source(source, options, LocalEngine(2))
    assert time.monotonic() - started < 20
    release.set()
    assert [part.name for part in fit.model.record.partitions_left_out] == ["3"]
    assert fit.model.record.row_count == 7 * SIZE
