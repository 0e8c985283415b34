"""Real kills: `partsketch fit --checkpoint` is ended by SIGKILL at random moments and started again until it is done.

PARTSKETCH_KILLS sets how many kills there are at least, 2 unless given.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

KILLS = int(os.environ.get("PARTSKETCH_KILLS", "2"))
FILES, ROWS, COLUMNS = 16, 20_000, 8


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    for number in range(FILES):
        columns = {f"x{i}": rng.normal(size=ROWS) for i in range(COLUMNS)}
        columns["y"] = columns["x0"] + rng.normal(size=ROWS)
        pq.write_table(pa.table(columns), folder / f"part-{number:02d}.parquet")
    return folder


def start(data: Path, model: Path, checkpoint: Path | None) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "partsketch", "fit", str(data), "--target", "y", "--partition-by", "file"]
    arguments += ["--method", "partition", "--sketch-size", "600", "--seed", "5", "--no-compare", "--model", str(model)]
    arguments += [] if checkpoint is None else ["--checkpoint", str(checkpoint)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


def spoil(path: Path, rng: random.Random) -> None:
    """Change one bit, or cut the file."""
    content = bytearray(path.read_bytes())
    position = rng.randrange(len(content))
    if rng.random() < 0.5:
        content[position] ^= 1 << rng.randrange(8)
    else:
        del content[position:]
    path.write_bytes(bytes(content))


def test_a_fit_that_is_killed_again_and_again_gives_the_same_model(data: Path, tmp_path: Path) -> None:
    """Now and then a kept file is spoilt between two runs; bytes of the model files are compared."""
    rng = random.Random(int.from_bytes(os.urandom(4)))
    started = time.monotonic()
    finish(start(data, tmp_path / "expected.json", None))
    whole = time.monotonic() - started
    expected = (tmp_path / "expected.json").read_bytes()
    killed = rounds = spoilt = continued = 0
    while killed < KILLS:
        checkpoint, model = tmp_path / f"kept-{rounds}", tmp_path / f"model-{rounds}.json"
        rounds += 1
        for attempt in range(100):
            continued += attempt > 0 and any(checkpoint.glob("tasks-*.bin"))
            process = start(data, model, checkpoint)
            try:
                process.wait(rng.uniform(0.3, 0.9) * whole if killed < KILLS else None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                killed += 1
                assert not model.exists() or model.read_bytes() == expected
                kept = sorted(checkpoint.glob("tasks-*.bin"))
                if kept and rng.random() < 0.3:
                    spoil(rng.choice(kept), rng)
                    spoilt += 1
            else:
                finish(process)
                break
        else:
            raise AssertionError("the fit does not get on")
        assert model.read_bytes() == expected
    print(f"{killed} kills in {rounds} fits, {continued} runs continued from kept files, {spoilt} files spoilt")
