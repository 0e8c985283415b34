"""The questions that the planner is asked: data sets, and for each several sets of limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import DATA, TARGET, Arrays, Problem
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.memory.arrays import array_source

_ROW_GROUP = 65_536


@dataclass(frozen=True)
class DataSet:
    """Rows, where they lie, and into how many partitions they are cut."""

    problem: Problem
    storage: str
    partitions: int

    @property
    def name(self) -> str:
        """The data in a phrase."""
        where = "" if self.storage == "memory" else f", {self.storage}"
        return f"{self.problem.rows:,} × {self.problem.width}{where}, k = {self.partitions}"

    def arrays(self) -> Arrays:
        """Return the rows in memory."""
        chunks = list(self.problem.chunks())
        if len(chunks) == 1:
            return Arrays(*chunks[0])
        return Arrays(np.vstack([X for X, _ in chunks]), np.concatenate([y for _, y in chunks]))

    def open(self, arrays: Arrays) -> Source:
        """Return the source that fits read."""
        if self.storage == "memory":
            return array_source(arrays.X, arrays.y, None, None, [TARGET])
        return open_source(str(self._file(arrays)), target=TARGET)

    def _file(self, arrays: Arrays) -> Path:
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.parquet

        path = DATA / f"planner-{self.problem.name}.{self.storage.lower()}"
        if not path.exists():
            DATA.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".unfinished")
            columns = {f"x{i}": np.ascontiguousarray(arrays.X[:, i]) for i in range(arrays.X.shape[1])}
            table = pa.table({**columns, TARGET: arrays.y})
            if self.storage == "Parquet":
                pyarrow.parquet.write_table(table, unfinished, row_group_size=_ROW_GROUP)
            elif self.storage == "Feather":
                pyarrow.feather.write_feather(table, unfinished)
            else:
                pyarrow.csv.write_csv(table, unfinished)
            unfinished.rename(path)
        return path


@dataclass(frozen=True)
class Question:
    """Limits, with their name; `exact_expected` where nothing but exact least squares may be recommended."""

    name: str
    limits: dict[str, Any] = field(default_factory=dict)
    exact_expected: bool = False


def questions(data: DataSet) -> Iterator[Question]:
    """Yield what is asked about a data set; limits that go with its size are worked out from it."""
    width = data.problem.width + 2
    yield Question("no limits", {"certified": True}, exact_expected=True)
    for excess in (0.3, 0.05):
        yield Question(f"excess {excess:.0%}", {"max_excess": excess, "certified": True})
    yield Question("excess 30%, rows stay", {"max_excess": 0.3, "rows_stay": True, "certified": True})
    # Less than a factor or a sketch has: averages of coefficients remain.
    sent = 8 * width * width - 1
    yield Question("excess 30%, too few bytes for summaries", {"max_excess": 0.3, "max_bytes_per_partition": sent})
    # Sketches of several times the rows of a factor do not fit.
    yield Question("excess 5%, 256 MB", {"max_excess": 0.05, "memory": 256e6, "certified": True})
    yield Question("10 s", {"seconds": 10.0, "certified": True}, exact_expected=True)


#: Small and large, narrow and wide; the last are wide enough for a sketch to be quicker than the exact factor.
IN_MEMORY = [
    (3_000, 5, 4),
    (20_000, 8, 16),
    (20_000, 50, 4),
    (200_000, 10, 8),
    (200_000, 50, 8),
    (40_000, 120, 2),
    (1_000_000, 20, 4),
    (100_000, 300, 2),
    (120_000, 500, 1),
]
IN_FILES = [
    ("Parquet", 400_000, 20, 8),
    ("Parquet", 100_000, 100, 2),
    ("Parquet", 60_000, 400, 1),
    ("CSV", 50_000, 10, 4),
    ("CSV", 20_000, 60, 2),
    ("Feather", 400_000, 20, 8),
    ("Feather", 100_000, 100, 2),
    ("Feather", 60_000, 400, 1),
]


def data_sets(quick: bool) -> Iterator[DataSet]:
    """Yield the data sets."""
    for rows, width, partitions in IN_MEMORY[:3] if quick else IN_MEMORY:
        yield DataSet(Problem(rows, width), "memory", partitions)
    files = [one for one in IN_FILES if one[1] <= 50_000] if quick else IN_FILES
    for storage, rows, width, partitions in files:
        yield DataSet(Problem(rows, width), storage, partitions)
