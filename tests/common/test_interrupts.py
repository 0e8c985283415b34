"""Interrupts are held back, not lost, and taken by whoever took them before."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from partsketch.common.interrupts import interrupts_held


@pytest.fixture(autouse=True)
def _taken_by_python() -> Iterator[None]:
    """Spark takes interrupts for itself wherever it was started before."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def held(done: list[str]) -> None:
    with interrupts_held():
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")


def test_an_interrupt_comes_when_the_block_has_ended() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        held(done)
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_an_interrupt_nothing_happens() -> None:
    with interrupts_held():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_who_ignores_interrupts_goes_on_doing_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_held():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_started_meanwhile_is_never_interrupted() -> None:
    """A terminal interrupts all processes of a command; workers said so in tracebacks."""
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print(signal.sigpending())"
    said: list[str] = []

    def start() -> None:
        said.append(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout)

    with interrupts_held():
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
    assert said == [f"{{{signal.SIGINT!r}}}\n"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_other_threads_are_not_interrupted() -> None:
    seen = []

    def work() -> None:
        with interrupts_held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
