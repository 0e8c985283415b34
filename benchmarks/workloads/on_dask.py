"""Exact least squares on a Dask cluster of two workers: what the cluster costs, and how dask-ml does there."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.problem import DATA, TARGET, Problem
from benchmarks.rivals import on_dask
from benchmarks.workloads.base import Case, Contestant, Figures, Target, Workload, times
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


def _case(name: str, title: str, problem: Problem, contestants: tuple[Contestant, ...], main: str) -> Case:
    def make() -> None:
        _folder(problem)
        _folder(problem.small())
        problem.reference()

    return Case(
        name=name,
        title=title,
        contestants=contestants,
        make=make,
        load=lambda: _folder(problem),
        load_small=lambda: _folder(problem.small()),
        judge=partial(judge_fit, problem),
        main=main,
        in_memory=False,
    )


def _cases(quick: bool) -> tuple[Case, ...]:
    problem = Problem((8 if quick else 64) * _FILE_ROWS, 54)
    size = f"{problem.rows // _FILE_ROWS} × {_FILE_ROWS:,} × {problem.width}"
    files = (
        Contestant("dask", "partsketch: fit(folder, engine=dask), two workers", on_dask.fit_files, "ours"),
        Contestant("local", "partsketch: fit(folder), two threads", on_dask.fit_files_locally, "ours"),
    )
    arrays = (
        Contestant("dask", "partsketch: SketchedRegression", on_dask.fit_persisted, "ours", on_dask.persist),
        Contestant("dask-ml", "dask-ml LinearRegression", on_dask.fit_dask_ml, "rival", on_dask.persist),
    )
    return (
        _case("files", f"{size} in Parquet files, one per partition", problem, files, "dask"),
        _case("persisted", f"{size}, Dask arrays in the memory of the workers", problem, arrays, "dask"),
    )


def _overhead(figures: Figures) -> float:
    return times("dask", "local")(figures)


_TARGETS = (
    Target(
        "files", "Dask: at most 1.3 times the local engine's time on the same cores", _overhead, 1.3, at_least=False
    ),
    Target("persisted", "Dask: faster than dask-ml's LinearRegression", times("dask-ml", "dask"), 1.0),
)

WORKLOAD = Workload("on-dask", "A Dask cluster", _cases, _TARGETS)
