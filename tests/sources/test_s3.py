"""Files in an object store, on a real server of this machine."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import partsketch as ps
from partsketch.cli import run
from partsketch.common.errors import InputError
from partsketch.sources.files.filesystems import filesystem_of

pytestmark = pytest.mark.slow
FOLDERS = [(2023, 1), (2023, 2), (2024, 1)]


def piece(number: int) -> Any:
    generator = np.random.default_rng(number)
    x = generator.standard_normal(200)
    return pa.table({"x": x, "y": 2 * x + number + generator.standard_normal(200)})


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def store(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name the server in the environment, as a user does, and fill a bucket."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    filesystem_of.cache_clear()
    from pyarrow import fs

    writer = fs.S3FileSystem(
        endpoint_override=address.removeprefix("http://"), scheme="http", allow_bucket_creation=True
    )
    writer.create_dir("trips")
    for number, (year, month) in enumerate(FOLDERS):
        with writer.open_output_stream(f"trips/hive/year={year}/month={month:02}/a.parquet") as out:
            pq.write_table(piece(number), out, row_group_size=64)
        with writer.open_output_stream(f"trips/rows/part-{number}.csv") as out:
            pyarrow.csv.write_csv(piece(number), out)
        with writer.open_output_stream(f"trips/packed/part {number}.csv.gz", compression="gzip") as out:
            pyarrow.csv.write_csv(piece(number), out)
    yield address
    filesystem_of.cache_clear()


def expected(features: bool) -> Any:
    pieces = []
    for number, (year, month) in enumerate(FOLDERS):
        table = piece(number)
        if features:
            table = table.append_column("year", pa.array([year] * 200)).append_column("month", pa.array([month] * 200))
        pieces.append(table)
    return ps.fit(pa.concat_tables(pieces), "y")


@pytest.mark.parametrize("data", ["s3://trips/hive", "s3://trips/hive/*/*/*.parquet", "s3://trips/hive/**/a.parquet"])
def test_parquet_with_the_columns_of_its_folders(data: str, store: str) -> None:
    model = ps.fit(data, "y")
    assert model.feature_names == ("x", "year", "month")
    np.testing.assert_array_equal(model.coefficients, expected(True).coefficients)


@pytest.mark.parametrize("data", ["s3://trips/rows/*.csv", "s3://trips/rows/part-[0-2].csv", "s3://trips/packed/"])
def test_csv(data: str, store: str) -> None:
    np.testing.assert_array_equal(ps.fit(data, "y").coefficients, expected(False).coefficients)


def test_commands(store: str, tmp_path: Path) -> None:
    model = str(tmp_path / "m.json")
    assert run(["fit", "s3://trips/hive/", "-t", "y", "--model", model, "--method", "stack"]) == 0
    assert run(["predict", model, "s3://trips/hive/year=2024/", "-o", str(tmp_path / "p.csv")]) == 0
    assert run(["summarise", "s3://trips/rows/*.csv", "--partition-by", "file", "-o", str(tmp_path / "s.psk")]) == 0
    assert run(["plan", "s3://trips/rows/*.csv", "-t", "y"]) == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("s3://nowhere/*.parquet", r"s3://nowhere/\*.parquet cannot be read: there is no such bucket"),
        ("s3://nowhere/a.parquet", r"s3://nowhere/a.parquet does not exist"),
        ("s3://trips/nothing/*.csv", r"No file matches s3://trips/nothing/\*.csv"),
        ("s3://trips/hive/year=2023/month=01/b.parquet", "b.parquet does not exist"),
    ],
)
def test_what_is_not_there_is_said_quickly(data: str, message: str, store: str) -> None:
    begun = time.process_time()
    with pytest.raises(InputError, match=message):
        ps.fit(data, "y")
    # Work, not waiting: a server that answers is not asked again.
    assert time.process_time() - begun < 5


def test_wrong_credentials(store: str) -> None:
    def checks_keys(after: str) -> None:
        """Have the server look at keys after so many requests."""
        request = urllib.request.Request(
            f"{store}/moto-api/reset-auth", data=after.encode(), headers={"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request).close()

    checks_keys("0")
    try:
        for data in ("s3://trips/rows/*.csv", "s3://trips/rows", "s3://trips/rows/part-0.csv"):
            with pytest.raises(InputError, match="the store refused the credentials; set AWS_ACCESS_KEY_ID"):
                ps.fit(data, "y")
    finally:
        checks_keys("inf")


def test_wrong_addresses(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    filesystem_of.cache_clear()
    with pytest.raises(InputError, match="the store does not answer; check AWS_ENDPOINT_URL"):
        ps.fit("s3://trips/rows/*.csv", "y")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "ftp://somewhere")
    filesystem_of.cache_clear()
    with pytest.raises(InputError, match="AWS_ENDPOINT_URL is 'ftp://somewhere': it must be an address"):
        ps.fit("s3://trips/rows/*.csv", "y")
