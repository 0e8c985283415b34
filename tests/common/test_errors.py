"""Reasons at the ends of sentences."""

from __future__ import annotations

from partsketch.common.errors import reason_of


def test_a_reason_is_the_first_line() -> None:
    assert reason_of(RuntimeError("No room.\nLook elsewhere.")) == "No room"
    assert reason_of(RuntimeError()) == "RuntimeError"


def test_of_a_reason_that_announces_a_traceback_the_end_is_told() -> None:
    text = 'Initialization failure from server:\nTraceback (most recent call last):\n  File "a.py"\ngrpc.TimeoutError\n'
    assert reason_of(ConnectionError(text)) == "Initialization failure from server: grpc.TimeoutError"
