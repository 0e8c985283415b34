"""What an engine does: run "summarise these rows" somewhere, and hand back the results in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from partsketch.errors import InputError
from partsketch.sources.base import Source
from partsketch.summarise import SummaryRequest, Task, TaskResult


class Engine(Protocol):
    """Runs tasks. Contains no mathematics: every engine calls the same function on the same rows."""

    name: str

    def run(self, source: Source, request: SummaryRequest, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        """Yield the result of every task, in the order of the tasks.

        When tasks fail, the error of the first failing one in that order is raised.
        """
        ...


def get_engine(engine: Any) -> Engine:
    """Return the engine of this name, or the object itself if it is an engine."""
    if engine == "local":
        from partsketch.engines.local import LocalEngine

        return LocalEngine()
    if isinstance(engine, str):
        raise InputError(f"engine is {engine!r}: this version knows 'local' only.")
    if not callable(getattr(engine, "run", None)):
        raise InputError("engine is the name of an engine, or an object with a method run(source, request, tasks).")
    return engine  # type: ignore[no-any-return]
