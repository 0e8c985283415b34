"""No test may reach beyond this machine: Python's sockets are watched, and a connection to elsewhere fails the test.

Connections are refused by an audit hook, which cannot be removed again, and remembered, because code may catch the
refusal. Other processes and other languages do not pass here; `.ci/without-network` sees what they send.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Generator
from functools import cache
from typing import Any

import pytest

#: Ray asks the metadata services of clouds where it runs, also when told not to report; with this in its environment it
#: asks a closed door of this machine.
CLOSED_DOOR = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1,localhost"}


class OutsideConnectionError(OSError):
    """A test tried to reach another machine."""


#: What was tried, a phrase each, since the last test was judged.
tried: list[str] = []


def watch() -> None:
    """Refuse and remember connections to other machines from now on."""
    sys.addaudithook(_refuse_outside)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that tried, also where the refusal was caught."""
    report = yield
    if tried:
        if not report.failed:
            report.outcome = "failed"
            report.longrepr = f"Tests may connect to this machine only: {'; '.join(tried)}."
        tried.clear()
    return report


def _refuse_outside(event: str, arguments: tuple[Any, ...]) -> None:
    if not event.startswith("socket."):
        return
    host = _host(event, arguments)
    if host is not None and not is_this_machine(host):
        tried.append(f"{event} to {host}")
        raise OutsideConnectionError(f"This test tried to reach {host}: tests may connect to this machine only.")


def _host(event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the other side of what is about to happen; None where nothing can leave the machine."""
    if event in ("socket.connect", "socket.sendto"):
        opened, address = arguments
        if opened.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return None
        # Connecting a datagram socket sends nothing: it asks which of the machine's addresses would be used.
        return None if event == "socket.connect" and opened.type == socket.SOCK_DGRAM else str(address[0])
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr") and arguments[0]:
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else str(arguments[0])
        # A number is not looked up anywhere, except for the name that belongs to it.
        return None if _is_number(host) and event != "socket.gethostbyaddr" else host
    return None


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host.split("%")[0])
    except ValueError:
        return False
    return True


@cache
def is_this_machine(host: str) -> bool:
    """Tell whether a name or an address is this machine: an address is if a socket can be bound to it."""
    if not _is_number(host):
        return host.lower().rstrip(".") in ("", "localhost", socket.gethostname().lower())
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True
