"""The Dask engine: tasks run on the workers of a Dask cluster, theirs or one that is started for the fit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from multiprocessing import resource_tracker
from typing import Any, Self

from partsketch.common.errors import InputError
from partsketch.common.interrupts import interrupts_held
from partsketch.engines.address import greet, reach
from partsketch.engines.base import Engine, EngineCost, Outcomes
from partsketch.engines.local import usable_cores
from partsketch.engines.progress import RowProgress
from partsketch.engines.versions import WANTED, ask, check_versions
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.cluster.remote import ChunkedArrays
from partsketch.summaries.tasks import PassRequest, Task

#: Seconds to wait for a scheduler that was given by its address.
CONNECT_SECONDS = 10


def _meet_scheduler(address: str, where: str) -> None:
    """Refuse an address where something else than a Dask scheduler answers, before a client is made.

    A client that cannot connect takes long, and complains once more when it is collected.
    """
    from distributed import Security
    from distributed.core import rpc

    async def identity() -> object:
        async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
            return await scheduler.identity()

    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        greet(where, "Dask scheduler", lambda seconds: asyncio.run(asyncio.wait_for(identity(), seconds)))
    finally:
        logger.setLevel(before)


class DaskEngine(Engine):
    """Workers of a Dask cluster.

    Parameters
    ----------
    where
        A `distributed.Client`; the address of a scheduler, "dask://host:8786" or "tcp://host:8786"; or None: the
        current client of this process if there is one, else a cluster on this machine that lives until `close`.
    workers
        Number of worker processes of that cluster; None means one per core that this process may use.

    Examples
    --------
    >>> from partsketch.engines.dask.engine import DaskEngine
    >>> with DaskEngine(workers=2) as engine:  # doctest: +SKIP
    ...     SketchedRegression(engine=engine).fit(X, y)
    """

    name = "dask"
    cost = EngineCost(0.005, 1e8)

    def __init__(self, where: Any = None, workers: int | None = None) -> None:
        try:
            import distributed  # noqa: F401
        except ImportError as error:
            raise InputError("The Dask engine needs Dask: pip install 'partsketch[dask]'.") from error
        if workers is not None and (not isinstance(workers, int) or workers < 1):
            raise InputError(f"workers is {workers}: give a whole number, at least 1.")
        self._where, self._workers = where, workers
        self._client: Any = None
        self._cluster: Any = None

    @property
    def client(self) -> Any:
        """The client; the first use connects it, or starts the cluster."""
        if self._client is None:
            self._connect()
        return self._client

    def _connect(self) -> None:
        from distributed import Client, LocalCluster

        if self._where is not None and not isinstance(self._where, str):
            self._client = self._where
            self._check_workers()
            return
        if isinstance(self._where, str):
            address = self._where.replace("dask://", "tcp://", 1)
            reach(self._where, "dask://host:8786")
            _meet_scheduler(address, self._where)
            self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            self._check_workers()
            return
        try:
            self._client = Client.current()
            self._where = self._client
            self._check_workers()
        except InputError:
            raise
        except ValueError:
            # One thread each: a fit is limited by memory bandwidth and the interpreter lock, not by waiting.
            try:
                # Python starts this with the first process, and lets the thread that does so be interrupted then.
                resource_tracker.ensure_running()
                # A cluster that is half there cannot be closed, and says so in tracebacks; so do workers.
                with interrupts_held():
                    self._cluster = LocalCluster(
                        n_workers=self._workers or usable_cores(),
                        threads_per_worker=1,
                        dashboard_address=":0",
                        silence_logs="CRITICAL",
                    )
                    self._client = Client(self._cluster, set_as_default=False)
            except KeyboardInterrupt:
                self.close()
                raise

    def _check_workers(self) -> None:
        """Refuse workers without this version of partsketch; workers that come later are not asked."""
        if not self._client.asynchronous:
            check_versions("Dask", self._client.run(ask, WANTED, on_error="return"))

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        """Yield outcomes as bundles of tasks end on the cluster, merged there."""
        from partsketch.engines.dask.flight import Flight

        if not tasks:
            return
        total = None if tasks[-1].stop is None else sum((task.stop or 0) - task.start for task in tasks)
        # What is finished when the deadline passes should not wait for what shares its bundle.
        flight = Flight(self.client, source, request, tasks, one_by_one=deadline is not None)
        with RowProgress(total) as progress:
            try:
                yield from flight.outcomes(deadline, progress.advance)
            finally:
                flight.stop()

    def open_collection(self, data: Any) -> ChunkedRows:
        """Return the rows of a Dask array or data frame."""
        from partsketch.engines.dask.collections import open_collection

        return open_collection(self.client, data)

    def open_arrays(
        self, X: Any, y: Any, sample_weight: Any, feature_names: Sequence[str] | None, target_names: Sequence[str]
    ) -> ChunkedArrays:
        """Return features, targets and weights that are Dask arrays."""
        from partsketch.engines.dask.collections import open_arrays

        return open_arrays(self.client, X, y, sample_weight, feature_names, target_names)

    def close(self) -> None:
        """Close the connection and stop the cluster, if they are this engine's own."""
        if self._client is not None and self._client is not self._where:
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()
        self._client = self._cluster = None

    def __enter__(self) -> Self:
        if self._client is None:
            self._connect()
        return self
