"""Rows that are read and decoded by a thread of their own while others are summed: for cores that would lie idle."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from queue import SimpleQueue

from partsketch.sources.base import Block
from partsketch.sources.wrapper import SourceWrapper

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
        return _ahead(self.source.read(start, stop, rows))


def _ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield what another thread takes from an iterator, which is one block ahead."""
    ready: SimpleQueue[Block | BaseException | None] = SimpleQueue()
    wanted = threading.Semaphore(2)
    stopped = threading.Event()

    def take() -> None:
        try:
            while wanted.acquire() and not stopped.is_set():
                block = next(blocks, None)
                ready.put(block)
                if block is None:
                    return
        except BaseException as error:
            # Who waits for blocks must hear of it, whatever it was.
            ready.put(error)

    # A daemon: a read that hangs must not keep the process from ending.
    reader = threading.Thread(target=take, daemon=True, name="partsketch-reader")
    reader.start()
    try:
        while (block := ready.get()) is not None:
            if isinstance(block, BaseException):
                raise block
            yield block
            wanted.release()
    finally:
        stopped.set()
        wanted.release()
        reader.join()
