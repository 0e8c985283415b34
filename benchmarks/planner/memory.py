"""How much memory fits take: each in a process of its own, `python -m benchmarks.planner.memory '{…}'`."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.planner.settings import DataSet
from benchmarks.problem import Problem
from partsketch import LocalEngine
from partsketch.engines.local import usable_cores
from partsketch.fitting.fit import fit_source
from partsketch.fitting.options import FitOptions
from partsketch.planner.choice import make_plan, options_from
from partsketch.planner.survey import look

#: Rows, columns, storage, partitions; method and sketch. Sizes that are large beside what the allocator rounds off.
FITS = [
    ((1_000_000, 20, "memory", 4), ("exact", None)),
    ((1_000_000, 20, "memory", 4), ("whole", "gaussian")),
    ((1_000_000, 20, "memory", 4), ("stack", "sparse_sign")),
    ((100_000, 300, "memory", 2), ("exact", None)),
    ((100_000, 300, "memory", 2), ("average", None)),
    ((100_000, 300, "memory", 2), ("partition", "count_sketch")),
    ((100_000, 300, "memory", 2), ("stack", "row_sample")),
    ((100_000, 300, "memory", 2), ("whole", "srht")),
    ((400_000, 20, "Parquet", 8), ("exact", None)),
    ((60_000, 400, "Parquet", 1), ("exact", None)),
    ((60_000, 400, "Parquet", 1), ("whole", "count_sketch")),
    ((400_000, 20, "Feather", 8), ("partition", "gaussian")),
    ((100_000, 100, "Feather", 2), ("exact", None)),
    ((50_000, 10, "CSV", 4), ("exact", None)),
    ((20_000, 60, "CSV", 2), ("stack", "srht")),
]
_MAX_EXCESS = 0.1


def check_memory(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield predicted and measured peaks; in quick runs of few fits."""
    for (rows, width, storage, partitions), (method, sketch) in FITS[8:10] + FITS[13:] if quick else FITS:
        data = DataSet(Problem(rows, width), storage, partitions)
        source = data.open(data.arrays())
        options = FitOptions("exact", partitions, "order", "spread", "gaussian", None, True, 1)
        plan = make_plan(look(source, options), {"max_excess": _MAX_EXCESS}, partitions=partitions, with_extras=False)
        candidate = next(one for one in plan.candidates if (one.method, one.sketch) == (method, sketch))
        asked = {
            "data": [rows, width, storage, partitions],
            "options": asdict(options_from(candidate, options)),
            "threads": usable_cores(),
        }
        command = [sys.executable, "-m", "benchmarks.planner.memory", json.dumps(asked)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        yield {
            "fit": f"{data.name}: {candidate.name}",
            "predicted_bytes": candidate.peak_bytes,
            "bytes": json.loads(answer.stdout)["bytes"],
        }


def _measure(data: DataSet, options: FitOptions, threads: int) -> int:
    """Return by how much resident memory grows at most during a fit, after a small one has loaded what fits need."""
    engine = LocalEngine(threads)
    width = data.problem.width
    small = replace(data, problem=Problem(max(4 * width * data.partitions, 2000), width))
    source = small.open(small.arrays())
    fit_source(source, replace(options, sketch_size=None), engine)
    source = data.open(data.arrays())
    _give_back()
    Path("/proc/self/clear_refs").write_text("5")  # the highest mark starts anew
    before = _status("VmRSS")
    fit_source(source, options, engine)
    return _status("VmHWM") - before


def _give_back() -> None:
    """Return memory that was freed to the system, so that it counts when it is taken again."""
    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    rows, width, storage, partitions = request["data"]
    data_set = DataSet(Problem(rows, width), storage, partitions)
    grown = _measure(data_set, FitOptions(**request["options"]), request["threads"])
    print(json.dumps({"bytes": grown}))
