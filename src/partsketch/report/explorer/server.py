"""A server for one reader: bound to this machine, and deaf to whoever does not know the token in the address."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from partsketch.common.errors import InputError, reason_of
from partsketch.planner.calibration import Calibration, calibration
from partsketch.report.explorer.numbers import numbers, refused
from partsketch.report.explorer.page import page, standalone_figure
from partsketch.report.explorer.state import State

HOST = "127.0.0.1"
_LONGEST_ADDRESS = 4000
#: Connections at once: one reader's browser opens a handful.
MOST_CONNECTIONS = 32
#: Seconds that a connection may last, idle or slow; an answer takes a fraction of one.
LONGEST_SECONDS = 30.0
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 5\r\n\r\n"


class ExplorerServer(ThreadingHTTPServer):
    """Serves the page under a random token, on 127.0.0.1 only."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS

    def __init__(self, port: int, start: State | None = None, speeds: Calibration | None = None) -> None:
        self.token = secrets.token_urlsafe(24)
        self.start = start or State()
        self.opened: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        # Made before anybody is told an address: what it needs may not be installed.
        page()
        self.speeds = calibration() if speeds is None else speeds
        try:
            super().__init__((HOST, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"Cannot listen on port {port}: {reason}; leave --port out to get a free one.") from error

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, unless too many are being answered."""
        with self._lock:
            accepted = len(self.opened) < MOST_CONNECTIONS
            if accepted:
                self.opened[request] = time.monotonic()
        if accepted:
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.setblocking(False)
            request.send(_BUSY)
        super().shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection, and let another one have its place."""
        with self._lock:
            self.opened.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """End connections that have lasted too long; called twice a second."""
        oldest = time.monotonic() - LONGEST_SECONDS
        with self._lock:
            late = [request for request, opened in self.opened.items() if opened < oldest]
        for request in late:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that broke: the reader knows, and the terminal shows the address."""

    @property
    def address(self) -> str:
        """The address of the page with its token and its state."""
        return f"http://{HOST}:{self.server_port}/{self.token}/?{self.start.to_query()}"


class _Handler(BaseHTTPRequestHandler):
    server: ExplorerServer
    server_version = "partsketch"
    sys_version = ""
    timeout = LONGEST_SECONDS

    def do_GET(self) -> None:
        try:
            self._respond()
        except OSError:
            raise
        except Exception as error:
            # One reader's odd question must not end the page for good, and a traceback is no answer.
            reason = f"The formulas failed unexpectedly ({type(error).__name__}): {reason_of(error)}."
            self._send(500, "text/plain", reason.encode("utf-8", "replace"))

    def _respond(self) -> None:
        parts = urlsplit(self.path)
        _, _, rest = parts.path.partition("/")
        token, _, place = rest.partition("/")
        if not self._is_for_us(token):
            self._send(403, "text/plain", b"This page needs the address that partsketch explore printed.\n")
        elif place == "":
            self._send(200, "text/html", page().encode())
        elif place == "numbers":
            self._numbers(parts.query)
        elif place in ("figure-k.svg", "figure-m.svg"):
            self._figure(parts.query, place[len("figure-")])
        else:
            self._send(404, "text/plain", b"There is nothing here.\n")

    def _is_for_us(self, token: str) -> bool:
        # A foreign page may lead a browser here under another name (DNS rebinding): the name must be ours.
        hosts = {f"{HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}"}
        known = hmac.compare_digest(token.encode(), self.server.token.encode())
        return known and self.headers.get("Host") in hosts and len(self.path) <= _LONGEST_ADDRESS

    def _state(self, query: str) -> State:
        return State.from_query(dict(parse_qsl(query)))

    def _numbers(self, query: str) -> None:
        try:
            told: dict[str, Any] = numbers(self._state(query), self.server.speeds)
        except InputError as error:
            told = refused(error)
        self._send(200, "application/json", json.dumps(told, allow_nan=False).encode())

    def _figure(self, query: str, axis: str) -> None:
        try:
            self._send(200, "image/svg+xml", standalone_figure(self._state(query), axis).encode())
        except InputError as error:
            self._send(400, "text/plain", str(error).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal shows the address, and requests are not news."""
