"""Who may see the explorer, and how it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from partsketch import InputError
from partsketch.report.explorer import server as explorer_server
from partsketch.report.explorer.page import page
from partsketch.report.explorer.server import MOST_CONNECTIONS, ExplorerServer
from partsketch.report.page.writer import environment


def get(server: ExplorerServer, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, body


def test_only_the_token_opens_it(server: ExplorerServer) -> None:
    assert get(server, f"/{server.token}/")[0] == 200
    assert get(server, f"/{server.token}/numbers?n=1000&d=5&m=20&k=2")[0] == 200
    for path in ("/", "/numbers", f"/{server.token[:-1]}/", f"/{server.token}x/", "//", "/%00/", "/" + "a" * 5000):
        assert get(server, path)[0] == 403
    assert get(server, f"/{server.token}/nothing")[0] == 404
    assert len(server.token) >= 32


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_name_is_refused(server: ExplorerServer, host: str) -> None:
    assert get(server, f"/{server.token}/", host)[0] == 403


def test_it_is_bound_to_this_machine_only(server: ExplorerServer) -> None:
    assert server.server_address[0] == "127.0.0.1"


def test_bad_queries_are_answered_in_words(server: ExplorerServer) -> None:
    status, body = get(server, f"/{server.token}/numbers?n=x")
    assert status == 200
    assert b"give a number" in body
    assert get(server, f"/{server.token}/figure-k.svg?d=0")[0] == 400


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="Cannot listen on port"):
            ExplorerServer(taken.getsockname()[1])


def test_the_command_prints_its_address_and_ends_with_control_c() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "partsketch", "explore", "--no-browser", "--rows", "5e4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/[\w-]{32}/\?\S+)", line)
    assert found is not None
    assert "n=50000" in found[2]
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=20)
    connection.request("GET", found[2])
    assert connection.getresponse().status == 200
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert errors.endswith("Stopped.\n")


def test_at_most_32_connections_and_none_for_ever(server: ExplorerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle connections take all places; the next is told so, and a little later they are gone."""
    idle = [socket.create_connection(("127.0.0.1", server.server_port), timeout=10) for _ in range(MOST_CONNECTIONS)]
    assert MOST_CONNECTIONS == 32
    until = time.monotonic() + 10
    while len(server.opened) < MOST_CONNECTIONS and time.monotonic() < until:
        time.sleep(0.01)
    assert get(server, f"/{server.token}/")[0] == 503
    # One that sends a little now and then is no better than one that sends nothing.
    idle[0].sendall(b"GET /")
    monkeypatch.setattr(explorer_server, "LONGEST_SECONDS", 0.2)
    for connection in idle:
        assert connection.recv(1) == b""
        connection.close()
    monkeypatch.undo()
    while server.opened and time.monotonic() < until:
        time.sleep(0.01)
    assert get(server, f"/{server.token}/")[0] == 200


def test_a_failing_formula_is_told_and_the_page_goes_on(
    server: ExplorerServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fails(*arguments: object) -> None:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr(explorer_server, "numbers", fails)
    status, body = get(server, f"/{server.token}/numbers?n=1000")
    assert (status, body) == (500, b"The formulas failed unexpectedly (ZeroDivisionError): float division by zero.")
    assert get(server, f"/{server.token}/")[0] == 200
    with socket.create_connection(("127.0.0.1", server.server_port)) as rude:
        rude.sendall(b"\x00\xff\r\n\r\n")
    assert get(server, f"/{server.token}/")[0] == 200
    assert capfd.readouterr().err == ""


def test_without_jinja2_it_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    page.cache_clear()
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match="pip install 'partsketch"):
        ExplorerServer(0)
