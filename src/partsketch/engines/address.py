"""Addresses of clusters: tried before a library connects, which may take minutes to say that nobody answers."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from typing import TypeVar

from partsketch.common.errors import InputError, reason_of

T = TypeVar("T")

#: Seconds for the name of a machine and for a connection to it.
REACH_SECONDS = 5.0
#: Seconds for the library's own greeting, after the machine has answered.
GREET_SECONDS = 7.0
_HOST_AND_PORT = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:/@\[\]]+)):(?P<port>\d{1,5})")


def host_and_port(address: str, example: str) -> tuple[str, int]:
    """Return the host and the port of an address, or refuse what is none.

    Parameters
    ----------
    address
        As it was given: SCHEME://HOST:PORT.
    example
        An address of this kind that would be right.
    """
    found = _HOST_AND_PORT.fullmatch(address.partition("://")[2])
    if found is None or not 0 < int(found["port"]) < 65536:
        raise InputError(f"{address!r} is not an address: give a host and a port, such as {example!r}.")
    return found["six"] or found["host"], int(found["port"])


def reach(address: str, example: str) -> tuple[str, int]:
    """Return the host and the port of an address (see `host_and_port`) where somebody takes connections."""
    host, port = host_and_port(address, example)

    def connect() -> None:
        socket.create_connection((host, port), timeout=REACH_SECONDS).close()

    try:
        # Resolving a name has no time limit of its own.
        within(REACH_SECONDS + 1, connect)
    except (OSError, UnicodeError) as error:
        raise InputError(f"Nobody answers at {address}: {reason_of(error)}; correct the address.") from error
    return host, port


def greet(address: str, cluster: str, ask: Callable[[float], object]) -> None:
    """Refuse an address where something else answers than a cluster of this kind, or nothing at all.

    Parameters
    ----------
    address
        As it was given.
    cluster
        What should answer, such as "Dask scheduler".
    ask
        Asks for a sign of life within so many seconds; whatever it raises means that there is none.
    """
    try:
        within(GREET_SECONDS + 1, lambda: ask(GREET_SECONDS))
    except Exception as error:  # bytes of another protocol may end in any error, lack of memory included
        raise InputError(
            f"No {cluster} answers at {address}, though something listens there: start one, or correct the address."
        ) from error


def within(seconds: float, function: Callable[[], T]) -> T:
    """Call a function in a thread of its own and return what it returns; raise TimeoutError when it takes longer."""
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    # A daemon: what hangs must not keep the process from ending.
    thread = threading.Thread(target=call, daemon=True, name="partsketch-connecting")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    return results[0]
