"""The same Parquet files on the same two workers: partsketch's engines, dask-ml on Dask and MLlib on Spark."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import TARGET, FloatArray
from benchmarks.rivals.dask_rivals import DaskArrays, fit_dask_ml
from benchmarks.rivals.spark_mllib import as_vectors, fit_frame

#: Threads of the local engine, worker processes of the others.
WORKERS = 2

#: Options of a fit by method; "partition" takes every file for a partition.
_HOW: dict[str, dict[str, Any]] = {
    "exact": {"method": "exact"},
    "partition": {"method": "partition", "partition_by": "file", "random_state": 0},
}


@cache
def engine(name: str) -> Any:
    """Start an engine once per process: it is up before the clock starts, since the warm-up uses it."""
    if name == "local":
        from partsketch import LocalEngine

        return LocalEngine(WORKERS)
    started = _start(name)
    atexit.register(started.close)
    return started.__enter__()


def _start(name: str) -> Any:
    if name == "dask":
        from partsketch.engines.dask import DaskEngine

        return DaskEngine(workers=WORKERS)
    if name == "ray":
        from partsketch.engines.ray import RayEngine

        return RayEngine(workers=WORKERS)
    from partsketch.engines.spark import SparkEngine

    return SparkEngine(workers=WORKERS)


def fit_files(where: str, method: str, folder: Path) -> FloatArray:
    """partsketch.fit(folder, engine=...); the workers read the files."""
    import partsketch

    model = partsketch.fit(str(folder), target=TARGET, engine=engine(where), **_HOW[method])
    return np.concatenate([model.intercept, model.coefficients[:, 0]])


def fit_dask_ml_on_files(folder: Path) -> FloatArray:
    """dask-ml's LinearRegression; its iterations need the rows again and again, so workers keep them in memory."""
    import dask.array as da
    import pyarrow.parquet as pq
    from dask import delayed

    paths = sorted(folder.glob("*.parquet"))
    footers = [pq.read_metadata(path) for path in paths]
    parts = [
        da.from_delayed(delayed(_load)(str(path)), (footer.num_rows, footer.num_columns), float)
        for path, footer in zip(paths, footers, strict=True)
    ]
    with engine("dask").client.as_current():
        rows = da.concatenate(parts)
        return fit_dask_ml(DaskArrays(rows[:, :-1].persist(), rows[:, -1].persist()))


def _load(path: str) -> FloatArray:
    import pyarrow.parquet as pq

    return np.column_stack(pq.read_table(path, use_threads=False).columns)


def fit_mllib_on_files(folder: Path) -> FloatArray:
    """Spark MLlib's LinearRegression, which reads the files once: nothing is cached."""
    return fit_frame(as_vectors(engine("spark").session.read.parquet(str(folder))))
