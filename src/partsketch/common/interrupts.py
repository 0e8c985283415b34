"""Interrupts that come while something is started that can only be stopped when it is there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold an interrupt back until the block has ended; it is then as if it came only now.

    Threads and processes that are started in the block are never interrupted: a terminal interrupts all processes of a
    command, and those that work for this one would say so in tracebacks. It is this one that ends them.
    """
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread is interrupted, and only it may say by whom interrupts are taken.
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    # What is masked here is masked in what is started here; other threads of this process take the signal still.
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
