"""The guard itself: what leads out is refused and fails the test, what stays on this machine works."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import network_guard
from tests.network_guard import OutsideConnectionError, is_this_machine

#: An address for documentation (RFC 5737): nobody has it.
ELSEWHERE = "192.0.2.77"


@contextmanager
def forgiven() -> Iterator[list[str]]:
    """Take out what a test tries on purpose, before the guard fails it."""
    try:
        yield network_guard.tried
    finally:
        network_guard.tried.clear()


def test_connections_to_elsewhere_are_refused_and_remembered() -> None:
    with forgiven() as tried:
        with socket.socket() as opened, pytest.raises(OutsideConnectionError, match=f"tried to reach {ELSEWHERE}"):
            opened.connect((ELSEWHERE, 80))
        with socket.socket() as opened, pytest.raises(OutsideConnectionError):
            opened.connect_ex((ELSEWHERE, 80))
        with pytest.raises(OutsideConnectionError):
            socket.create_connection((ELSEWHERE, 80), timeout=1)
        with socket.socket(type=socket.SOCK_DGRAM) as opened, pytest.raises(OutsideConnectionError):
            opened.sendto(b"?", (ELSEWHERE, 53))
        assert len(tried) == 4


@pytest.mark.parametrize(
    "look_up", [socket.gethostbyname, socket.gethostbyaddr, lambda name: socket.getaddrinfo(name, 80)]
)
def test_names_are_not_looked_up(look_up: Callable[[str], object]) -> None:
    with forgiven(), pytest.raises(OutsideConnectionError, match=r"example\.org"):
        look_up("example.org")


def test_libraries_are_refused_too() -> None:
    with forgiven() as tried:
        with pytest.raises(OSError, match=r"example\.org"):
            urllib.request.urlopen("http://example.org/", timeout=1)
        assert tried == ["socket.getaddrinfo to example.org"]


def test_this_machine_may_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        for host in ("127.0.0.1", "localhost"):
            with socket.create_connection((host, server.getsockname()[1]), timeout=5):
                server.accept()[0].close()
    assert is_this_machine(socket.gethostname())
    assert not is_this_machine(ELSEWHERE)
    assert network_guard.tried == []


def test_a_caught_refusal_still_fails_its_test(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.network_guard import pytest_runtest_makereport, watch\nwatch()\n", encoding="utf-8"
    )
    (tmp_path / "test_inner.py").write_text(
        f"""
import socket

def test_that_catches():
    try:
        socket.create_connection(("{ELSEWHERE}", 80), timeout=1)
    except OSError:
        pass

def test_after_it():
    pass
""",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=120)
    assert "1 failed, 1 passed" in done.stdout
    assert f"this machine only: socket.connect to {ELSEWHERE}" in done.stdout
