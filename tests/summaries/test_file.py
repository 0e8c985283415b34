"""Sketch files: every damage is noticed, every rule of the format holds, and no file can ask for too much memory."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partsketch import InputError, Summary
from partsketch.sources.encoding import Encoding
from partsketch.summaries.file import LARGEST_BODY, LARGEST_HEADER
from partsketch.summaries.file_header import MOST_COLUMNS, MOST_PARTS, MOST_SKETCH_ROWS
from partsketch.summaries.provenance import About, Part

COLUMNS = ("(intercept)", "x=b", "x1", "y")


def a_summary(**about: Any) -> Summary:
    part = Part("north", 0, 0, 10, 5, 2**64 - 1, True, "monday", "0123456789abcdef" * 2, "first")
    told = About(targets=("y",), encoding=Encoding((("x", ("a", "b")),), True), **about)
    return Summary(np.arange(20.0).reshape(5, 4) / 10, COLUMNS, "gaussian", (part,), 10, 10.0, told)


def sealed(header: Any, body: bytes, version: int = 1, length: int | None = None) -> bytes:
    """A file with a right checksum around whatever it holds."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = b"PSKETCH\n" + struct.pack("<II", version, len(text) if length is None else length) + text + body
    return data + hashlib.sha256(data).digest()


def header(**changes: Any) -> dict[str, Any]:
    data = a_summary().to_bytes()
    (length,) = struct.unpack("<I", data[12:16])
    values: dict[str, Any] = json.loads(data[16 : 16 + length])
    return {**values, **changes}


def part(**changes: Any) -> list[dict[str, Any]]:
    return [{**header()["parts"][0], **changes}]


def private(**changes: Any) -> dict[str, Any]:
    return header(private=True, rows_dropped=None, **changes)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in header().items() if name != key}


BODY = np.ones((5, 4)).tobytes()


def test_the_sealing_of_this_test_is_right() -> None:
    assert Summary.from_bytes(sealed(header(), BODY)).matrix.tolist() == np.ones((5, 4)).tolist()


def test_everything_told_comes_back() -> None:
    for about in ({}, {"weighted": True, "rows_dropped": 7}, {"rows_dropped": None}):
        summary = a_summary(**about)
        assert Summary.from_bytes(summary.to_bytes()) == summary
        assert Summary.from_bytes(summary.to_bytes()).about == summary.about
    part = Part("north", 0, None, None, 5, None, False, "", "ab" * 16)
    hidden = replace(a_summary(private=True, rows_dropped=None), parts=(part,), row_count=10)
    assert Summary.from_bytes(hidden.to_bytes()) == hidden


def test_the_same_summary_gives_the_same_bytes() -> None:
    assert a_summary().to_bytes() == a_summary().to_bytes()


def test_every_flipped_byte_is_noticed() -> None:
    """One bit, and all bits, of each byte in turn: never another summary, always one clear error."""
    data = a_summary().to_bytes()
    for position in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= mask
            with pytest.raises(InputError, match=r"site\.psk"):
                Summary.from_bytes(bytes(damaged), "site.psk")


def test_every_truncation_and_addition_is_noticed() -> None:
    data = a_summary().to_bytes()
    for length in range(len(data)):
        with pytest.raises(InputError):
            Summary.from_bytes(data[:length])
    with pytest.raises(InputError, match="damaged"):
        Summary.from_bytes(data + b"\0")


HUGE = np.full((5, 4), np.inf).tobytes()

REFUSED = [
    (b"", "not a partsketch sketch file"),
    (b"PK\x03\x04 something else", "not a partsketch sketch file"),
    (b'{"format": "partsketch model"}', "not a partsketch sketch file"),
    (b"PSKETCH\n", "cut short"),
    (sealed(header(), BODY, version=3), "holds several summaries: read it with `read_summaries`"),
    (sealed(header(), BODY, version=4), "holds sums of products with noise"),
    (sealed(header(), BODY, version=6), "format version 6, newer than 5: update"),
    (sealed(header(), BODY, version=0), "format version 0, older than 5"),
    (sealed(header(), BODY, version=2), "a centre goes with format version 2, measured noise with version 5"),
    (sealed(header(), BODY, length=LARGEST_HEADER + 1), "header has 4194305 bytes, more than 4194304"),
    (sealed(header(), BODY, length=2**32 - 1), "more than"),
    (sealed(header(), BODY, length=4000), "cut short"),
    (sealed([1, 2], BODY), "not a JSON object"),
    (sealed(b"{" * 5000, BODY), "not JSON"),
    (sealed(b"[" * 100_000, BODY), "not JSON"),
    (sealed(b'{"a":' * 100_000, BODY), "not JSON"),
    (sealed(b"\xff\xfe\x00", BODY), "not JSON"),
    (sealed(b"\xef\xbb\xbf{}", BODY), "not JSON"),
    (sealed(b"9" * 100_000, BODY), "not JSON"),
    (sealed(b'{"row_count": NaN}', BODY), "number NaN"),
    (sealed(b'{"row_count": -Infinity}', BODY), "number -Infinity"),
    (sealed(b'{"kind": "gaussian", "kind": "gaussian"}', BODY), "repeated"),
    (sealed(header(surprise=1), BODY), "unknown 'surprise'"),
    (sealed(header(**{"\x1b[31m": 1}), BODY), "unknown key"),
    (sealed(without("levels"), BODY), "lacks 'levels'"),
    (sealed(header(sketch_rows=4), BODY), "do not add up"),
    (sealed(header(sketch_rows=-5), BODY), "'sketch_rows'"),
    (sealed(header(sketch_rows=5.0), BODY), "'sketch_rows'"),
    (sealed(header(sketch_rows=True), BODY), "'sketch_rows'"),
    (sealed(header(sketch_rows=MOST_SKETCH_ROWS + 1), BODY), "'sketch_rows'"),
    (sealed(header(sketch_rows=MOST_SKETCH_ROWS, parts=part(size=MOST_SKETCH_ROWS), levels=[], targets=[],
                   columns=[f"c{i}" for i in range(99)]), BODY), f"more than {LARGEST_BODY} bytes"),
    (sealed(header(sketch_rows=MOST_SKETCH_ROWS, parts=part(size=MOST_SKETCH_ROWS)), BODY), "size is not"),
    (sealed(header(columns=["a", "a", "b", "y"]), BODY), "repeated"),
    (sealed(header(columns=["a", "b", "c"], targets=[], levels=[]), BODY), "size is not"),
    (sealed(header(columns=[], targets=[]), BODY), "0 columns"),
    (sealed(header(columns=[f"{i}" for i in range(MOST_COLUMNS + 1)], targets=[]), BODY), "65537 columns"),
    (sealed(header(columns=None), BODY), "'columns'"),
    (sealed(header(columns=["a", "b", 3, "y"]), BODY), "'columns'"),
    (sealed(header(columns=["a", "b", "\x1b[31mred", "y"]), BODY), "'columns'"),
    (sealed(header(columns=["a", "b", "line\nbreak", "y"]), BODY), "'columns'"),
    (sealed(header(columns=["a", "b", "\ud800", "y"]), BODY), "'columns'"),
    (sealed(header(columns=["a", "b", "\u202e", "y"]), BODY), "'columns'"),
    (sealed(header(columns=["a", "b", "x" * 1001, "y"]), BODY), "'columns'"),
    (sealed(header(targets=["z"]), BODY), "'targets'"),
    (sealed(header(targets=["y", "y"]), BODY), "'targets'"),
    (sealed(header(kind="cubist"), BODY), "does not know the sketch 'cubist'"),
    (sealed(header(kind=["gaussian"]), BODY), "'kind'"),
    (sealed(header(kind="triangular", private=True), BODY), "cannot be private"),
    (sealed(header(levels=[["x"]]), BODY), "'levels'"),
    (sealed(header(levels={"x": ["a"]}), BODY), "'levels'"),
    (sealed(header(row_count=2**53 + 1), BODY), "'row_count' in its header has a wrong type or value"),
    (sealed(header(row_count=None), BODY), "'row_count'"),
    (sealed(header(rounded_to=0), BODY), "'rounded_to'"),
    (sealed(header(weight_sum="much"), BODY), "'weight_sum'"),
    (sealed(header(weight_sum=-1.0), BODY), "'weight_sum'"),
    (sealed(header(weight_sum=10**400), BODY), "'weight_sum'"),
    (sealed(json.dumps(header()).replace('"weight_sum": 10.0', '"weight_sum": 1e999').encode(), BODY), "weight_sum"),
    (sealed(header(parts=[]), BODY), "0 parts"),
    (sealed(header(parts=part() * (MOST_PARTS + 1)), BODY), "4097 parts"),
    (sealed(header(parts={}), BODY), "'parts'"),
    (sealed(header(parts=[1]), BODY), "part is not a JSON object"),
    (sealed(header(parts=[{"site": ""}]), BODY), "lacks 'batch'"),
    (sealed(header(parts=part(seed=5)), BODY), "'seed'"),
    (sealed(header(parts=part(seed="-5")), BODY), "'seed'"),
    (sealed(header(parts=part(seed=str(2**64))), BODY), "'seed'"),
    (sealed(header(parts=part(seed="1" * 100_000)), BODY), "'seed'"),
    (sealed(header(parts=part(stream=2**32)), BODY), "'stream'"),
    (sealed(header(parts=part(batch="XY")), BODY), "'batch'"),
    (sealed(header(parts=part(batch="AB" * 16)), BODY), "'batch'"),
    (sealed(header(parts=part(stream=-1)), BODY), "'stream'"),
    (sealed(header(parts=part(site="a\u2028b")), BODY), "'site'"),
    (sealed(header(parts=part(label="x" * 1001)), BODY), "'label'"),
    (sealed(header(parts=part(partition=5)), BODY), "'partition'"),
    (sealed(header(parts=part(stop=2**53 + 1)), BODY), "'stop'"),
    (sealed(header(parts=part(size=MOST_SKETCH_ROWS + 1)), BODY), "'size'"),
    (sealed(header(parts=part(sparsity=0)), BODY), "'sparsity'"),
    (sealed(header(parts=part(contiguous=1)), BODY), "'contiguous'"),
    (sealed(header(drop_first=1), BODY), "'drop_first'"),
    (sealed(header(weighted="no"), BODY), "'weighted'"),
    (sealed(header(private=0), BODY), "'private'"),
    (sealed(header(rows_dropped=-1), BODY), "'rows_dropped'"),
    (sealed(header(parts=part(start=11)), BODY), "no range"),
    (sealed(header(parts=part(start=None)), BODY), "no range"),
    (sealed(private(), BODY), "yet tells a seed"),
    (sealed(private(parts=part(seed=None)), BODY), "yet tells a seed or row numbers"),
    (sealed(private(parts=part(start=None, stop=None)), BODY), "yet tells a seed or row numbers"),
    (sealed(private(parts=part(seed=None, start=0, stop=0)), BODY), "yet tells a seed or row numbers"),
    (sealed(header(), BODY[:-8]), "size is not"),
    (sealed(header(), BODY + b"\0" * 8), "size is not"),
    (sealed(header(), HUGE), "not all finite"),
    (sealed(header(), np.full((5, 4), np.nan).tobytes()), "not all finite"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_files_that_are_not_ours_or_not_right(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=r"hostile\.psk") as caught:
        Summary.from_bytes(data, "hostile.psk")
    sentence = str(caught.value)
    assert message in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert sentence.isprintable()


def test_no_memory_is_set_aside_for_what_a_small_file_claims() -> None:
    claims = header(
        sketch_rows=2**22, columns=[f"c{i}" for i in range(64)], targets=[], levels=[], parts=part(size=2**22)
    )
    data = sealed(claims, BODY)
    tracemalloc.start()
    with pytest.raises(InputError, match="size is not"):
        Summary.from_bytes(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The claim is 2 GiB; reading the header of a few kilobytes takes far less than one.
    assert peak < 2**20


def test_a_large_sparse_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse.psk"
    with path.open("wb") as file:
        file.write(sealed(header(), BODY))
        file.truncate(2**40)
    with pytest.raises(InputError, match="size is not"):
        Summary.load(path)


def test_pipes_devices_and_folders_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.psk")
    for path in (tmp_path / "pipe.psk", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(InputError, match="not an ordinary file"):
            Summary.load(path)
    with pytest.raises(InputError, match="Cannot read"):
        Summary.load(tmp_path)
    with pytest.raises(InputError, match="Cannot read"):
        Summary.load("a\0b.psk")


def test_what_cannot_be_read_is_not_written() -> None:
    with pytest.raises(InputError, match="not all finite"):
        replace(a_summary(), matrix=np.full((5, 4), np.inf)).to_bytes()
    with pytest.raises(InputError, match="'columns'"):
        replace(a_summary(), columns=("a", "b\n", "c", "y")).to_bytes()
    with pytest.raises(InputError, match="parts"):
        replace(a_summary(), parts=()).to_bytes()


def test_reading_imports_no_pickle(tmp_path: Path) -> None:
    """Neither the reader nor what it imports of ours loads objects from bytes."""
    sources = Path(sys.modules["partsketch"].__file__ or "").parent / "summaries"
    for name in ("file.py", "file_header.py", "file_rules.py", "summary.py", "provenance.py"):
        text = (sources / name).read_text()
        for word in ("import pickle", "import marshal", "eval(", "exec(", "np.load", "yaml"):
            assert word not in text
