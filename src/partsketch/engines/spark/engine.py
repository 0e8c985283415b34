"""Spark: jobs of a running or a local session, on files and on a `DataFrame`."""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any, cast

from partsketch._version import __version__
from partsketch.common.errors import InputError
from partsketch.engines.address import greet, host_and_port, reach
from partsketch.engines.base import Engine, EngineCost, Outcomes
from partsketch.engines.bundles import bundle_tasks, task_rows
from partsketch.engines.local import usable_cores
from partsketch.engines.progress import RowProgress
from partsketch.engines.versions import check_versions
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import ChunkedRows, is_remote
from partsketch.sources.cluster.remote import ChunkedColumns, holds_rows
from partsketch.summaries.tasks import PassRequest, Task

_EXAMPLE = "spark://host:7077"

#: Attempts at a task before a session started here gives it up; Spark's local mode makes a single one by default.
_ATTEMPTS = 4

#: Most tasks of one bundle when their rows are sent: they are in memory together.
_MOST_TASKS_IN_MEMORY = 2


def import_session() -> Any:
    """Import Spark's session class, or say how to get it."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError("The engine 'spark' needs PySpark: pip install 'partsketch[spark]'.") from error
    return SparkSession


class SparkEngine(Engine):
    """Executors of a Spark session.

    Parameters
    ----------
    where
        None takes the session of this process, and else starts one on this machine; "spark://host:7077" is a master,
        "spark://local[2]" a session on this machine with two workers; or a `SparkSession`.
    workers
        Number of worker processes of a session started here; None means one per core.
    """

    name = "spark"
    cost = EngineCost(0.02, 1e8)

    def __init__(self, where: Any = None, workers: int | None = None) -> None:
        session_class = import_session()
        self._started = False
        if where is not None and not isinstance(where, str):
            self.session = where
        else:
            self.session = _running(session_class)
            master = _master(where, workers)
            if self.session is None:
                self.session = _start(session_class, master, where)
                self._started = True
            elif where is not None and self.session.sparkContext.master != master:
                raise InputError(
                    f"This process has a Spark session already (master {self.session.sparkContext.master}), so "
                    f"{where} cannot be reached: use engine='spark' for that session, or stop it first."
                )
        try:
            self._context: Any = self.session.sparkContext
        except Exception as error:  # Spark Connect has an error class of its own, in a module that may be absent
            raise InputError(
                "A Spark Connect session does not run Python functions on partitions that are known by number: use a "
                "classic session."
            ) from error
        # A session on this machine has workers of another Python where the environment says so (PYSPARK_PYTHON).
        ours = self._started and self._context.master.startswith("local")
        if not ours or self._context.pythonExec != sys.executable:
            try:
                check_versions("Spark", _versions(self._context))
            except InputError:
                self.close()
                raise

    def close(self) -> None:
        """Stop the session if this engine started it."""
        if self._started:
            self._started = False
            self.session.stop()

    def open_collection(self, data: Any) -> ChunkedRows:
        """Return the rows of a `DataFrame`, which are counted by partition for it."""
        from partsketch.engines.spark.frame import frame_rows

        return frame_rows(data)

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        """Yield outcomes as jobs end; files are read by several jobs, a `DataFrame` is run through by one."""
        from partsketch.engines.spark.jobs import FileJobs, run_jobs

        with RowProgress(task_rows(tasks, range(len(tasks)))) as progress:
            if is_remote(source):
                from partsketch.engines.spark.frame import FrameJob

                jobs: Any = FrameJob(self._context, cast(ChunkedColumns, source), request, tasks)
            else:
                sends_rows = holds_rows(source)
                workers = max(1, self._context.defaultParallelism)
                bundles = bundle_tasks(len(tasks), workers, *([_MOST_TASKS_IN_MEMORY] if sends_rows else []))
                jobs = FileJobs(self._context, source, request, tasks, bundles, sends_rows)
            yield from run_jobs(self._context, jobs, progress, deadline)


def _running(session_class: Any) -> Any:
    """Return the session of this process, None where there is none.

    Spark knows an active session for a thread of Java's. Another Python thread, or this one after an interrupt, talks
    to another such thread, where none is active: the session would be taken for one started here, and be stopped.
    """
    from pyspark.errors import PySparkRuntimeError

    try:
        session = session_class.active()
    except PySparkRuntimeError:
        return None
    # A context that was stopped without its session: Spark itself starts another then.
    context = getattr(session, "_sc", None)
    return None if context is not None and context._jsc is None else session


def _versions(context: Any) -> dict[str, object]:
    """Ask executors which partsketch they have, as many tasks as run at once; those that have another are named."""
    count = max(1, context.defaultParallelism)
    try:
        found = context.parallelize(range(count), count).map(_version_there).collect()
    except Exception as error:  # of Java, with what the executor said in its text
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = re.findall(r"Cannot run program .*|^\s*\w*(?:Error|Exception): .*$", str(error), re.MULTILINE)
        reason = (said or lines or [type(error).__name__])[0]
        return {f"an executor (Python {context.pythonExec})": RuntimeError(reason)}
    versions: dict[str, object] = {}
    for host, version, fault in found:
        if version != __version__:
            versions[f"the executor on {host}"] = version if fault is None else ImportError(fault)
    return versions


def _version_there(number: int) -> tuple[str, str, str | None]:
    """Return the host of a worker, and its version of partsketch or why there is none; runs there."""
    import importlib
    import socket

    try:
        return socket.gethostname(), str(importlib.import_module("partsketch").__version__), None
    except Exception as error:
        return socket.gethostname(), "", f"{type(error).__name__}: {error}"


# Functions of a module that can be imported travel by name, and this one is for workers where it cannot.
_version_there.__module__ = "__main__"


def _master(where: str | None, workers: int | None) -> str:
    if where is None:
        return f"local[{workers or usable_cores()},{_ATTEMPTS}]"
    # "localhost:7077" is an address.
    local = re.fullmatch(r"local(?:\[([^\[\]]*)\])?", where.removeprefix("spark://"))
    if local is not None:
        inside = local[1] if local[1] is not None else "1"
        if not re.fullmatch(r"(\*|[1-9][0-9]{0,3})(,[1-9][0-9]{0,3})?", inside):
            raise InputError(
                f"engine is {where!r}: between the brackets stands a number of workers, such as 'spark://local[2]'."
            )
        return f"local[{inside}]" if "," in inside else f"local[{inside},{_ATTEMPTS}]"
    host_and_port(where, _EXAMPLE)
    return where


def _meet_master(master: str) -> None:
    """Refuse an address where no process of Spark answers; Spark itself would try for a minute.

    Asked something that makes no sense, one says so (https://spark.apache.org, network-common: a frame has its length,
    a type and a body; 3 is a request, 4 and 5 are the answers). One that speaks TLS hangs up: Spark may try then.
    """
    host, port = reach(master, _EXAMPLE)
    question = struct.pack(">QBQI", 21 + 4, 3, 1, 4) + b"ping"

    def ask(seconds: float) -> None:
        with socket.create_connection((host, port), timeout=seconds) as connection:
            connection.sendall(question)
            answer = connection.recv(9)
            if answer and answer[8:9] not in (b"\x04", b"\x05") and not answer.startswith(b"\x15\x03"):
                raise ValueError("another protocol")

    greet(master, "Spark master", ask)


def _start(session_class: Any, master: str, where: str | None) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = session_class.builder.master(master).appName("partsketch").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Spark's 200 are for a cluster; here each costs more than its work.
        builder = builder.config("spark.sql.shuffle.partitions", str(2 * usable_cores()))
    try:
        if master.startswith("local"):
            return builder.getOrCreate()
        _meet_master(master)
        return builder.getOrCreate()
    except InputError:
        raise
    except Exception as error:  # Java that is missing, a master that does not answer: Spark has no common class
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # The first line says where in Java it happened, the second what.
        told = [line.removeprefix(": ") for line in lines if line.startswith(": ")] or lines
        reason = told[0].rstrip(".") if told else type(error).__name__
        raise InputError(f"No Spark session can be started ({where or master}): {reason}.") from error
