"""A running explorer, for all tests of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from partsketch.report.explorer.server import ExplorerServer


@pytest.fixture(scope="module")
def server() -> Iterator[ExplorerServer]:
    with ExplorerServer(0) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()
