"""Wrong addresses, and workers without this partsketch: refused soon, in a sentence, before any work is sent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import partsketch
from partsketch import InputError
from partsketch.engines import address
from partsketch.engines.address import greet, reach, within
from partsketch.engines.base import get_engine
from partsketch.engines.versions import WANTED, ask, check_versions
from tests.engines.conftest import need

ENGINES = {"dask": "distributed", "ray": "ray", "spark": "pyspark"}


@pytest.fixture(autouse=True)
def no_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of a cluster in this process may have left one running: no other is looked for beside it."""
    if "ray" in sys.modules:
        monkeypatch.setattr("ray.is_initialized", lambda: False)
    if "pyspark.sql" in sys.modules:
        monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)


@pytest.fixture
def deaf() -> Iterator[int]:
    """Give the port of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            try:
                while True:
                    kept.append(server.accept()[0])
            except OSError:
                for connection in kept:
                    connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("scheme", [*ENGINES, "tcp", "tls"])
@pytest.mark.parametrize(
    "rest", ["", "host", "host:", ":8786", "host:0", "host:99999", "a b:1", "user@host:1", "host:1/x"]
)
def test_what_is_no_address(scheme: str, rest: str) -> None:
    need(ENGINES.get(scheme, "distributed"))
    with (
        pytest.raises(InputError, match=r"is not an address: give a host and a port"),
        get_engine(f"{scheme}://{rest}"),
    ):
        pass


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("scheme", ENGINES)
def test_nobody_listens(scheme: str, host: str) -> None:
    need(ENGINES[scheme])
    started = time.monotonic()
    with (
        pytest.raises(InputError, match=r"Nobody answers at .*: Connection refused"),
        get_engine(f"{scheme}://{host}:1"),
    ):
        pass
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("scheme", ENGINES)
def test_somebody_listens_and_says_nothing(scheme: str, deaf: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time that is allowed for all of it is below 15 seconds; the test does not wait so long."""
    need(ENGINES[scheme])
    assert address.REACH_SECONDS + 1 + address.GREET_SECONDS + 1 < 15
    monkeypatch.setattr(address, "GREET_SECONDS", 1.0)
    with (
        pytest.raises(InputError, match=r"No .* answers at .*, though something listens"),
        get_engine(f"{scheme}://127.0.0.1:{deaf}"),
    ):
        pass


def test_a_server_of_the_same_protocol_is_not_ray() -> None:
    """As a proxy is: Ray itself would try for half a minute."""
    need("ray")
    import grpc

    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(InputError, match="No Ray Client server answers"), get_engine(f"ray://127.0.0.1:{port}"):
            pass
    finally:
        server.stop(None)


def test_a_server_that_wants_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """As every cluster does that newer versions of Ray start: without one, Ray itself would try for half a minute."""
    need("ray")
    import grpc

    def refuse(request: object, context: grpc.ServicerContext) -> bytes:
        if ("authorization", "Bearer right") not in [tuple(pair) for pair in context.invocation_metadata()]:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "Invalid or missing authentication token")
        return b""

    methods = {"ClusterInfo": grpc.unary_unary_rpc_method_handler(refuse)}
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("ray.rpc.RayletDriver", methods)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel
    shown = "wrong"

    def met(*given: object, **options: object) -> None:
        raise ConnectionError("met")

    class Shows(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]
        def intercept_unary_unary(self, go_on: Any, call: Any, request: Any) -> Any:
            shows = SimpleNamespace(metadata=[("authorization", f"Bearer {shown}")], credentials=None, compression=None)
            shows.method, shows.timeout, shows.wait_for_ready = call.method, call.timeout, call.wait_for_ready
            return go_on(shows, request)

    monkeypatch.setattr(
        "ray._private.grpc_utils.init_grpc_channel", lambda place: grpc.intercept_channel(channel(place), Shows())
    )
    try:
        with pytest.raises(InputError, match=r"asks for its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN"):
            get_engine(f"ray://127.0.0.1:{port}").__enter__()
        shown = "right"
        # Now Ray itself is asked, which this server does not understand.
        monkeypatch.setattr("ray.init", met)
        with pytest.raises(InputError, match=r"No Ray runtime can be reached at .*: met"):
            get_engine(f"ray://127.0.0.1:{port}").__enter__()
    finally:
        server.stop(None)


def test_a_name_without_a_machine_and_a_slow_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **keywords: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", unknown)
    with pytest.raises(InputError, match=r"Nobody answers at dask://no\.such\.host\.invalid:1"):
        reach("dask://no.such.host.invalid:1", "dask://host:8786")
    with pytest.raises(TimeoutError):
        within(0.05, lambda: time.sleep(1))
    assert within(5, lambda: 7) == 7
    with pytest.raises(InputError, match="No oracle answers at here"):
        greet("here", "oracle", lambda seconds: 1 / 0)


def test_versions_are_compared() -> None:
    assert ask(WANTED) == partsketch.__version__
    check_versions("Dask", {})
    check_versions("Dask", {"one": partsketch.__version__})
    found = {
        "one": partsketch.__version__,
        "two": "0.0.1",
        "three": ModuleNotFoundError("No module named 'partsketch'"),
    }
    with pytest.raises(InputError) as caught:
        check_versions("Ray", found)
    assert "two has 0.0.1; three cannot import it (No module named 'partsketch'); install" in str(caught.value)
    assert "one" not in str(caught.value).partition(": ")[2].split()
    with pytest.raises(InputError, match="; and 4 more;"):
        check_versions("Ray", {f"worker {number}": "0.0.1" for number in range(7)})


def test_a_runtime_that_is_connected_already_is_asked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks ended in a library's error after twenty seconds."""
    from partsketch.engines.ray import engine

    monkeypatch.setattr(engine, "import_ray", lambda: SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setattr(engine, "_versions", lambda ray: {"odd": "0.0.1"})
    with pytest.raises(InputError, match=r"Workers of the Ray cluster .*: odd has 0\.0\.1; install the same version"):
        engine.RayEngine()


@pytest.mark.slow
@pytest.mark.parametrize(
    "content", ["__version__ = '0.0.1'", "raise ModuleNotFoundError(\"No module named 'partsketch'\")"]
)
def test_a_dask_worker_with_another_partsketch_or_none(content: str, tmp_path: Path) -> None:
    need("distributed")
    (tmp_path / "partsketch").mkdir()
    (tmp_path / "partsketch" / "__init__.py").write_text(content)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    programs = (
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"],
        ["distributed.cli.dask_worker", f"tcp://127.0.0.1:{port}", "--no-dashboard", "--no-nanny", "--name", "odd"],
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", *words], env=environment, cwd=tmp_path,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for words in programs
    ]  # fmt: skip
    try:
        message = _refusal(f"dask://127.0.0.1:{port}")
    finally:
        for process in processes:
            process.terminate()
            process.wait()
    assert "Workers of the Dask cluster do not have partsketch" in message
    assert "has 0.0.1" in message or "cannot import it (No module named 'partsketch')" in message


def _refusal(where: str) -> str:
    """Return why a cluster is refused, once it has come up and has a worker."""
    until = time.monotonic() + 60
    while True:
        try:
            with get_engine(where):
                pass
        except InputError as error:
            if "answers at" not in str(error):
                return str(error)
        assert time.monotonic() < until, "the cluster does not come up"
        time.sleep(0.5)
