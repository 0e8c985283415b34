"""Real clusters on this machine, two worker processes each, started once per session.

The tests of one cluster carry the same `xdist_group`, so that one process runs them all and starts the cluster once.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from typing import Any

import pytest


def need(package: str) -> None:
    """Skip where an optional package is missing; fail in continuous integration, where none may be."""
    if importlib.util.find_spec(package) is None:
        reason = f"{package} is not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def dask_engine() -> Iterator[Any]:
    need("distributed")
    from partsketch.engines.dask import DaskEngine

    with DaskEngine(workers=2) as engine:
        yield engine
