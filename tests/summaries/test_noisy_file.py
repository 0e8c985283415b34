"""The format of files with a promise: a file that breaks each rule is refused, in one sentence that names it."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partsketch import InputError, NoisySummary
from tests.sites.noisy.files import noisy, table


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return noisy(tmp_path_factory.mktemp("noisy"), table(300)).to_bytes()


def opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack("<I", data[12:16])
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def closed(header: Any, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    content = b"PSKETCH\n" + struct.pack("<II", 4, len(text)) + text + body
    return content + hashlib.sha256(content).digest()


def changed(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda header: header.update(values)


def within(key: str, place: Any, name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(header: dict[str, Any]) -> None:
        inner = header[key] if place is None else header[key][place]
        inner[name] = value

    return change


RULES: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (changed(kind="gaussian"), "kind"),
    (changed(neighbours="one row exchanged"), "neighbours"),
    (changed(mechanism="Laplace"), "mechanism"),
    (changed(more=1), "unknown key"),
    (lambda header: header.pop("release"), "lacks 'release'"),
    (changed(columns=["(intercept)"], bounds=[], targets=[]), "1 columns"),
    (changed(columns=["(intercept)", *(f"c{i}" for i in range(1024))]), "1025 columns"),
    (changed(columns=["a", "b", "c", "y"]), "the first '\\(intercept\\)'"),
    (changed(columns=["(intercept)", "a", "a", "y"]), "not distinct"),
    (changed(columns=["(intercept)", "a\n", "b", "y"]), "control characters"),
    (changed(columns="(intercept)"), "a list"),
    (changed(targets=["z"]), "'targets'"),
    (changed(targets=["y", "y"]), "'targets'"),
    (changed(targets=["(intercept)"]), "'targets'"),
    (changed(targets=[]), "factor of column 'y'"),
    (changed(site="x" * 2000), "longer than"),
    (changed(label=3), "'header.label'"),
    (changed(release="0" * 31), "32 hexadecimal digits"),
    (changed(release="G" * 32), "32 hexadecimal digits"),
    (changed(levels=[["g", ["u", "v"]]]), "a level without a column"),
    (changed(levels=[["a", ["u"]]]), "not encoded"),
    (changed(levels=[["g", []]]), "at least one"),
    (changed(drop_first=1), "true or false"),
    (changed(drop_first=False), "'drop_first' is false, yet nothing is encoded"),
    (changed(design={"formula": "y ~ a"}), "design"),
    (changed(bounds=[]), "one for each column"),
    (within("bounds", 0, "lower", 1e9), "the bounds of column 'a'"),
    (within("bounds", 0, "centre", -1e9), "the bounds of column 'a'"),
    (within("bounds", 0, "spread", 0.0), "the bounds of column 'a'"),
    (within("bounds", 0, "factor", 2.0), "the factor of column 'a'"),
    (within("bounds", 2, "factor", -1.0), "the factor of column 'y'"),
    (within("bounds", 0, "lower", "0"), "a number"),
    (within("promise", None, "clip", 0.0), "'clip'"),
    (within("promise", None, "clip", 1e9), "'clip'"),
    (within("promise", None, "norm", 0.1), "'norm'"),
    (within("promise", None, "norm", 1e300), "'norm'"),
    (within("promise", None, "epsilon", 0.5), "'noise' is not what its promise takes"),
    (within("promise", None, "epsilon", -1), "epsilon is -1"),
    (within("promise", None, "epsilon", 0.0009), "epsilon is 0.0009"),
    (within("promise", None, "epsilon", 51), "epsilon is 51"),
    (within("promise", None, "delta", 1e-9), "'noise' is not what its promise takes"),
    (within("promise", None, "delta", 2.0), "delta is 2"),
    (within("promise", None, "delta", 9e-16), "delta is 9e-16"),
    (within("promise", None, "delta", 0.011), "delta is 0.011"),
    (within("promise", None, "noise", 1.0), "'noise' is not what its promise takes"),
    (within("promise", None, "noise", None), "a number"),
]


@pytest.mark.parametrize(("change", "message"), RULES)
def test_each_rule(data: bytes, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    header, body = opened(data)
    change(header)
    with pytest.raises(InputError, match=message):
        NoisySummary.from_bytes(closed(header, body), "forged.psk")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[:10], "cut short"),
        (lambda data: data[:200], "cut short"),
        (lambda data: data[:-1], "size is not"),
        (lambda data: data + b"x", "size is not"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "checksum"),
        (lambda data: b"PK" + data[2:], "not a partsketch sketch file"),
        (lambda data: data[:8] + struct.pack("<I", 1) + data[12:], "holds no noisy sums"),
        (lambda data: data[:12] + struct.pack("<I", 2**31) + data[16:], "more than"),
        (lambda data: closed(b"[1]", b""), "not a JSON object"),
        (lambda data: closed(b'{"a": NaN}', b""), "number NaN"),
        (lambda data: closed(b'{"a": 1, "a": 1}', b""), "repeated"),
        (lambda data: closed(b"\xff", b""), "not JSON"),
    ],
)
def test_damage(data: bytes, damage: Callable[[bytes], bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NoisySummary.from_bytes(damage(data), "damaged.psk")


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "finite"), (np.inf, "finite"), (1.0, "not symmetric"), (1e100, "any rows")]
)
def test_numbers_that_no_site_would_write(data: bytes, value: float, message: str) -> None:
    header, body = opened(data)
    products = np.frombuffer(body, dtype="<f8").copy()
    products[1] = value
    if value > 1:
        products[len(header["columns"])] = value
    with pytest.raises(InputError, match=message):
        NoisySummary.from_bytes(closed(header, products.tobytes()), "forged.psk")


def test_what_is_written_is_read(data: bytes, tmp_path: Path) -> None:
    summary = NoisySummary.from_bytes(data)
    assert summary.to_bytes() == data
    summary.save(tmp_path / "north.psk")
    assert NoisySummary.load(tmp_path / "north.psk") == summary
