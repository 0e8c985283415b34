"""The cost model: laws that hold for any machine, and the numbers of a made-up one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch.model.methods import FIT_METHODS, METHODS
from partsketch.planner import costs
from partsketch.planner.calibration import Calibration, at_width
from partsketch.planner.memory import peak_bytes
from partsketch.planner.work import Work
from partsketch.sketches.base import get_sketch, sketch_kinds
from tests.planner.settings import KINDS, MACHINE


def work(method: str = "partition", **values: object) -> Work:
    sketched = METHODS[method].sketched
    settings = {
        "rows": 1_000_000,
        "columns": 51,
        "targets": 1,
        "method": method,
        "sketch": "gaussian" if sketched else "triangular",
        "partitions": 8,
        "sketch_size": 200 if sketched else None,
    }
    return Work(**{**settings, **values})  # type: ignore[arg-type]


def test_every_sketch_has_its_costs_declared() -> None:
    for kind in sketch_kinds(exact=True):
        assert np.isfinite(get_sketch(kind).cost.flops(200, 50, 1000)), kind


def test_a_sketch_that_is_not_dense_is_timed_as_a_whole() -> None:
    machine = replace(MACHINE, sketched_number={**MACHINE.sketched_number, "srht": 1e-6})
    first = costs.seconds(work(sketch="srht"), machine)
    assert first > 1_000_000 * 52 * 1e-6 / 3
    machine = replace(MACHINE, sketched_number={})
    assert np.isnan(costs.seconds(work(sketch="srht"), machine))
    assert np.isfinite(costs.seconds(work(sketch="gaussian"), machine))


def test_an_orthogonal_sketch_costs_an_exact_pass() -> None:
    """For any number of sketches of the whole, and without having been timed."""
    machine = replace(MACHINE, sketched_number={}, sketch_unit={})
    rows = {"rows": 10_000_000, "sketch_size": 200}
    exact = costs.seconds(work("exact", rows=10_000_000), machine)
    for method in ("whole", "stack", "partition"):
        assert costs.seconds(work(method, sketch="orthogonal", **rows), machine) == pytest.approx(exact, rel=0.05)


# Files with noise are combined, and no plan chooses that.
@pytest.mark.parametrize("method", FIT_METHODS)
@given(
    rows=st.integers(1_000, 10**8),
    columns=st.integers(2, 400),
    more=st.floats(1.1, 10),
)
def test_more_rows_or_columns_never_cost_less(method: str, rows: int, columns: int, more: float) -> None:
    size = 4 * columns if METHODS[method].sketched else None
    base = work(method, rows=rows, columns=columns, sketch_size=size)
    # On one core: a second one may start to help where rows fill another segment.
    machine = replace(MACHINE, cores=1, speedup=1.0)
    for larger in (replace(base, rows=int(rows * more) + 1), replace(base, columns=int(columns * more) + 1)):
        assert costs.seconds(larger, machine) >= costs.seconds(base, machine)
        assert costs.flops(larger) >= costs.flops(base)
    more_rows, wider = replace(base, rows=int(rows * more) + 1), replace(base, columns=int(columns * more) + 1)
    assert peak_bytes(more_rows, 1) >= peak_bytes(base, 1)
    if size is not None:
        wider = replace(wider, sketch_size=4 * wider.columns)
    # Tiles have half the rows once they are too wide.
    assert peak_bytes(wider, 1) >= 0.49 * peak_bytes(base, 1)


def test_work_on_rows_is_shared_by_the_cores() -> None:
    one = replace(MACHINE, cores=1, speedup=1.0)
    even = work(rows=2**20)  # sixteen whole segments for four cores
    rows = costs.row_seconds(even, MACHINE)
    assert costs.seconds(even, one) - costs.seconds(even, MACHINE) == pytest.approx(rows * (1 - 1 / 3))
    alone = work("exact", splittable=False)
    assert costs.seconds(alone, MACHINE) == pytest.approx(costs.seconds(alone, one))


@pytest.mark.parametrize(
    ("rows", "partitions", "method", "evenness"),
    [
        (65_536, 4, "exact", 1.0),  # one segment
        (65_536, 4, "average", 2.0),  # four parts of one
        (100_000, 1, "exact", 100_000 / 65_536),  # the second segment is shorter
        (3 * 65_536, 1, "exact", 1.5),  # one worker has two of three
        (10**9, 1, "exact", 2.0),
    ],
)
def test_cores_wait_for_the_last_task(rows: int, partitions: int, method: str, evenness: float) -> None:
    assert work(method, rows=rows, partitions=partitions).evenness(2) == pytest.approx(evenness)


def test_a_row_group_is_read_by_one_worker() -> None:
    asked = work("average", rows=2**20, storage="Parquet", group_rows=2**20)
    assert asked.evenness(4) == 1.0
    assert replace(asked, group_rows=2**19).evenness(4) == 2.0
    assert replace(asked, storage="memory").evenness(4) == 4.0


def test_counts_of_a_gaussian_sketch() -> None:
    asked = work("whole", partitions=4)
    rows = 1_000_000 * 4 * (2 * 200 * 52 + 200)
    assert costs.flops(asked) == pytest.approx(rows + 2 * 4 * 200 * 52**2)
    assert costs.sent_bytes(asked) == 4 * 200 * 52 * 8
    assert costs.sent_bytes(work("stack")) == 200 * 52 * 8
    assert costs.sent_bytes(work("partition")) == 51 * 8
    assert costs.summary_bytes(work("partition")) == 200 * 52 * 8
    assert costs.sent_bytes(work("exact")) == 52 * 52 * 8
    assert costs.passes(work("exact", extra_passes=1)) == 2


def test_files_cost_their_decoding_and_clusters_their_scheduling() -> None:
    extra = costs.seconds(work(rows=2**20, storage="CSV"), MACHINE) - costs.seconds(work(rows=2**20), MACHINE)
    assert extra == pytest.approx(2**20 * 52 * (2e-7 - 8 * 2e-10) / 3)
    local, dask = (costs.seconds(work(), MACHINE, engine) for engine in ("local", "dask"))
    tasks = 8 * 2  # two segments in each partition of 125,000 rows
    assert dask - local == pytest.approx(tasks * 0.005 + 8 * 200 * 52 * 8 / 1e8)


def test_counting_costs_less_than_reading_and_is_a_pass() -> None:
    once, counted, twice = (
        work(storage="CSV", counting_passes=counting, extra_passes=extra)
        for counting, extra in ((0, 0), (1, 0), (0, 1))
    )
    assert costs.seconds(once, MACHINE) < costs.seconds(counted, MACHINE) < costs.seconds(twice, MACHINE)
    assert costs.passes(counted) == costs.passes(twice) == 2


def test_larger_sketches_cost_a_piece_more_and_samples_every_tile_more() -> None:
    alone = replace(MACHINE, cores=1, speedup=1.0)
    free = replace(alone, sketch_unit={}, copied_byte=0.0)

    def extra(sketch: str, rows: int) -> float:
        asked = work("whole", sketch=sketch, partitions=1, rows=rows)
        return costs.row_seconds(asked, replace(free, sketch_unit={sketch: 1e-6})) - costs.row_seconds(asked, free)

    # Three segments; tiles of 52 columns, padded to 56, have 2048 rows.
    rows = 3 * 65_536
    assert extra("sparse_sign", rows) == pytest.approx(3 * 200 * 52 * 1e-6)
    assert extra("row_sample", rows) == pytest.approx(rows / 2048 * 200 * 1e-6)


@pytest.mark.parametrize("storage", ["memory", "Parquet", "Feather", "CSV"])
def test_memory_does_not_grow_with_rows_but_with_cores(storage: str) -> None:
    asked = work("exact", storage=storage, splittable=storage != "CSV")
    assert peak_bytes(replace(asked, rows=10**9), 2) == peak_bytes(asked, 2)
    grows = peak_bytes(asked, 4) > peak_bytes(asked, 1)
    assert grows == asked.splittable


def test_small_row_groups_need_less_memory_and_large_ones_no_more_than_pages() -> None:
    small, usual, large = (
        peak_bytes(work("exact", storage="Parquet", group_rows=rows), 2) for rows in (1_000, 65_536, 10**7)
    )
    assert small < usual < large
    assert large == peak_bytes(work("exact", storage="Parquet", group_rows=10**6), 2)


@given(st.floats(1, 2000))
def test_values_between_widths_lie_between(width: float) -> None:
    table = {8: 1.0, 64: 10.0, 256: 300.0}
    value = at_width(table, width, 2.0)
    assert value >= 1.0
    if width > 256:
        assert value == pytest.approx(300 * (width / 256) ** 2)
    else:
        assert value <= 300.0 * (1 + 1e-12)


def test_calibrations_survive_json() -> None:
    import json

    assert Calibration.from_dict(json.loads(json.dumps(MACHINE.to_dict()))) == MACHINE
    assert "imaginary" in MACHINE.sentence()
    assert set(KINDS) - {"gaussian"} == set(MACHINE.sketched_number)
