"""Files and collections of every cluster: the same bits as on one machine.

Not part of `make test`, where tests/engines says more; `make lowest` names this file, to try the lowest versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partsketch as ps

from .rows import KINDS, TARGET, table

# Old versions of clusters speak of what they will change.
pytestmark = pytest.mark.filterwarnings("ignore::Warning")

OPTIONS: dict[str, Any] = {"method": "partition", "n_partitions": 3, "random_state": 1}


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[Any]:
    # Spark's executors are processes of their own, which find this package by the path.
    name = request.param
    with getattr(import_module(f"partsketch.engines.{name}"), f"{name.capitalize()}Engine")(workers=2) as made:
        yield made


def collection(engine: Any) -> Any:
    if engine.name == "dask":
        dask = import_module("dask.dataframe")
        return dask.from_pandas(table().to_pandas(), npartitions=4)
    if engine.name == "ray":
        return import_module("ray.data").from_arrow(table())
    session = import_module("pyspark.sql").SparkSession.getActiveSession()
    return session.createDataFrame(table().to_pandas())


@pytest.mark.parametrize("engine", ["dask", "ray", "spark"], indirect=True)
def test_files_and_collections_give_the_same_bits(engine: Any, tmp_path: Path) -> None:
    path = KINDS["Parquet"](tmp_path)
    here = ps.fit(path, TARGET, **OPTIONS)
    there = ps.fit(path, TARGET, engine=engine, **OPTIONS)
    assert np.array_equal(there.coefficients, here.coefficients)
    of_collection = ps.fit(collection(engine), TARGET, engine=engine, **OPTIONS)
    assert np.array_equal(of_collection.coefficients, here.coefficients)
