"""Interrupts that come while something is started that can only be stopped when it is there."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold an interrupt back until the block has ended; it is then as if it came only now."""
    before = signal.getsignal(signal.SIGINT)
    # Only the main thread is interrupted, and only it may say by whom interrupts are taken.
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)
