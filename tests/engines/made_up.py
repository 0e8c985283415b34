"""Rows and waiting for the tests of clusters."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from partsketch.sketches.base import SketchSpecification
from partsketch.summaries.partitions import single_partition
from partsketch.summaries.tasks import SummaryRequest

#: Rows of a frame: one segment of 65,536 rows and some of the next.
FRAME_ROWS = 80_000

EXACT = SummaryRequest(SketchSpecification("triangular"), single_partition(None), True)


def frame(rows: int = FRAME_ROWS) -> pa.Table:
    """Return columns of several types, with missing values in rows 77 and 70,003 of column b."""
    generator = np.random.default_rng(3)
    columns = {name: generator.normal(size=rows) for name in "abc"}
    target = columns["a"] - columns["b"] + generator.normal(size=rows)
    columns["b"][[row for row in (77, 70_003) if row < rows]] = np.nan
    return pa.table(
        {
            **columns,
            "row": np.arange(rows),
            "site": generator.integers(0, 3, rows),
            "colour": generator.choice(["red", "green", "blue"], rows),
            "y": target,
        }
    )


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait until something holds, but not for ever."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return holds()


def peak_bytes() -> int:
    """Return the largest memory that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def notes(folder: Path) -> dict[int, int]:
    """Return how many lines each process has written in a folder."""
    return {int(path.name): len(path.read_text().split()) for path in folder.iterdir()}


def quiet(folder: Path) -> bool:
    """Tell whether nothing is written for a second, in which a worker would write five times."""
    before = notes(folder)
    time.sleep(1.0)
    return notes(folder) == before
