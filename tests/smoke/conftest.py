"""Nothing but pytest and what partsketch itself needs: these run with its lowest versions, and on a bare wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: Runs `partsketch` with these words in a folder and returns what it printed.
Command = Callable[..., str]


@pytest.fixture(scope="session", autouse=True)
def _own_calibration(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Plans measure the machine once; the user's own measurements are left alone."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture
def partsketch(tmp_path: Path) -> Command:
    def run(*words: str) -> str:
        command = [sys.executable, "-m", "partsketch", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
