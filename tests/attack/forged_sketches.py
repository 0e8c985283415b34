"""Sketch files that were damaged or forged: flipped and spliced bytes, odd fields, broken rules, right checksums.

A file is refused by one sentence that names it, or it is a summary that obeys every rule, says the same when it is
written again, and is combined or refused by one sentence. Forgeries of a rule must be refused.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import partsketch as ps
from partsketch import InputError, Summary
from tests.attack.case import Case, Fault
from tests.attack.judges import judge_reading

Must = Literal["refuse", "accept", "any"]

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2, 2**31, 2**32, 2**53, 2**53 + 1, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, "", "x",
    "\x00", "\x1b[2J", "\ud800", "\u202e", "é", "x" * 1001, [], {}, [[]], [None], ["x", "x"], [["x", ["a", "b"]]],
    {"x": 1}, "gaussian", "triangular", "sparse_sign", "(intercept)", "__import__('os')", "cos\nsystem\n", [1] * 1000,
    {"__reduce__": []}, "9" * 5000,
]  # fmt: skip


@dataclass(frozen=True)
class Unsealed:
    """A file in its parts: format version, header, numbers."""

    version: int
    header: dict[str, Any]
    body: bytes

    @classmethod
    def of(cls, data: bytes) -> Unsealed:
        """Take a valid file apart."""
        version, length = struct.unpack("<II", data[8:16])
        return cls(version, json.loads(data[16 : 16 + length]), data[16 + length : -32])

    def sealed(self) -> bytes:
        """Put it together again, with a right checksum."""
        return sealed(self.header, self.body, self.version)


def sealed(header: Any, body: bytes, version: int = 1, length: int | None = None) -> bytes:
    """Return a file with a right checksum around whatever it holds."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode(errors="surrogatepass")
    data = b"PSKETCH\n" + struct.pack("<II", version, len(text) if length is None else length) + text + body
    return data + hashlib.sha256(data).digest()


@cache
def originals() -> tuple[bytes, ...]:
    """Valid files: of both versions, exact and random, private, weighted, encoded, sparse, of one and of two parts."""
    draw = np.random.default_rng(1)
    a, b, y = draw.normal(size=(3, 60))
    table = pa.table({"a": a, "far": 1e9 + b, "y": a + b + y, "kind": ["u", "v", "w"] * 20, "w": np.exp(y)})
    features = ["a", "far"]
    some: dict[str, Any] = {"sketch_size": 12, "random_state": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = ps.sketch(table, "y", features, site="one", **some)
        cut = ps.sketch(table, "y", features, site="cut", n_partitions=2, **some)
        made = [
            one,
            cut[0],
            cut[0].stack(cut[1]),
            ps.sketch(table, "y", ["a"], site="two", private=True, round_rows=20, sketch_size=12),
            ps.sketch(table, "y", ["a", "kind"], site="three", encode=True, sketch="triangular"),
            ps.sketch(table, "y", features, site="four", sketch="triangular", n_partitions=2)[1],
            ps.sketch(table, "y", ["a"], site="five", sketch="sparse_sign", weights="w", **some),
            ps.sketch(table, "y", ["a"], site="six", partition_by="kind", sketch="row_sample", **some)[0],
            ps.sketch(table, "y", ["a"], site="seven", fit_intercept=False, sketch="triangular", weights="w"),
        ]
    return tuple(summary.to_bytes() for summary in made)


def _flip(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def _splice(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    data[start : start + draw.randint(0, 64)] = draw.randbytes(draw.randint(0, 64))


def _repeat(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    data[start:start] = data[start : start + draw.randint(1, 200)]


def _lengths(data: bytearray, draw: random.Random) -> None:
    data[8:16] = struct.pack("<II", draw.choice([0, 1, 1, 1, 2, 2**32 - 1]), draw.choice([0, 1, 2**22, 2**32 - 1, 300]))


def _numbers(data: bytearray, draw: random.Random) -> None:
    odd = struct.pack("<d", draw.choice([np.nan, np.inf, -np.inf, 5e-324, 1e308, -0.0]))
    position = len(data) - 32 - 8 * draw.randint(1, 16)
    if position > 0:
        data[position : position + 8] = odd


def _header(data: bytearray, draw: random.Random) -> None:
    """Change the JSON itself: values of other types, keys left out, added or repeated."""
    (length,) = struct.unpack("<I", data[12:16])
    values = json.loads(data[16 : 16 + length])
    places: list[tuple[Any, Any]] = [(values, key) for key in values]
    for entry in values["parts"]:
        places += [(entry, key) for key in entry]
    for _ in range(draw.randint(1, 3)):
        holder, key = draw.choice(places)
        action = draw.randrange(4)
        if action == 0:
            holder.pop(key, None)
        elif action == 1:
            holder[draw.choice(["surprise", "\x1b", "site", "kind"])] = copy.deepcopy(draw.choice(ODD))
        else:
            holder[key] = copy.deepcopy(draw.choice(ODD))
    text = json.dumps(values)
    if draw.random() < 0.1:
        text = text.replace("{", '{"kind": "gaussian", ', 1)
    if draw.random() < 0.1:
        text = text.replace(": 0", draw.choice([": NaN", ": 1e999", ": -Infinity", ": 0x1", ": 00", ": [[[["]), 1)
    encoded = text.encode(errors="surrogatepass")
    data[12 : 16 + length] = struct.pack("<I", len(encoded)) + encoded


_MUTATIONS = [_flip, _cut, _splice, _repeat, _lengths, _numbers, _header, _header, _header]


def mutated(data: bytes, draw: random.Random) -> bytes:
    """Return a damaged or hostile variant of a file; half of them with a right checksum."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4])):
        if len(changed) > 60:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                draw.choice(_MUTATIONS)(changed, draw)
    if draw.random() < 0.5 and len(changed) > 32:
        changed[-32:] = hashlib.sha256(changed[:-32]).digest()
    return bytes(changed)


Forgery = Callable[[dict[str, Any], random.Random], object]


def _set(key: str, *values: Any) -> Forgery:
    def forge(header: dict[str, Any], draw: random.Random) -> None:
        header[key] = draw.choice(values)

    return forge


def _in_parts(changes: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[dict[str, Any], random.Random], None]:
    def change(header: dict[str, Any], draw: random.Random) -> None:
        for part in header["parts"]:
            part.update(changes(part))

    return change


def _set_part(key: str, *values: Any) -> Forgery:
    def forge(header: dict[str, Any], draw: random.Random) -> None:
        draw.choice(header["parts"])[key] = draw.choice(values)

    return forge


def _counted(factor: float) -> Forgery:
    """Forge the number of rows, and whatever else tells it."""

    def forge(header: dict[str, Any], draw: random.Random) -> None:
        header["row_count"] = max(1, int(header["row_count"] * factor))
        if not header["weighted"]:
            header["weight_sum"] = float(header["row_count"])
        for part in header["parts"]:
            if part["stop"] is not None:
                part["stop"] = part["start"] + header["row_count"]

    return forge


def _doubled_part(header: dict[str, Any], draw: random.Random) -> None:
    part = draw.choice(header["parts"])
    header["parts"].append(copy.deepcopy(part))
    header["sketch_rows"] += part["size"]


def _intercept_moved(header: dict[str, Any], draw: random.Random) -> None:
    header["columns"] = [*header["columns"][1:], "(intercept)"]


#: Rules that every original keeps, and forgeries that break one wherever they are applied.
BROKEN: dict[str, Forgery] = {
    "weight sum": lambda header, draw: header.update(weighted=False, weight_sum=header["row_count"] * 1.5),
    "intercept moved": _intercept_moved,
    "target unknown": _set("targets", ["nobody"], ["(intercept)"], ["y", "y"]),
    "levels without columns": _set("levels", [["colour", ["blue", "red"]]], [["y", ["a", "b"]]], [["a", ["1", "1"]]]),
    "rounded count": lambda header, draw: header.update(rounded_to=header["row_count"] + draw.randint(1, 9)),
    "size": _set_part("size", 0, 1, 2**24),
    "sketch rows": _set("sketch_rows", 1, 2, 2**20),
    "part twice": _doubled_part,
    "columns repeated": lambda header, draw: header.update(columns=[header["columns"][0]] * len(header["columns"])),
    "kind unknown": _set("kind", "cubist", "", "Gaussian"),
    "no parts": _set("parts", []),
    "private": lambda header, draw: header.update(private=not header["private"]),
    "sparsity": _in_parts(lambda part: {"sparsity": 3 if part["sparsity"] is None else None}),
    "backwards": _set_part("start", 2**53),
    "contiguous without a range": _in_parts(lambda part: {"start": None, "stop": None, "contiguous": True}),
    "more rows than the range": _in_parts(lambda part: {"start": 0, "stop": 1, "contiguous": True, "partition": "x"}),
}


@dataclass(frozen=True)
class ForgedSketch:
    """A file, what was done to it, and whether it must be refused or read."""

    content: bytes
    change: str
    must: Must


def forged(seed: int) -> Iterator[ForgedSketch]:
    """Yield forged sketch files for ever."""
    draw = random.Random(seed)
    files = originals()
    names = sorted(BROKEN)
    while True:
        original = draw.choice(files)
        kind = draw.random()
        if kind < 0.01:
            yield ForgedSketch(original, "nothing is changed", "accept")
        elif kind < 0.70:
            yield ForgedSketch(mutated(original, draw), "bytes or fields are changed", "any")
        elif kind < 0.95:
            yield _broken(original, draw.choice(names), draw)
        else:
            yield _miscounted(original, draw)


def _broken(original: bytes, rule: str, draw: random.Random) -> ForgedSketch:
    apart = Unsealed.of(original)
    before = copy.deepcopy(apart.header)
    BROKEN[rule](apart.header, draw)
    # A few forgeries do nothing to some files, such as those of one row of a sketch.
    same = apart.header == before
    without_ones = rule == "intercept moved" and before["columns"][0] != "(intercept)"
    return ForgedSketch(apart.sealed(), f"rule broken: {rule}", "any" if same or without_ones else "refuse")


def _miscounted(original: bytes, draw: random.Random) -> ForgedSketch:
    """Ten thousand times the rows, or fewer: intervals would be a hundred times narrower, or certificates worthless."""
    apart = Unsealed.of(original)
    _counted(draw.choice([1e4, 1e6, 0.001]))(apart.header, draw)
    header = apart.header
    exact = header["kind"] == "triangular" and header["columns"][0] == "(intercept)" and not header["weighted"]
    gaussian = header["kind"] == "gaussian" and header["columns"][0] == "(intercept)" and header["rounded_to"] == 1
    return ForgedSketch(apart.sealed(), "forged count", "refuse" if exact or gaussian else "any")


def use(data: bytes) -> None:
    """Read a file, write it again, and combine it with nothing and with a valid one."""
    summary = Summary.from_bytes(data, "file.psk")
    assert np.isfinite(summary.matrix).all()
    assert Summary.from_bytes(summary.to_bytes()) == summary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for others in ([], [Summary.from_bytes(originals()[0])]):
            with contextlib.suppress(InputError):
                model = ps.combine([summary, *others], summary.columns[-1])
                assert np.isfinite(model.column_coefficients).all()


def cases(seed: int) -> Iterator[Case]:
    """Yield attacks with forged sketch files for ever."""
    for number, sketch in enumerate(forged(seed)):
        yield Case(f"sketch file {number}: {sketch.change}", partial(attack, sketch), "sketch files")


def attack(forgery: ForgedSketch, folder: Path) -> Fault | None:
    """Read one file and judge what becomes of it."""
    return judge_reading(lambda: use(forgery.content), forgery.must)
