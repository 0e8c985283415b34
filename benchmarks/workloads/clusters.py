"""Files on two workers of Dask, Ray and Spark: what a cluster costs, and how the regressions at home there do."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.problem import DATA, TARGET, Problem
from benchmarks.rivals import clusters
from benchmarks.workloads.base import Case, Contestant, Target, Workload, times
from benchmarks.workloads.judging import judge_fit

_FILE_ROWS = 50_000


def _folder(problem: Problem) -> Path:
    """Return a folder with the rows in Parquet files of 50,000 each, made on first use."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = DATA / f"{problem.name}.files"
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(".unfinished")
    unfinished.mkdir(parents=True, exist_ok=True)
    names = [*(f"x{index}" for index in range(problem.width)), TARGET]
    number = 0
    for X, y in problem.chunks():
        for begin in range(0, len(y), _FILE_ROWS):
            rows = slice(begin, begin + _FILE_ROWS)
            columns = [np.ascontiguousarray(column) for column in (*X[rows].T, y[rows])]
            pq.write_table(pa.table(columns, names=names), unfinished / f"part-{number:03d}.parquet")
            number += 1
    return unfinished.rename(folder)


def _contestants(method: str) -> tuple[Contestant, ...]:
    labels = {
        "local": "partsketch: local engine, two threads",
        "dask": "partsketch: Dask engine, two workers",
        "ray": "partsketch: Ray engine, two workers",
        "spark": "partsketch: Spark engine, two workers",
    }
    return tuple(
        Contestant(name, label, partial(clusters.fit_files, name, method), "ours") for name, label in labels.items()
    )


_RIVALS = (
    Contestant("dask-ml", "dask-ml LinearRegression (lbfgs), two workers", clusters.fit_dask_ml_on_files),
    Contestant("mllib", "Spark MLlib LinearRegression, two workers", clusters.fit_mllib_on_files),
)


def _case(method: str, problem: Problem, contestants: tuple[Contestant, ...]) -> Case:
    # Enough files that every worker gets some, and has loaded and compiled what it needs when the clock starts.
    small = Problem(8 * _FILE_ROWS, problem.width)

    def make() -> None:
        _folder(problem)
        _folder(small)
        problem.reference()

    files = f"{problem.rows // _FILE_ROWS} Parquet files of {_FILE_ROWS:,} × {problem.width}"
    return Case(
        name=method,
        title=f"{files}, method={method!r}",
        contestants=contestants,
        make=make,
        load=lambda: _folder(problem),
        load_small=lambda: _folder(small),
        judge=partial(judge_fit, problem),
        main="local",
        in_memory=False,
        # The clusters are up, but their first rounds are slower: Java compiles as it goes, workers find their rhythm.
        budget_seconds=16.0,
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    problem = Problem((8 if quick else 64) * _FILE_ROWS, 54)
    if quick:
        return (_case("exact", problem, _contestants("exact")),)
    return (
        _case("exact", problem, (*_contestants("exact"), *_RIVALS)),
        _case("partition", problem, _contestants("partition")),
    )


_TARGETS = (
    *(
        Target(
            method,
            f"{name.capitalize()} engine, {method}: at most 1.3 times the local engine's time",
            times(name, "local"),
            1.3,
            at_least=False,
        )
        for method in ("exact", "partition")
        for name in ("dask", "ray", "spark")
    ),
    Target("exact", "Dask engine: faster than dask-ml's LinearRegression", times("dask-ml", "dask"), 1.0),
    Target("exact", "Spark engine: faster than MLlib's LinearRegression", times("mllib", "spark"), 1.0),
)

WORKLOAD = Workload("clusters", "Clusters of two workers", _cases, _TARGETS)
