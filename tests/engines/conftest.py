"""Real clusters on this machine, two worker processes each, started once.

All tests of clusters carry the same `xdist_group`: one process runs them, before all others, and starts each cluster
once. It ends them when it leaves this folder: a cluster that waits takes time from the other tests.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import partsketch
from tests.network_guard import CLOSED_DOOR


def need(package: str) -> None:
    """Skip where an optional package is missing; fail in continuous integration, where none may be."""
    if importlib.util.find_spec(package) is None:
        missing(f"{package} is not installed")


def missing(reason: str) -> NoReturn:
    """Skip, or fail in continuous integration."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="package")
def dask_engine() -> Iterator[Any]:
    need("distributed")
    from partsketch.engines.dask import DaskEngine

    with DaskEngine(workers=2) as engine:
        yield engine


@pytest.fixture(scope="package")
def ray_engine() -> Iterator[Any]:
    need("ray")
    from partsketch.engines.ray import RayEngine

    with pytest.MonkeyPatch.context() as patch:
        for name, value in CLOSED_DOOR.items():
            patch.setenv(name, value)
        engine = RayEngine(workers=2)
    with engine:
        yield engine


@pytest.fixture(scope="package")
def spark_engine() -> Iterator[Any]:
    need("pyspark")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing("Java is not installed")
    from partsketch.engines.spark import SparkEngine

    # Executors import the package, and the rows that these tests make up.
    folders = [str(Path(partsketch.__file__).parents[1]), str(Path(__file__).parents[2])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")]))
        with SparkEngine(workers=2) as engine:
            yield engine
