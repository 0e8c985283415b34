"""Ray: tasks of a running or a local Ray runtime, on files and on the blocks of a `ray.data.Dataset`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

from partsketch.common.errors import InputError, reason_of
from partsketch.engines.address import greet, host_and_port, reach
from partsketch.engines.base import Engine, EngineCost, Outcomes, TaskOutcome
from partsketch.engines.bundles import Bundle, bundle_tasks, lost, merge_bundles, run_bundle, task_rows
from partsketch.engines.local import usable_cores
from partsketch.engines.progress import RowProgress
from partsketch.engines.versions import WANTED, ask, check_versions
from partsketch.engines.worker import run_on_chunks, run_task
from partsketch.sketches.base import Merging
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import ChunkedRows, is_remote
from partsketch.sources.cluster.chunks import Chunks
from partsketch.sources.cluster.remote import holds_rows, part_of
from partsketch.summaries.tasks import PassRequest, Task

_EXAMPLE = "ray://host:10001"

#: Results that one merging task takes.
_FAN_IN = 8

#: Most tasks of one bundle when their rows are sent or fetched: they are in memory together.
_MOST_TASKS_IN_MEMORY = 2

#: Seconds that workers have to notice that their work is not wanted any more, before they are ended.
_GRACE_SECONDS = 2.0

#: How often Ray repeats a task whose worker died.
_RETRIES = 3


def import_ray() -> Any:
    """Import Ray, or say how to get it."""
    try:
        import ray
    except ImportError as error:
        raise InputError("The engine 'ray' needs Ray: pip install 'partsketch[ray]'.") from error
    return ray


class RayEngine(Engine):
    """Workers of a Ray runtime.

    Parameters
    ----------
    address
        None takes the runtime that this process is connected to, and else starts one on this machine; "ray://auto" is
        the runtime that this machine belongs to, "ray://host:10001" that of a Ray Client server.
    workers
        Number of worker processes of a runtime started here; None means one per core.
    """

    name = "ray"
    cost = EngineCost(0.005, 1e8)

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        ray = import_ray()
        self._ray = ray
        self._started = not ray.is_initialized()
        if not self._started:
            if address is not None and address != "ray://auto":
                host_and_port(address, _EXAMPLE)
                raise InputError(
                    f"This process is connected to a Ray runtime already, so {address} cannot be reached: use "
                    "engine='ray' for that runtime, or call ray.shutdown() first."
                )
            # Whoever connected may have gone to another machine, or has another path here than its workers have.
            check_versions("Ray", _versions(ray))
            return
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init(address="local", num_cpus=workers or usable_cores(), include_dashboard=False, **quiet)
            return
        try:
            if address == "ray://auto":
                ray.init(address="auto", **quiet)
            else:
                _meet_server(address)
                ray.init(address=address, **quiet)
        except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"No Ray runtime can be reached at {address}: {reason_of(error)}.") from error
        check_versions("Ray", _versions(ray))

    def close(self) -> None:
        """Stop the runtime, or leave it, if this engine started or joined it."""
        if self._started:
            self._started = False
            self._ray.shutdown()

    def open_collection(self, data: Any) -> ChunkedRows:
        """Return the rows of a `ray.data.Dataset`, whose blocks are made if they are not there yet."""
        from partsketch.engines.ray.data import dataset_rows

        return dataset_rows(data)

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        """Yield outcomes as bundles of tasks end and are merged; a bounded number is under way."""
        with RowProgress(task_rows(tasks, range(len(tasks)))) as progress:
            yield from _Run(self._ray, source, request, tasks, progress).outcomes(deadline)


def _meet_server(address: str) -> None:
    """Refuse an address where no server of Ray's protocol answers; Ray itself would try for minutes."""
    host, port = reach(address, _EXAMPLE)
    if os.environ.get("RAY_USE_TLS") == "1":
        return
    import grpc
    from ray.core.generated.ray_client_pb2 import ClusterInfoRequest, ClusterInfoType
    from ray.core.generated.ray_client_pb2_grpc import RayletDriverStub

    # Proxies and other servers take such channels, too: they do not know the question.
    ping = ClusterInfoRequest(type=ClusterInfoType.PING)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def understands(channel: Any, seconds: float) -> bool:
        """Tell whether the question is answered; whoever wants a token for that has understood it."""
        try:
            RayletDriverStub(channel).ClusterInfo(ping, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNAUTHENTICATED:
                raise
            return False
        return True

    answered: list[bool] = []

    def ready(seconds: float) -> None:
        with grpc.insecure_channel(place) as channel:
            answered.append(understands(channel, seconds))
        if not answered[0]:
            # This one shows the token that Ray knows of. Where the module is not, Ray may try for itself.
            try:
                from ray._private.grpc_utils import init_grpc_channel
            except ImportError:
                answered.append(True)
                return
            with init_grpc_channel(place) as channel:
                answered.append(understands(channel, seconds))

    greet(address, "Ray Client server", ready)
    if not answered[-1]:
        raise InputError(
            f"The Ray cluster at {address} asks for its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what "
            "'ray get-auth-token' prints there."
        )


def _versions(ray: Any) -> dict[str, object]:
    """Ask every node which partsketch its workers have."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = {
        node["NodeManagerHostname"]: ray.remote(ask)
        .options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
        .remote(WANTED)
        for node in ray.nodes()
        if node["Alive"]
    }
    found: dict[str, object] = {}
    for host, answer in asked.items():
        try:
            found[host] = ray.get(answer)
        except ray.exceptions.RayError as error:
            found[host] = getattr(error, "cause", None) or error
    return found


class _Run:
    """One run: what waits, what is under way, what waits to be merged."""

    def __init__(
        self, ray: Any, source: Source, request: PassRequest, tasks: Sequence[Task], progress: RowProgress
    ) -> None:
        self._ray, self._source, self._request, self._tasks, self._progress = ray, source, request, tasks, progress
        self._how = request.merging
        workers = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._pieces_are_sent = not is_remote(source) and holds_rows(source)
        chunks: Chunks | None = source.chunks if is_remote(source) else None
        self._blocks = () if chunks is None else chunks.collection.refs  # type: ignore[union-attr]
        in_memory = self._pieces_are_sent or chunks is not None
        bundles = bundle_tasks(len(tasks), workers, *([_MOST_TASKS_IN_MEMORY] if in_memory else []))
        self._waiting = list(reversed(bundles))
        self._most_under_way = 2 * workers
        options = {"num_cpus": 1, "max_retries": _RETRIES}
        self._work = ray.remote(_work).options(num_returns=2, **options)
        self._merge = ray.remote(_merge).options(**options)
        sent = source.sent() if chunks is not None else source  # type: ignore[attr-defined]
        self._shared = ray.put(request if self._pieces_are_sent else (sent, request))
        self._under_way: dict[Any, tuple[range, Any]] = {}
        self._to_merge: list[Any] = []
        self._merging: dict[Any, None] = {}

    def outcomes(self, deadline: float | None) -> Iterator[TaskOutcome]:
        ray = self._ray
        try:
            while True:
                self._submit()
                pending = [*self._under_way, *self._merging]
                if not pending:
                    return
                seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
                ended, _ = ray.wait(pending, num_returns=1, timeout=seconds)
                if not ended:
                    # What has been done is not thrown away because it has not been merged yet.
                    for bundle in ray.get(self._to_merge):
                        yield from bundle.outcomes()
                    return
                yield from self._end(ended[0])
        finally:
            self._cancel()

    def _submit(self) -> None:
        while self._waiting and len(self._under_way) < self._most_under_way:
            indices = self._waiting.pop()
            start, stop = self._tasks[indices[0]].start, self._tasks[indices[-1]].stop
            part = part_of(self._source, start, stop) if self._pieces_are_sent else None
            blocks = [self._blocks[i] for i in self._source.chunks.between(start, stop)] if self._blocks else []  # type: ignore[attr-defined]
            chosen = [(index, self._tasks[index]) for index in indices]
            rows, bundle = self._work.remote(self._shared, part, chosen, *blocks)
            self._under_way[rows] = (indices, bundle)
        last = not self._waiting and not self._under_way
        while len(self._to_merge) >= _FAN_IN or (last and self._to_merge):
            group, self._to_merge = self._to_merge[:_FAN_IN], self._to_merge[_FAN_IN:]
            self._merging[self._merge.remote(self._how, *group) if len(group) > 1 else group[0]] = None

    def _end(self, ended: Any) -> Iterator[TaskOutcome]:
        if ended in self._merging:
            del self._merging[ended]
            bundle: Bundle = self._ray.get(ended)
            yield from bundle.outcomes()
            return
        indices, bundle_reference = self._under_way.pop(ended)
        try:
            self._progress.advance(self._ray.get(ended))
        except self._ray.exceptions.RayError as error:
            # Only one of the tasks may be what kills workers: the others get another chance alone.
            if len(indices) > 1:
                self._waiting.extend(range(index, index + 1) for index in reversed(indices))
            else:
                yield TaskOutcome(tuple(indices), None, lost("Ray", self._tasks[indices[0]], error))
        else:
            self._to_merge.append(bundle_reference)

    def _cancel(self) -> None:
        """Interrupt what is under way; end the workers that do not notice."""
        left = [*self._under_way, *self._merging]
        if not left:
            return
        for reference in left:
            self._ray.cancel(reference, force=False)
        _, deaf = self._ray.wait(left, num_returns=len(left), timeout=_GRACE_SECONDS)
        for reference in deaf:
            self._ray.cancel(reference, force=True)


def _work(shared: Any, part: Source | None, tasks: Sequence[tuple[int, Task]], *blocks: Any) -> tuple[int, Bundle]:
    """Summarise the rows of some tasks; runs on a worker. Returns the number of rows apart, for the driver to see."""
    source: Any
    source, request = shared if part is None else (part, shared)
    if not blocks:
        bundle = run_bundle(request.merging, tasks, lambda task: run_task(source, request, task))
    else:
        first = source.chunks.between(tasks[0][1].start, tasks[-1][1].stop).start

        def on_blocks(task: Task) -> Any:
            needed = source.chunks.between(task.start, task.stop)
            return run_on_chunks(source, request, task, [blocks[number - first] for number in needed])

        bundle = run_bundle(request.merging, tasks, on_blocks)
    return task_rows([task for _, task in tasks], range(len(tasks))), bundle


def _merge(merging: Merging, *bundles: Bundle) -> Bundle:
    return merge_bundles(merging, bundles)
