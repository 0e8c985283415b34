"""Rows by the standard input: every format, every pass, nothing left behind."""

from __future__ import annotations

import gzip
import io
import sys
import tempfile
from collections.abc import Callable
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
from partsketch.sources.files import standard_input


def table() -> Any:
    generator = np.random.default_rng(5)
    x = generator.standard_normal(300)
    zone = generator.choice(["north", "south"], 300)
    return pa.table({"x": x, "zone": zone, "y": 2 * x + (zone == "south") + generator.standard_normal(300)})


def as_csv() -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table(), sink)
    return sink.getvalue()


def as_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(table(), sink)
    return sink.getvalue()


def as_arrow(make: Any) -> bytes:
    sink = io.BytesIO()
    # Batches whose categories differ: a stream may have them.
    with make(sink, pa.schema([("x", pa.float64()), ("zone", pa.string()), ("y", pa.float64())])) as writer:
        writer.write_table(table(), max_chunksize=70)
    return sink.getvalue()


KINDS: dict[str, Callable[[], bytes]] = {
    "CSV": as_csv,
    "gzip": lambda: gzip.compress(as_csv()),
    "zstd": lambda: pa.compress(as_csv(), "zstd", asbytes=True),
    "Parquet": as_parquet,
    "Arrow stream": lambda: as_arrow(pa.ipc.new_stream),
    "Arrow file": lambda: as_arrow(pa.ipc.new_file),
}


class Standard:
    """A standard input that holds some bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def given(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(content))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_model_in_as_many_passes_as_it_takes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, KINDS[kind]())
    model = ps.fit("-", "y", encode=True, vcov={"CRV1": "zone"})
    expected = ps.fit(table(), "y", encode=True, vcov={"CRV1": "zone"})
    np.testing.assert_array_equal(model.coefficients, expected.coefficients)
    np.testing.assert_array_equal(model.standard_errors, expected.standard_errors)
    # It is kept as long as it is the standard input.
    np.testing.assert_array_equal(model.predict(["-"]), expected.predict(table()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "The standard input is empty"),
        (b"x,y\n1,a\n", r"Column 'y' \(text\) is not numeric"),
        (b"x,y\n1,2\n3,b\n", "'b' in row 1 of standard input"),
        (b"x;y\n1;2\n", "first line of standard input has no ',' but ';'"),
        (gzip.compress(as_csv(), mtime=0)[:40], "The standard input broke off or is damaged"),
        (as_parquet()[:200], "standard input cannot be read as Parquet"),
        (as_arrow(pa.ipc.new_stream)[:900], "The standard input broke off or is damaged"),
    ],
    # Bytes would be names that differ from one process to the next.
    ids=["empty", "text", "a word", "semicolons", "half of gzip", "half of Parquet", "half of a stream"],
)
def test_what_is_wrong_with_it(content: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, content)
    with pytest.raises(InputError, match=message):
        ps.fit("-", "y")


def test_it_is_bounded_and_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A folder of its own: tests of other processes put their files into the usual one.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given(monkeypatch, as_csv())
    monkeypatch.setattr(standard_input, "_SHARE", 1e-12)
    with pytest.raises(InputError, match=r"more than [\d,]+ bytes, half of what is free in .*: write it to a file"):
        ps.fit("-", "y")
    with pytest.raises(InputError, match="'-' is the standard input and stands alone"):
        ps.fit(["-", "a.csv"], "y")
    assert not list(tmp_path.iterdir())


def test_other_separators_too(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, as_csv().replace(b",", b";").replace(b".", b","))
    model = ps.fit(ps.CsvFiles("-", separator=";", decimal=","), "y", ["x"])
    np.testing.assert_array_equal(model.coefficients, ps.fit(table(), "y", ["x"]).coefficients)


@pytest.mark.slow
def test_commands_take_it_and_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    monkeypatch.chdir(tmp_path)
    for step in (
        "fit - -t y --encode --method stack --partitions 3 --model m.json",
        "predict m.json - -o p.parquet",
        "sketch - -t y -f x --private -o a.psk --site a --sketch-size 20",
        "summarise - --partition-by zone -o s.psk",
        "diagnose - -t y -f x",
        "plan - -t y -f x",
    ):
        given(monkeypatch, as_csv())
        assert run(step.split()) == 0, step
        # Not even while it runs has the file a name that a killed process would leave behind.
        assert sys.platform != "linux" or not list((tmp_path / "t").glob("partsketch-*"))
    assert pq.read_metadata(tmp_path / "p.parquet").num_rows == 300
