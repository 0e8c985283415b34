"""What an engine does: run "summarise these rows" somewhere, and hand back the results as they come."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from partsketch.common.errors import InputError
from partsketch.common.registry import Registry
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.cluster.chunks import cluster_of, refuse_collection
from partsketch.summaries.tasks import PassRequest, Task, TaskResult


@dataclass(frozen=True)
class TaskOutcome:
    """What became of a task, or of several whose results were merged where they were made.

    Attributes
    ----------
    tasks
        Indices into the list of tasks.
    result
        What they brought back, or None when they failed.
    error
        Why a task failed; never together with tasks that did not.
    """

    tasks: tuple[int, ...]
    result: TaskResult | None
    error: Exception | None = None


#: What an engine reports; closing the generator ends what is under way.
Outcomes: TypeAlias = Generator[TaskOutcome, None, None]


@dataclass(frozen=True)
class EngineCost:
    """What an engine adds to the time of a fit; round figures that are assumed, not measured.

    Attributes
    ----------
    seconds_per_task
        Scheduling of one task, borne by the driver.
    bytes_per_second
        Speed at which summaries travel to the driver; infinite where nothing travels.
    """

    seconds_per_task: float = 0.0
    bytes_per_second: float = math.inf


class Engine:
    """Runs tasks. Contains no mathematics: every engine calls the same function on the same rows.

    Engines are subclasses. What an engine started, it stops in `close`, at the end of its `with` block.

    Attributes
    ----------
    name
        The name users give, and with which addresses begin.
    cost
        What it adds to the time of a fit, for the planner.
    threads
        How many threads of this process it works with.
    """

    name: str
    threads: int = 1
    cost: EngineCost = EngineCost()

    def run(
        self, source: Source, request: PassRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Outcomes:
        """Yield what became of every task, in the order in which they end.

        Several tasks may be reported together, merged by `merge_results`. A task that fails is reported like any other
        and stops nothing: the caller decides. Closing the generator cancels what is under way; so does the deadline, a
        value of `time.monotonic`, after which it ends.
        """
        raise NotImplementedError

    def open_collection(self, data: Any) -> ChunkedRows:
        """Return the rows of a collection of this engine's cluster."""
        raise refuse_collection(data)

    def open_arrays(
        self, X: Any, y: Any, sample_weight: Any, feature_names: Sequence[str] | None, target_names: Sequence[str]
    ) -> Source:
        """Return features, targets and weights that are arrays of this engine's cluster."""
        raise InputError(
            f"X is a collection of {cluster_of(X)} and stays on its cluster: fit it with partsketch.fit(X, target=…, "
            f"engine={cluster_of(X)!r})."
        )

    def close(self) -> None:
        """Stop or leave what was started."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


#: Where our own engines are; other packages add theirs by an entry point of the group "partsketch.engines".
ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "local": "partsketch.engines.local:LocalEngine",
        "dask": "partsketch.engines.dask.engine:DaskEngine",
        "ray": "partsketch.engines.ray.engine:RayEngine",
        "spark": "partsketch.engines.spark.engine:SparkEngine",
    },
)
#: Addresses begin with the name of their engine, or with these.
_SCHEMES = {"tcp": "dask", "tls": "dask"}
#: Packages whose session objects (a Dask client, a Spark session) are taken for the engine itself.
_SESSIONS = {"distributed": "dask", "pyspark": "spark"}


def engine_class(engine: str) -> type[Engine]:
    """Return the class of the engine of this name or address."""
    scheme, separator, _ = engine.partition("://")
    found = ENGINES.get(_SCHEMES.get(scheme, scheme) if separator else engine, Engine)
    if found is None or (separator and found.name == "local"):
        raise InputError(
            f"engine is {engine!r}: choose {', '.join(map(repr, ENGINES.names))}, or give an address such as "
            "'dask://host:8786', 'ray://host:10001' or 'spark://host:7077'."
        )
    return found


def get_engine(engine: Any) -> Engine:
    """Return the engine of this name, address or session, or the object itself if it is an engine.

    Parameters
    ----------
    engine
        "local"; "dask", "ray" or "spark" for a cluster started on this machine, or the name of an engine of another
        package; an address such as "dask://host:8786", "tcp://host:8786", "ray://host:10001", "ray://auto",
        "spark://host:7077" or "spark://local[2]"; a `distributed.Client` or a `pyspark.sql.SparkSession`; or an
        `Engine`.
    """
    if isinstance(engine, str):
        return _make(engine, *([engine] if "://" in engine else []))
    package = type(engine).__module__.partition(".")[0]
    if package in _SESSIONS:
        return _make(_SESSIONS[package], engine)
    if not isinstance(engine, Engine):
        raise InputError(
            "engine is the name or the address of an engine, a Dask client, a Spark session, or an object of a "
            "subclass of partsketch.engines.base.Engine."
        )
    return engine


def _make(name: str, *where: Any) -> Engine:
    # Classes of engines take nothing (a cluster of their own), an address, or a session object.
    kind: Any = engine_class(name)
    engine: Engine = kind(*where)
    return engine


@contextmanager
def using_engine(engine: Any, data: Any = None) -> Iterator[Engine]:
    """Give the engine that `get_engine` makes of a name or session, and close it afterwards; an engine stays open.

    A collection of a cluster stays there: it brings its own engine where the default, "local", was left.
    """
    made = get_engine(cluster_of(data) or engine if engine == "local" else engine)
    with made if made is not engine else nullcontext():
        yield made
