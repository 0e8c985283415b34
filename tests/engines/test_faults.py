"""Faults and checkpoints on clusters: what is left out, what comes too late, and what need not be done again."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps
from partsketch import InputError, LocalEngine
from partsketch.fitting.fit import fit_source
from partsketch.sketches.base import SEGMENT_ROWS
from tests.engines.made_up import frame
from tests.engines.test_local import MadeUpRows, options

pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    # Ray Data sets its own deprecated settings when it makes its defaults.
    pytest.mark.filterwarnings("ignore:`use_:DeprecationWarning"),
]

CLUSTERS = [pytest.param(name, marks=pytest.mark.xdist_group("clusters")) for name in ("dask", "ray", "spark")]


def collection(engine: Any, table: Any) -> Any:
    """Return the rows as a collection of the engine's cluster, made anew at every call."""
    if engine.name == "dask":
        import dask.dataframe

        return dask.dataframe.from_pandas(table.to_pandas(), npartitions=2)
    if engine.name == "ray":
        import ray.data

        return ray.data.from_arrow([table.slice(0, 1500), table.slice(1500)])
    return engine.session.createDataFrame(table)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_checkpoint_of_a_collection(
    cluster: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second fit of the same rows runs no task; other rows are refused."""
    engine = request.getfixturevalue(f"{cluster}_engine")
    table = frame(4000).slice(100).select(["a", "c", "y"])
    how: dict[str, Any] = {
        "method": "partition",
        "n_partitions": 4,
        "random_state": 1,
        "checkpoint": str(tmp_path / "kept"),
    }
    first = ps.fit(collection(engine, table), "y", engine=engine, **how)
    other = table.set_column(0, "a", [np.arange(len(table), dtype=float)])
    with pytest.raises(InputError, match="other data: the collection differs"):
        ps.fit(collection(engine, other), "y", engine=engine, **how)

    def refuse(*_: Any) -> Any:
        raise AssertionError("a task was run again")

    monkeypatch.setattr(type(engine), "run", refuse)
    again = ps.fit(collection(engine, table), "y", engine=engine, **how)
    np.testing.assert_array_equal(again.coefficients, first.coefficients)


@pytest.mark.xdist_group("clusters")
@pytest.mark.filterwarnings("ignore::partsketch.common.errors.PartsketchWarning")
def test_a_partition_that_cannot_be_read_is_left_out(dask_engine: Any) -> None:
    source = MadeUpRows(6 * SEGMENT_ROWS, fail_from=(3 * SEGMENT_ROWS + 1,))
    how = options(method="partition", n_partitions=3, on_partition_error="drop")
    found, expected = (fit_source(source, how, engine) for engine in (dask_engine, LocalEngine(1)))
    assert found.summaries == expected.summaries
    assert found.model.record.partitions_left_out == expected.model.record.partitions_left_out
    assert len(found.summaries) == 2


@pytest.mark.xdist_group("clusters")
@pytest.mark.filterwarnings("ignore::partsketch.common.errors.PartsketchWarning")
def test_partitions_that_are_late_are_left_out(dask_engine: Any) -> None:
    """A thousand partitions of 0.4 seconds on two workers: 200 seconds of work."""
    rows = 1000 * SEGMENT_ROWS
    source = MadeUpRows(rows, slow_until=rows)
    started = time.monotonic()
    how = options(method="partition", n_partitions=1000, deadline=2.0, min_partitions=1)
    found = fit_source(source, how, dask_engine)
    assert time.monotonic() - started < 8
    assert 0 < len(found.summaries) < 100
