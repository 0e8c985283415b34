"""Memory: a fit says before it starts that there is too little, and takes no more than it should."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import partsketch as ps
from partsketch import InputError
from partsketch.common import free_memory
from partsketch.engines.wholes import MOST_WAITING
from partsketch.fitting import memory
from partsketch.fitting.memory import Sizes, gathering_bytes, solving_bytes
from partsketch.sketches.base import SketchSpecification
from partsketch.sources.memory.arrays import array_source
from partsketch.summaries.partitions import Partitioning, single_partition
from partsketch.summaries.tasks import SummaryRequest

MB = 10**6


def _table(columns: int = 30, rows: int = 400) -> pa.Table:
    draw = np.random.default_rng(0)
    values = {f"x{i}": draw.normal(size=rows) for i in range(columns)}
    return pa.table({**values, "g": np.arange(rows) % 40, "y": draw.normal(size=rows)})


def _with_free(monkeypatch: pytest.MonkeyPatch, free: float) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: int(free))
    # So that small fits stand for large ones.
    monkeypatch.setattr(memory, "LITTLE", 0)


FEATURES = [f"x{i}" for i in range(30)]

FITS: list[tuple[dict[str, Any], str]] = [
    ({"method": "exact"}, "choose fewer features, use route='iterate'"),
    ({"method": "average", "n_partitions": 4}, "choose fewer features, or use fewer partitions"),
    ({"method": "partition", "n_partitions": 2, "sketch_size": 3000}, "use a smaller sketch_size or fewer partitions"),
    ({"method": "stack", "n_partitions": 2, "sketch_size": 3000}, "use a smaller sketch_size or fewer partitions"),
    ({"method": "whole", "n_partitions": 5, "sketch_size": 100}, "choose fewer features, or use fewer partitions"),
    ({"method": "stack", "n_partitions": 40, "partition_by": "shuffle"}, "use fewer partitions"),
    ({"method": "average", "partition_by": "g"}, "use fewer partitions"),
]


@pytest.mark.parametrize(("options", "way_out"), FITS)
def test_a_fit_without_memory_is_refused_before_a_row_is_read(
    options: dict[str, Any], way_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_free(monkeypatch, 60_000)

    def gather(*arguments: Any) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr("partsketch.fitting.fit.gather", gather)
    with pytest.raises(InputError, match=r"needs at least .* of memory at once, and 60 kB are free: ") as raised:
        ps.fit(_table(), "y", FEATURES, **options)
    assert way_out in str(raised.value)


def test_all_that_makes_or_solves_summaries_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _table()
    X = np.column_stack([table[name] for name in FEATURES])
    files = ps.sketch(table, "y", FEATURES, n_partitions=2, sketch="triangular")
    _with_free(monkeypatch, 10_000)
    for work in (
        lambda: ps.SketchedRegression(method="exact").fit(X, table["y"].to_numpy()),
        lambda: ps.SketchedRegression(method="exact").partial_fit(X, table["y"].to_numpy()),
        lambda: ps.sketch(table, "y", FEATURES, sketch_size=3000),
        lambda: ps.sketch(table, "y", FEATURES, sketch="triangular", n_partitions=9),
        lambda: ps.combine(files),
    ):
        with pytest.raises(InputError, match="of memory at once, and 10 kB are free: "):
            work()


def test_a_little_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below sixteen megabytes nobody looks at what is free; above, everybody does."""
    monkeypatch.setattr(memory, "available_memory", lambda: 1)
    memory.check_memory(Sizes("exact", 400, 10**6, 1, None))
    with pytest.raises(InputError, match="and 1 B are free"):
        memory.check_memory(Sizes("exact", 500, 10**6, 1, None))


def test_refinement_of_sparse_rows_needs_no_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    X: Any = scipy.sparse.random_array((3000, 200), density=0.01, rng=draw, format="csr")
    y = np.asarray(X @ draw.normal(size=200)) + draw.normal(size=3000)
    model = ps.SketchedRegression(method="exact", route="iterate").fit(X, y)
    _with_free(monkeypatch, 2 * 200 * 200 * 8)
    again = ps.SketchedRegression(method="exact", route="iterate").fit(X, y)
    np.testing.assert_array_equal(model.coef_, again.coef_)
    with pytest.raises(InputError, match="of memory at once"):
        ps.SketchedRegression(method="exact", route="factor").fit(X, y)


def test_a_sketch_that_no_file_holds_is_refused_before_the_work() -> None:
    started = time.perf_counter()
    with pytest.raises(InputError, match="17,000,000 rows and 3 columns does not fit into a file"):
        ps.sketch(_table(), "y", ["x0"], sketch_size=17_000_000)
    with pytest.raises(InputError, match="does not fit into a file"):
        ps.sketch(_table(), "y", FEATURES, sketch_size=16_000_000)
    assert time.perf_counter() - started < 5


def test_twenty_thousand_columns_are_too_many_for_eight_gigabytes() -> None:
    assert solving_bytes(Sizes("exact", 20_001, 10**6, 1, None)) > 8e9
    assert solving_bytes(Sizes("exact", 2_001, 10**6, 1, None)) < 1e9
    for method in ("stack", "partition"):
        # Measured: 500 to 560 MB more than before the fit.
        assert 0.4e9 < solving_bytes(Sizes(method, 22, 10**6, 10_000, 84)) < 0.5e9


def test_limits_of_container_and_process_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process, groups = tmp_path / "proc", tmp_path / "cgroup"
    inner = groups / "user" / "job"
    inner.mkdir(parents=True)
    process.mkdir()
    monkeypatch.setattr(free_memory, "_PROCESS", process)
    monkeypatch.setattr(free_memory, "CONTROL_GROUP", groups)
    (process / "cgroup").write_text("0::/user/job\n")
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.current").write_text("7\n")
    # The group around it has the limit; what it holds of files is given back.
    (inner.parent / "memory.max").write_text("9000\n")
    (inner.parent / "memory.current").write_text("5000\n")
    (inner.parent / "memory.stat").write_text("anon 1\ninactive_file 1500\n")
    assert free_memory.available_memory() == 5500
    (process / "cgroup").write_text("5:cpu,memory:/elsewhere\n")
    old = groups / "memory"
    old.mkdir()
    (old / "memory.limit_in_bytes").write_text("6000\n")
    (old / "memory.usage_in_bytes").write_text("2000\n")
    assert free_memory.available_memory() == 4000
    (old / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert free_memory.available_memory() > MB


_PEAK = """
import json, sys, warnings
warnings.simplefilter("ignore")
import partsketch as ps
path, options = sys.argv[1], json.loads(sys.argv[2])
ps.fit(path, "y", [f"x{i}" for i in range(20)], random_state=0, **options)
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""


def _peak(path: Path, options: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(path), options], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A file of one segment of rows, and one of two; 20 columns, and one of 1000 values."""
    folder = tmp_path_factory.mktemp("rows")
    draw = np.random.default_rng(0)
    for name, count in (("some", 1), ("more", 2)):
        with pq.ParquetWriter(folder / f"{name}.parquet", _rows(draw).schema) as writer:
            for _ in range(count):
                writer.write_table(_rows(draw))
    return folder / "some.parquet", folder / "more.parquet"


def _rows(draw: np.random.Generator) -> pa.Table:
    X = draw.normal(size=(65_536, 20))
    columns = {f"x{i}": X[:, i] for i in range(20)}
    return pa.table({**columns, "g": draw.integers(0, 1000, 65_536), "y": X[:, 0] + draw.normal(size=65_536)})


@pytest.mark.parametrize("kind", ["gaussian", "count_sketch", "orthogonal"])
def test_many_sketches_of_the_whole_are_counted_while_they_are_made(kind: str) -> None:
    source = array_source(np.zeros((65_536, 20)), np.zeros(65_536))

    def asked(sketches: int) -> SummaryRequest:
        return SummaryRequest(SketchSpecification(kind, 84, 1), single_partition(65_536), True, sketches, 65_536)

    one, many = (gathering_bytes(source, asked(count)) for count in (1, 10_000))
    if kind == "orthogonal":
        assert many == one  # one pass, one matrix for all
        return
    sketches = 10_000 * 84 * 22 * 8
    assert many == one + sketches + MOST_WAITING
    # What a checkpoint keeps is of all sketches: they are made at once.
    assert gathering_bytes(source, asked(10_000), at_once=True) >= one + 4 * sketches


def test_scattered_partitions_that_are_done_wait_for_those_of_later_passes() -> None:
    """Measured while a million such rows are gathered: 425 MB more than before."""
    source = array_source(np.zeros((1_000_000, 20)), np.zeros(1_000_000))
    shuffled = Partitioning(tuple(map(str, range(10_000))), shuffle_seed=8)
    asked = SummaryRequest(SketchSpecification("gaussian", 84, 1), shuffled, True, row_count=1_000_000)
    assert 0.8 * 425e6 < gathering_bytes(source, asked) < 425e6


@pytest.mark.slow
def test_a_thousand_scattered_partitions_take_half_a_gigabyte_whatever_the_rows(files: tuple[Path, Path]) -> None:
    """Two gigabytes before one tile served all of them, 400 MB now; a second segment is one more level of the tree."""
    shuffled = '{"method": "average", "n_partitions": 1000, "partition_by": "shuffle"}'
    some, more = (_peak(path, shuffled) for path in files)
    assert some < 600 * MB
    assert more < some + 75 * MB
    # Groups by a column are scattered alike: one segment shows as much.
    assert _peak(files[0], '{"method": "average", "partition_by": "g"}') < 600 * MB


def test_a_diagnosis_says_what_it_needs_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 10 * MB)
    rows = np.random.default_rng(0).normal(size=(700, 600))
    with pytest.raises(InputError, match=r"needs at least 28\.9 MB of memory at once, and 10 MB are free: choose"):
        ps.diagnose(rows, "x0", n_partitions=2)
