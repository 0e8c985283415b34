"""A worker that the network loses: scheduler and workers in network namespaces, one link cut in the middle."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.conftest import need

ROOT = Path(__file__).parents[2]
NAMES = ("hub", "one", "two")

#: A worker that is silent for five seconds is given up, whatever is said here: ten times the time between its signs of
#: life. This says how often the scheduler looks.
SILENCE = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "1s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s"}


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _allowed() -> str:
    """Return why namespaces cannot be made here; empty when they can."""
    if sys.platform != "linux" or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces need Linux and root"
    if shutil.which("ip") is None:
        return "network namespaces need the command ip (iproute2)"
    try:
        _ip("netns", "add", "ps-probe")
        _ip("link", "add", "ps-probe", "type", "bridge")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not allowed here: {error.stderr.decode().strip()}"
    finally:
        subprocess.run(["ip", "link", "delete", "ps-probe"], capture_output=True, check=False)
        subprocess.run(["ip", "netns", "delete", "ps-probe"], capture_output=True, check=False)
    return ""


class Network:
    """Namespaces hub, one and two; the hub has a bridge that both others are linked to."""

    def __init__(self, tag: str, log: Path) -> None:
        self.tag, self.log = tag, log.open("a")
        self.processes: list[subprocess.Popen[Any]] = []
        for name in NAMES:
            _ip("netns", "add", self.space(name))
            _ip("-n", self.space(name), "link", "set", "lo", "up")
        hub = self.space("hub")
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "addr", "add", "10.77.0.1/24", "dev", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number, name in enumerate(NAMES[1:], 2):
            _ip(
                "-n", hub, "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth", "netns", self.space(name)
            )
            _ip("-n", hub, "link", "set", f"to-{name}", "master", "bridge", "up")
            _ip("-n", self.space(name), "addr", "add", f"10.77.0.{number}/24", "dev", "eth")
            _ip("-n", self.space(name), "link", "set", "eth", "up")

    def space(self, name: str) -> str:
        return f"ps-{self.tag}-{name}"

    def start(self, name: str, *command: str) -> subprocess.Popen[Any]:
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.space(name), sys.executable, *command],
            cwd=ROOT, env={**os.environ, **SILENCE}, stdout=subprocess.PIPE, stderr=self.log, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def cut(self, name: str) -> None:
        _ip("-n", self.space("hub"), "link", "set", f"to-{name}", "down")

    def close(self) -> None:
        for process in self.processes:
            # Each leads a session of its own, so that the workers of a nanny end with it.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.log.close()
        for name in NAMES:
            subprocess.run(["ip", "netns", "delete", self.space(name)], capture_output=True, check=False)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    need("distributed")
    reason = _allowed()
    if reason:
        pytest.skip(reason)
    network = Network(str(os.getpid()), tmp_path / "log")
    try:
        yield network
    finally:
        network.close()


FIT = """
    import hashlib
    import sys

    from partsketch import LocalEngine
    from partsketch.engines.dask import DaskEngine
    from partsketch.fitting.fit import fit_source
    from partsketch.sketches.base import SEGMENT_ROWS
    from tests.engines.test_local import MadeUpRows, options

    def text(fit):
        return hashlib.sha256(b"".join(summary.matrix.tobytes() for summary in fit.summaries)).hexdigest()

    rows = 16 * SEGMENT_ROWS
    print(text(fit_source(MadeUpRows(rows), options(), LocalEngine(1))), flush=True)
    with DaskEngine("dask://10.77.0.1:8786") as engine:
        engine.client.wait_for_workers(2, timeout=60)
        print("begun", flush=True)
        print(text(fit_source(MadeUpRows(rows, slow_until=rows), options(), engine)), flush=True)
        print(len(engine.client.nthreads()), flush=True)
"""


def test_a_worker_that_is_cut_off_changes_nothing(network: Network) -> None:
    """16 tasks of 0.4 seconds on two workers take 3.2; the link of one goes down after 1.5, with results behind it."""
    dask = "from distributed.cli.{0} import main; main()"
    network.start("hub", "-c", dask.format("dask_scheduler"), "--host", "10.77.0.1", "--port", "8786", "--no-dashboard")
    for number, name in enumerate(NAMES[1:], 2):
        options = ["--host", f"10.77.0.{number}", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        network.start(name, "-c", dask.format("dask_worker"), "tcp://10.77.0.1:8786", *options)
    fit = network.start("hub", "-c", textwrap.dedent(FIT))
    assert fit.stdout is not None
    expected = fit.stdout.readline()
    assert len(expected) == 65
    assert fit.stdout.readline() == "begun\n"
    time.sleep(1.5)
    assert fit.poll() is None
    network.cut("two")
    found, workers = fit.communicate(timeout=90)[0].splitlines()
    assert found == expected.strip()
    assert workers == "1"
