"""Runs that are interrupted, and files for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import partsketch as ps
from partsketch import LocalEngine
from partsketch.engines.base import Engine, Outcomes
from partsketch.sources.base import Source
from partsketch.summaries.tasks import PassRequest, Task
from tests.damage import write_files


class Stops(Engine):
    """The local engine, which is interrupted after some outcomes and remembers what it was asked to do."""

    name = "local"

    def __init__(self, after: int | None = None) -> None:
        self.after, self.asked = after, -1

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        self.asked = len(tasks)
        for number, outcome in enumerate(LocalEngine(1).run(source, request, tasks)):
            if number == self.after:
                raise KeyboardInterrupt
            yield outcome


def fit(data: Any, **options: Any) -> ps.Model:
    given = {"target": "y", "partition_by": "file", "method": "partition", "random_state": 3, **options}
    return ps.fit(data, **given)


def paths(folder: Path, count: int = 6) -> list[str]:
    folder.mkdir(exist_ok=True)
    return [str(path) for path in write_files(folder, count=count)]


def in_memory(kind: str, change: bool) -> Any:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3)).round(3)
    values[150, 1] += change
    if kind == "array":
        return values
    frame = pd.DataFrame(values, columns=["x0", "x1", "x2"])
    if kind == "frame":
        return frame
    if kind == "sparse":
        from scipy import sparse

        return sparse.csr_array(values)
    if kind == "structured":
        return frame.to_records(index=False)
    table = pa.Table.from_pandas(frame)
    return table if kind == "table" else pa.concat_tables([table[:120], table[120:]])
