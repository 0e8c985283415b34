"""The explorer's server: addresses, numbers, methods and bytes that no browser sends.

Whatever comes, the server answers it with a status that is promised or hangs up, tells no traceback and nothing to
whoever does not know the token, and answers the next reader.
"""

from __future__ import annotations

import json
import random
import re
import socket
import threading
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from urllib.parse import quote, urlencode

from partsketch.report.explorer.server import HOST, ExplorerServer
from partsketch.report.explorer.state import DESIGNS, SLIDERS
from tests.attack.case import Case, Fault

ODD = (
    "", "0", "-1", "nan", "inf", "-inf", "1e308", "1e-308", "1e400", "9" * 400, "0x10", "1_000", "1,5", "٣", "½",
    "true", "null", "[]", "\x00", "\x1b[2J", "<script>", "' OR 1", "%", "%zz", "1e9", "2.5", "  7 ", "+3", "NaN1",
)  # fmt: skip
#: Seconds within which an answer must come: formulas on at most 4,096 partitions.
PATIENCE = 20.0


@cache
def _server() -> ExplorerServer:
    server = ExplorerServer(0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def cases(seed: int) -> Iterator[Case]:
    """Yield requests of all kinds."""
    draw = random.Random(seed)
    while True:
        inner, kind = draw.randrange(2**32), draw.choice(("numbers", "numbers", "figure", "place", "bytes"))
        yield Case(f"{kind} {inner}", partial(_attack, kind, inner))


def _query(draw: random.Random) -> str:
    pairs = []
    for slider in SLIDERS:
        number = draw.choice((draw.uniform(slider.lowest, slider.highest), slider.lowest, slider.highest))
        value = str(round(number) if slider.whole else number)
        pairs.append((slider.name, draw.choice(ODD) if draw.random() < 0.1 else value))
    pairs.append(("design", draw.choice((*DESIGNS, *ODD))))
    draw.shuffle(pairs)
    kept = pairs[: draw.randint(0, len(pairs))] + draw.choices(pairs, k=draw.choice((0, 0, 1)))
    return urlencode(kept, errors="replace") if draw.random() < 0.9 else "&".join("=".join(pair) for pair in kept)


def _request(kind: str, draw: random.Random) -> bytes:
    server = _server()
    host = f"{HOST}:{server.server_port}"
    place = {
        "numbers": f"numbers?{_query(draw)}",
        "figure": f"figure-{draw.choice('km')}.svg?{_query(draw)}",
        "place": quote(draw.choice(("", "..", "../../etc/passwd", "numbers/", "figure-x.svg", "\x00", "é" * 3000))),
    }.get(kind, "")
    if kind == "bytes":
        whole = b"GET /" + server.token.encode() + b"/ HTTP/1.1\r\nHost: " + host.encode() + b"\r\n\r\n"
        content = bytearray(whole)
        for _ in range(draw.randint(1, 5)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        return bytes(content) if draw.random() < 0.5 else draw.randbytes(draw.choice((0, 1, 100, 70_000)))
    token = server.token if draw.random() < 0.9 else draw.choice((server.token[:-1], "x", "", server.token + "é"))
    method = draw.choice(("GET", "GET", "GET", "GET", "POST", "HEAD", "PUT", "X" * 100))
    name = host if draw.random() < 0.9 else draw.choice(("evil.example", "", "localhost"))
    line = f"{method} /{token}/{place} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"
    return line.encode("utf-8", "replace")


def _ask(request: bytes) -> bytes:
    with socket.create_connection((HOST, _server().server_port), timeout=PATIENCE) as connection:
        found = b""
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                found += part
        except TimeoutError:
            raise
        except OSError:
            # The server hung up, which it may.
            pass
        return found


def _attack(kind: str, inner: int, folder: Path) -> Fault | None:
    request = _request(kind, random.Random(inner))
    try:
        answer = _ask(request)
    except TimeoutError:
        return Fault("hang", f"no answer to {request[:200]!r}")
    fault = _judge(request, answer)
    if fault is not None:
        return fault
    server = _server()
    first = f"GET /{server.token}/numbers HTTP/1.0\r\nHost: {HOST}:{server.server_port}\r\n\r\n"
    after = _ask(first.encode())
    return None if b" 200 " in after[:20] else Fault("wrong refusal", f"after {request[:200]!r}: {after[:200]!r}")


def _judge(request: bytes, answer: bytes) -> Fault | None:
    seen = f"{request[:300]!r} was answered by {answer[:600]!r}"
    status = re.match(rb"HTTP/1\.\d (\d{3}) ", answer)
    if b"Traceback" in answer or (status and status[1] == b"500"):
        return Fault("traceback", seen)
    if status and status[1] not in (b"200", b"400", b"403", b"404", b"408", b"414", b"431", b"501", b"503", b"505"):
        return Fault("wrong accept", seen)
    known = _server().token.encode() + b"/"
    if status and status[1] == b"200":
        if known not in request:
            return Fault("wrong accept", seen)
        body = answer.partition(b"\r\n\r\n")[2]
        if b"application/json" in answer[:600]:
            json.loads(body, parse_constant=_not_finite)
    return None


def _not_finite(text: str) -> None:
    raise ValueError(f"{text} is no number that JSON has")
