"""Private sketches of tests take the same bytes every time, in place of those of the operating system."""

from __future__ import annotations

import os
import random

import pytest


@pytest.fixture(autouse=True)
def _bytes_by_the_name_of_the_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", random.Random(request.node.nodeid).randbytes)
