"""Large products shared among the threads of a fit: those that have nothing left to do help those that have.

A product is cut into parts that depend on its shape alone, so it has the same bits whoever makes them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

T = TypeVar("T")
U = TypeVar("U")
Part = Callable[[], object]


class _Shared:
    """Parts of one piece of work, each of which is done once by whoever comes first."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        # Counting is atomic.
        self._numbers = count()
        self._left = threading.Semaphore(0)
        self._errors: list[BaseException] = []

    def work(self) -> None:
        """Do parts until none are left."""
        while (number := next(self._numbers)) < len(self._parts):
            try:
                self._parts[number]()
            except BaseException as error:
                self._errors.append(error)
            finally:
                self._left.release()

    def finish(self) -> None:
        """Do parts, wait for those that others do, and raise what went wrong."""
        self.work()
        for _ in self._parts:
            self._left.acquire()
        if self._errors:
            raise self._errors[0]


class Helpers:
    """Threads of one fit that have nothing left to do."""

    def __init__(self) -> None:
        self._asked: SimpleQueue[_Shared | None] = SimpleQueue()
        self._lock = threading.Lock()
        self.idle = 0
        self._closed = False

    def help(self) -> None:
        """Do parts of what others share, until the fit has ended."""
        with self._lock:
            if self._closed:
                return
            self.idle += 1
        self._do_parts()

    def _do_parts(self) -> None:
        while (shared := self._asked.get()) is not None:
            shared.work()

    def close(self) -> None:
        """Let all who help go."""
        with self._lock:
            self._closed = True
            for _ in range(self.idle):
                self._asked.put(None)

    def share(self, parts: Sequence[Part]) -> None:
        """Do all parts, together with those who have nothing else to do."""
        shared = _Shared(parts)
        for _ in range(self.idle):
            self._asked.put(shared)
        shared.finish()


class _Lent(Helpers):
    """Threads that are started when there is something to share for the first time."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._threads: list[threading.Thread] = []

    def share(self, parts: Sequence[Part]) -> None:
        """Do all parts, together with the threads."""
        while len(self._threads) < self._count:
            # They count from the first on: what is asked of them lies ready when they come to look.
            self.idle += 1
            self._threads.append(threading.Thread(target=self._do_parts, daemon=True, name="partsketch-helper"))
            self._threads[-1].start()
        super().share(parts)

    def close(self) -> None:
        """End all threads."""
        super().close()
        for thread in self._threads:
            thread.join()


_own = threading.local()


@contextmanager
def helped_by(helpers: Helpers) -> Iterator[None]:
    """Let this thread share its large products while in this context."""
    before = getattr(_own, "helpers", None)
    _own.helpers = helpers
    try:
        yield
    finally:
        _own.helpers = before


@contextmanager
def sharing_with(count: int) -> Iterator[None]:
    """Let this thread share its large products with so many others while in this context."""
    lent = _Lent(count)
    try:
        with helped_by(lent):
            yield
    finally:
        lent.close()


def share(parts: Sequence[Part]) -> None:
    """Do all parts, with the helpers that this thread has."""
    helpers: Helpers | None = getattr(_own, "helpers", None)
    if helpers is not None and len(parts) > 1:
        helpers.share(parts)
        return
    for part in parts:
        part()


def shared_map(function: Callable[[T], U], items: Sequence[T]) -> list[U]:
    """Return what a function gives for each item, made with the helpers that this thread has."""
    found: dict[int, U] = {}
    # What becomes of overflow is a matter of the thread that asks.
    circumstances = np.geterr()

    def part(number: int) -> None:
        with np.errstate(**circumstances):
            found[number] = function(items[number])

    share([partial(part, number) for number in range(len(items))])
    return [found[number] for number in range(len(items))]
