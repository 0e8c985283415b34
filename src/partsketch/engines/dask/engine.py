"""The Dask engine: tasks run on the workers of a Dask cluster, theirs or one that is started for the fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine, EngineCost, Outcomes
from partsketch.engines.local import usable_cores
from partsketch.engines.progress import RowProgress
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.cluster.remote import ChunkedArrays
from partsketch.summaries.tasks import PassRequest, Task

#: Seconds to wait for a scheduler that was given by its address.
CONNECT_SECONDS = 10


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
            return
        if isinstance(self._where, str):
            address = self._where.replace("dask://", "tcp://", 1)
            try:
                self._client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError, TimeoutError) as error:
                raise InputError(
                    f"No Dask scheduler answers at {self._where}: start one (dask scheduler) or correct the address."
                ) from error
            return
        try:
            self._client = Client.current()
            self._where = self._client
        except ValueError:
            # One thread each: a fit is limited by memory bandwidth and the interpreter lock, not by waiting.
            self._cluster = LocalCluster(
                n_workers=self._workers or usable_cores(),
                threads_per_worker=1,
                dashboard_address=":0",
                silence_logs="CRITICAL",
            )
            self._client = Client(self._cluster, set_as_default=False)

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
