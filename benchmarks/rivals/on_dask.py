"""The same files and the same persisted arrays on one local Dask cluster: partsketch and dask-ml."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problem import TARGET, FloatArray

#: As many as the local engine has threads in this comparison.
WORKERS = 2


@cache
def engine() -> Any:
    """Start the cluster once per process: it is up before the clock starts, as the warm-up uses it."""
    from partsketch.engines.dask import DaskEngine

    started = DaskEngine(workers=WORKERS)
    atexit.register(started.close)
    return started.__enter__()


def fit_files(folder: Path) -> FloatArray:
    """partsketch on the cluster; workers read the files."""
    return _fit(folder, engine())


def fit_files_locally(folder: Path) -> FloatArray:
    """partsketch on as many threads."""
    from partsketch import LocalEngine

    return _fit(folder, LocalEngine(WORKERS))


def _fit(folder: Path, where: Any) -> FloatArray:
    import partsketch

    model = partsketch.fit(str(folder), target=TARGET, method="exact", engine=where)
    return np.concatenate([model.intercept, model.coefficients[:, 0]])


def persist(folder: Path) -> tuple[Any, Any]:
    """Load the files into the memory of the workers as Dask arrays, one chunk per file."""
    import dask.array as da
    import pyarrow.parquet as pq
    from dask import delayed
    from distributed import wait

    def load(path: str) -> FloatArray:
        return np.column_stack(pq.read_table(path).columns)

    paths = sorted(folder.glob("*.parquet"))
    width = len(pq.read_schema(paths[0]).names)
    parts = [
        da.from_delayed(delayed(load)(str(path)), (pq.read_metadata(path).num_rows, width), float) for path in paths
    ]
    with engine().client.as_current():
        rows = da.concatenate(parts)
        X, y = rows[:, :-1].persist(), rows[:, -1].persist()
        wait([X, y])
    return X, y


def fit_persisted(data: tuple[Any, Any]) -> FloatArray:
    """SketchedRegression("exact") on Dask arrays."""
    from partsketch import SketchedRegression

    model = SketchedRegression("exact", engine=engine()).fit(*data)
    return np.concatenate([[model.intercept_], model.coef_])


def fit_dask_ml(data: tuple[Any, Any]) -> FloatArray:
    """dask-ml's LinearRegression with its defaults (ADMM)."""
    from dask_ml.linear_model import LinearRegression

    with engine().client.as_current():
        model = LinearRegression().fit(*data)
    return np.concatenate([np.atleast_1d(model.intercept_), np.ravel(model.coef_)])
