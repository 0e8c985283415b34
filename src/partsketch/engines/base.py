"""What an engine does: run "summarise these rows" somewhere, and hand back the results as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, Self

from partsketch.common.errors import InputError
from partsketch.sources.base import Source
from partsketch.sources.cluster.chunked import cluster_of
from partsketch.summaries.tasks import SummaryRequest, Task, TaskResult


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


class Closing:
    """Closes what an engine started when its `with` block ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop or leave what was started."""
        raise NotImplementedError


class Engine(Protocol):
    """Runs tasks. Contains no mathematics: every engine calls the same function on the same rows.

    An engine that starts a cluster of its own is a context manager that stops it.
    """

    name: str

    def run(
        self, source: Source, request: SummaryRequest, tasks: Sequence[Task], deadline: float | None = None
    ) -> Iterator[TaskOutcome]:
        """Yield what became of every task, in the order in which they end.

        Several tasks may be reported together, merged by `merge_results`. A task that fails is reported like any other
        and stops nothing: the caller decides. Closing the iterator cancels what is under way; so does the deadline, a
        value of `time.monotonic`, after which the iterator ends.
        """
        ...


#: Module and class of every engine; each takes nothing (a cluster of its own), an address, or a session object.
_ENGINES = {
    "dask": ("partsketch.engines.dask.engine", "DaskEngine"),
    "ray": ("partsketch.engines.ray.engine", "RayEngine"),
    "spark": ("partsketch.engines.spark.engine", "SparkEngine"),
}
_SCHEMES = {"dask": "dask", "tcp": "dask", "tls": "dask", "ray": "ray", "spark": "spark"}
#: Packages whose session objects (a Dask client, a Spark session) are taken for the engine itself.
_SESSIONS = {"distributed": "dask", "pyspark": "spark"}


def get_engine(engine: Any) -> Engine:
    """Return the engine of this name, address or session, or the object itself if it is an engine.

    Parameters
    ----------
    engine
        "local"; "dask", "ray" or "spark" for a cluster started on this machine; an address such as
        "dask://host:8786", "tcp://host:8786", "ray://host:10001", "ray://auto", "spark://host:7077" or
        "spark://local[2]"; a `distributed.Client` or a `pyspark.sql.SparkSession`; or an object with a method `run`.
    """
    if isinstance(engine, str):
        if engine == "local":
            from partsketch.engines.local import LocalEngine

            return LocalEngine()
        if engine in _ENGINES:
            return _make(engine)
        scheme, separator, _ = engine.partition("://")
        if not separator or scheme not in _SCHEMES:
            raise InputError(
                f"engine is {engine!r}: choose 'local', 'dask', 'ray' or 'spark', or give an address such as "
                "'dask://host:8786', 'ray://host:10001' or 'spark://host:7077'."
            )
        return _make(_SCHEMES[scheme], engine)
    package = type(engine).__module__.partition(".")[0]
    if package in _SESSIONS:
        return _make(_SESSIONS[package], engine)
    if not callable(getattr(engine, "run", None)):
        raise InputError(
            "engine is the name or the address of an engine, a Dask client, a Spark session, or an object with a "
            "method run(source, request, tasks, deadline)."
        )
    return engine  # type: ignore[no-any-return]


def _make(name: str, *where: Any) -> Engine:
    module, class_name = _ENGINES[name]
    engine: Engine = getattr(import_module(module), class_name)(*where)
    return engine


@contextmanager
def using_engine(engine: Any, data: Any = None) -> Iterator[Engine]:
    """Give the engine that `get_engine` makes of a name or session, and close it afterwards; an engine stays open.

    A collection of a cluster stays there: it brings its own engine where the default, "local", was left.
    """
    made = get_engine(cluster_of(data) or engine if engine == "local" else engine)
    with made if made is not engine and isinstance(made, AbstractContextManager) else nullcontext():
        yield made
