"""Refinement passes over the rows on other engines: the same bits as here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from partsketch import SketchedRegression
from partsketch.engines.base import Engine, Outcomes, TaskOutcome
from partsketch.summaries.summarise import summarise_rows
from partsketch.summaries.tasks import Task


class BackwardEngine(Engine):
    """Runs tasks in reverse, in blocks of another size."""

    name = "backward"

    def run(self, source: Any, request: Any, tasks: Sequence[Task], deadline: float | None = None) -> Outcomes:
        for index in reversed(range(len(tasks))):
            yield TaskOutcome((index,), summarise_rows(source, request, tasks[index], 1000))


def fits(X: Any, engine: Any) -> None:
    rng = np.random.default_rng(1)
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0])
    here, there = (
        SketchedRegression("exact", route="iterate", random_state=0, engine=where).fit(X, y)
        for where in ("local", engine)
    )
    assert there.model_.record.reasons["route"].startswith("refinement:")
    np.testing.assert_array_equal(here.coef_, there.coef_)


def rows(kind: str) -> Any:
    rng = np.random.default_rng(0)
    if kind == "dense":
        return rng.normal(size=(40_000, 12))
    return sparse.random_array((80_000, 40), density=0.05, rng=rng, format="csr")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_an_engine_of_ones_own(kind: str) -> None:
    fits(rows(kind), BackwardEngine())


@pytest.mark.xdist_group("clusters")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_dask(kind: str, dask_engine: Any) -> None:
    fits(rows(kind), dask_engine)
