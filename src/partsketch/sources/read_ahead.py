"""Rows that are read and decoded by a thread of their own while others are summed: for cores that would lie idle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from partsketch.sources.base import Block
from partsketch.sources.wrapper import SourceWrapper

T = TypeVar("T")

#: Numbers of a block at most, where that leaves enough rows: one is summed, one waits, one is decoded.
_MOST_NUMBERS = 2**20
_LEAST_ROWS = 4096


@dataclass(frozen=True)
class ReadAhead(SourceWrapper):
    """Another source, one block of which is always under way."""

    def read(self, start: int = 0, stop: int | None = None, block_rows: int = 65536) -> Iterator[Block]:
        """Yield the blocks of the other source, in their order."""
        width = len(self.feature_names) + len(self.target_names)
        rows = min(block_rows, max(_LEAST_ROWS, _MOST_NUMBERS // max(1, width)))
        with closing(Ahead(self.source.read(start, stop, rows), 2)) as blocks:
            yield from blocks


class Ahead(Iterator[T]):
    """What another thread takes from an iterator, some blocks ahead, beginning at once; it ends when it is closed.

    Parameters
    ----------
    blocks
        The iterator.
    most
        Blocks that may have been taken and not yet be done with; the last one given counts until the next is wanted.
    """

    def __init__(self, blocks: Iterator[T], most: int) -> None:
        self._blocks = blocks
        self._ready: SimpleQueue[T | BaseException | None] = SimpleQueue()
        self._wanted = threading.Semaphore(most)
        self._stopped = threading.Event()
        self._given = False
        # A daemon: a read that hangs must not keep the process from ending.
        self._reader = threading.Thread(target=self._take, daemon=True, name="partsketch-reader")
        self._reader.start()

    def _take(self) -> None:
        try:
            while self._wanted.acquire() and not self._stopped.is_set():
                block = next(self._blocks, None)
                self._ready.put(block)
                if block is None:
                    return
        except BaseException as error:
            # Who waits for blocks must hear of it, whatever it was.
            self._ready.put(error)

    def __next__(self) -> T:
        if self._given:
            self._wanted.release()
        block = self._ready.get()
        if isinstance(block, BaseException):
            raise block
        if block is None:
            # Whoever asks again is told the same.
            self._ready.put(None)
            raise StopIteration
        self._given = True
        return block

    def close(self) -> None:
        """Stop the thread; blocks that nobody took are lost."""
        self._stopped.set()
        self._wanted.release()
        self._reader.join()
