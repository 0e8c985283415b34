"""The quick study is run once, by whichever worker comes first; every test looks at what it wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class QuickRun:
    """Folder, seconds of processors, and what the command printed."""

    folder: Path
    seconds: float
    answer: dict[str, Any]
    progress: str


def _run(folder: Path) -> None:
    command = [sys.executable, "-m", "partsketch", "reproduce", "--output", str(folder / "study"), "--quick", "--json"]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    outcome = {"code": done.returncode, "out": done.stdout, "err": done.stderr, "seconds": seconds}
    part = folder / "outcome.part"
    part.write_text(json.dumps(outcome))
    part.rename(folder / "outcome.json")


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> QuickRun:
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "quick-study"
    try:
        folder.mkdir()
    except FileExistsError:
        # Another worker is at it.
        deadline = time.monotonic() + 600
        while not (folder / "outcome.json").exists() and time.monotonic() < deadline:
            time.sleep(0.5)
    else:
        _run(folder)
    outcome = json.loads((folder / "outcome.json").read_text())
    assert outcome["code"] == 0, outcome["err"]
    return QuickRun(folder / "study", outcome["seconds"], json.loads(outcome["out"]), outcome["err"])
