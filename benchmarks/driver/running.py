"""Measures the driver: results that come ready, merged, kept and counted; each line in a process of its own.

`python -m benchmarks run driver` runs all lines. What a worker needs for a task, and what reading adds, is measured
beside them: `docs/scale.md` is computed from both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.driver.ready import ReadyEngine, ReadyRows
from benchmarks.quiet import now

#: Workers that end in any order.
WORKERS = 1000
SEGMENT_ROWS = 65_536


@dataclass(frozen=True)
class Setting:
    """One line: what is asked of the driver.

    Attributes
    ----------
    what
        The line in words.
    tasks, features, partitions
        How many.
    late
        Tasks that come after all others; with several partitions, partitions of which a task never comes.
    checkpoint
        Whether what is finished is kept in a folder.
    least_rate
        Results per second that are asked for; 0 where nothing is asked.
    """

    what: str
    tasks: int
    features: int
    partitions: int = 1
    late: int = 0
    checkpoint: bool = False
    least_rate: float = 0.0


def settings(quick: bool) -> list[Setting]:
    """Return the lines; quick ones have a hundredth of the tasks."""
    few = 100 if quick else 1
    return [
        Setting("a quarter of the tasks", 25_000 // few, 200),
        Setting("all tasks", 100_000 // few, 200, least_rate=10_000),
        Setting("all tasks", 100_000 // few, 100),
        Setting("all tasks, 1% of them after all others", 100_000 // few, 200, late=1000 // few),
        Setting(
            "10,000 partitions, 1,000 of them never come", 100_000 // few, 20, 10_000 // few, 1000 // few,
            least_rate=10_000,
        ),
        Setting("checkpoint", 20_000 // few, 200, late=200 // few, checkpoint=True, least_rate=2_000),
    ]  # fmt: skip


def measure(setting: Setting) -> dict[str, Any]:
    """Run one line in this process."""
    from partsketch.engines.checkpoint import open_checkpoint
    from partsketch.engines.gather import gather
    from partsketch.engines.tolerance import Tolerance
    from partsketch.sketches.base import SketchSpecification
    from partsketch.summaries.partitions import order_partitions, single_partition
    from partsketch.summaries.tasks import SummaryRequest

    rows: Any = ReadyRows(setting.tasks * SEGMENT_ROWS, setting.features)
    one = setting.partitions == 1
    partitioning = (
        single_partition(rows.row_count) if one else order_partitions(rows.row_count, setting.partitions, "spread")
    )
    request = SummaryRequest(SketchSpecification("triangular"), partitioning, True)
    rng = np.random.default_rng(1)
    if one:
        late = rng.choice(setting.tasks, setting.late, replace=False).tolist()
    else:
        each = setting.tasks // setting.partitions
        late = (rng.choice(setting.partitions, setting.late, replace=False) * each).tolist()
    assert partitioning.bounds is not None
    engine = ReadyEngine(setting.features + 2, SEGMENT_ROWS, partitioning.bounds, frozenset(late), WORKERS)
    before = _memory("VmRSS")
    # From here on the peak counts.
    Path("/proc/self/clear_refs").write_text("5")
    with ExitStack() as stack:
        kept = None
        if setting.checkpoint:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            kept = stack.enter_context(open_checkpoint(folder, {"data": {}}, 0, request.merging))
        clock = now()
        # A deadline that is long over when the last result has come: what is not there then is left out.
        gathered = gather(rows, request, engine, Tolerance() if one else Tolerance(deadline=3600.0), kept)
        end = now()
    assert len(gathered.left_out) == (0 if one else setting.late)
    reported = setting.tasks - (0 if one else setting.late)
    return {
        **asdict(setting),
        "reported": reported,
        "seconds": engine.seconds,
        "processor_seconds": engine.processor_seconds,
        "seconds_after": end.wall - clock.wall - engine.seconds,
        "others": end.others_share(clock),
        "peak_bytes": _memory("VmHWM") - before,
    }


def _memory(name: str) -> int:
    """Return a figure of this process in bytes, by the name that Linux gives it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def task_seconds(columns: int = 100, repeats: int = 5) -> dict[str, float]:
    """Return what one core needs for a task of 65,536 rows: the least of some processor times, in memory and Parquet.

    The file is written as pyarrow writes files: compressed, row groups of a million rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    import partsketch as ps
    from partsketch.engines.local import LocalEngine

    rng = np.random.default_rng(0)
    rows = 4 * SEGMENT_ROWS
    X = rng.normal(size=(rows, columns))
    y = X.sum(axis=1) + rng.normal(size=rows)
    model = ps.SketchedRegression("exact", engine=LocalEngine(threads=1))
    found: dict[str, list[float]] = {"memory": [], "parquet": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({**{f"x{i}": X[:, i] for i in range(columns)}, "y": y}), path)
        for _ in range(repeats + 1):
            begin = time.process_time()
            model.fit(X, y)
            between = time.process_time()
            ps.fit(path, "y", method="exact", engine=LocalEngine(threads=1))
            found["memory"].append(between - begin)
            found["parquet"].append(time.process_time() - between)
        size = path.stat().st_size
    # The first of each loads compiled code.
    per_task = {name: min(times[1:]) / 4 for name, times in found.items()}
    return {**per_task, "parquet_bytes_per_row": size / rows}


def run(quick: bool) -> dict[str, Any]:
    """Measure all lines, each in a process of its own, so that each has its own peak of memory."""
    lines = []
    for setting in settings(quick):
        command = [sys.executable, "-m", "benchmarks.driver.running", json.dumps(asdict(setting))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        lines.append(json.loads(done.stdout))
        rate = lines[-1]["reported"] / lines[-1]["seconds"]
        print(f"{setting.what}: {rate:,.0f} results a second, {lines[-1]['peak_bytes'] / 1e6:,.0f} MB", flush=True)
    return {"lines": lines, "task": task_seconds()}


if __name__ == "__main__":
    print(json.dumps(measure(Setting(**json.loads(sys.argv[1])))))
