"""Fuzz the reader of sketch files: `python -m tests.summaries.fuzz_sketch_files 100000 [seed]`.

Every mutated file must either be refused by an InputError of one printable sentence, or be read as a valid summary
that gives the same bytes when written and read again. Anything else (another exception, a warning, a value that is not
finite, too much memory) ends the run with the offending file printed. Half of the files get a right checksum, so that
the checks behind it are reached too.
"""

from __future__ import annotations

import collections
import hashlib
import json
import random
import struct
import sys
import time
import tracemalloc
import warnings
from typing import Any

import numpy as np

from partsketch import InputError, Summary
from partsketch.sources.encoding import Encoding
from partsketch.summaries.provenance import About, Part

#: A refused or accepted file of a few kilobytes may use this much memory, no more.
_MOST_MEMORY = 32 * 2**20

_ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, "", "x",
    "\x00", "\x1b[2J", "\ud800", "\u202e", "é", "x" * 1001, [], {}, [[]], [None], ["x", "x"], [["x", ["a", "b"]]],
    {"x": 1},
    "gaussian", "triangular", "__import__('os')", "cos\nsystem\n", [1] * 1000, {"__reduce__": []}, "9" * 5000,
]  # fmt: skip


def corpus() -> list[bytes]:
    """A few valid files of different kinds."""
    draw = np.random.default_rng(1)
    columns = ("(intercept)", "x0", "x=b", "y")
    about = About(("y",), Encoding((("x", ("a", "b")),), True), rows_dropped=3)
    gaussian = Summary(
        draw.normal(size=(6, 4)), columns, "gaussian", (Part("a", 0, 0, 9, 6, 7, True, "d", "ab" * 16),), 9, 9.0, about
    )
    private = Summary(
        draw.normal(size=(6, 4)), columns, "gaussian", (Part("b", 0, None, None, 6, None, False, "", "cd" * 16),), 1000,
        1000.0, About(("y",), private=True, rounded_to=1000, rows_dropped=None),
    )  # fmt: skip
    exact = Summary(np.triu(draw.normal(size=(4, 4))), columns, "triangular", (Part("", 0, 0, 9, 4, None),), 9, 9.5)
    other = Summary(
        draw.normal(size=(6, 4)), columns, "gaussian", (Part("a", 1, 9, 19, 6, 7, True, "d", "ab" * 16),), 10, 1.0
    )
    return [summary.to_bytes() for summary in (gaussian, private, exact, gaussian.stack(other))]


def _flip(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def _splice(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    stop = min(len(data), start + draw.randint(0, 64))
    data[start:stop] = draw.randbytes(draw.randint(0, 64))


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
    try:
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
                holder[draw.choice(["surprise", "\x1b", "site", "kind"])] = draw.choice(_ODD)
            else:
                holder[key] = draw.choice(_ODD)
        text = json.dumps(values)
        if draw.random() < 0.1:
            text = text.replace("{", '{"kind": "gaussian", ', 1)
        if draw.random() < 0.1:
            text = text.replace(": 0", draw.choice([": NaN", ": 1e999", ": -Infinity", ": 0x1", ": 00", ": [[[["]), 1)
    except (ValueError, KeyError, TypeError, AttributeError):
        return
    encoded = text.encode(errors="surrogatepass")
    data[12 : 16 + length] = struct.pack("<I", len(encoded)) + encoded


_MUTATIONS = [_flip, _cut, _splice, _repeat, _lengths, _numbers, _header, _header, _header]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Return a damaged or hostile variant of a file."""
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4])):
        if len(changed) > 60:
            draw.choice(_MUTATIONS)(changed, draw)
    if draw.random() < 0.5 and len(changed) > 32:
        changed[-32:] = hashlib.sha256(changed[:-32]).digest()
    return bytes(changed)


def judge(data: bytes) -> str:
    """Read one file: return how it was refused (with names and numbers left out), or 'valid'."""
    try:
        summary = Summary.from_bytes(data, "file.psk")
    except InputError as error:
        sentence = str(error)
        assert sentence.startswith("file.psk "), sentence
        assert sentence.endswith("."), sentence
        assert sentence.isprintable(), sentence
        assert len(sentence) < 2000, sentence
        return sentence.removeprefix("file.psk is damaged or not a valid sketch file: ")
    assert np.isfinite(summary.matrix).all()
    again = summary.to_bytes()
    assert Summary.from_bytes(again) == summary
    return "valid"


def main(count: int, seed: int | None) -> int:
    """Judge so many mutated files; print what became of them."""
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    draw, files = random.Random(seed), corpus()
    for data in files:
        assert judge(data) == "valid"
    verdicts: collections.Counter[str] = collections.Counter()
    started = time.perf_counter()
    warnings.simplefilter("error")
    tracemalloc.start()
    for number in range(count):
        data = mutate(draw.choice(files), draw)
        try:
            verdicts[judge(data)] += 1
            assert tracemalloc.get_traced_memory()[1] < _MOST_MEMORY, "too much memory"
        except BaseException:
            print(f"seed {seed}, file {number}: {data!r}", file=sys.stderr)
            raise
    seconds = time.perf_counter() - started
    print(f"{count} mutated files, seed {seed}, {seconds:.0f} s: {len(verdicts)} different outcomes, no crash")
    print(f"{verdicts['valid']} were still valid; the others were refused in one sentence, most often:")
    for sentence, times in verdicts.most_common(12):
        print(f"{times:8d}  {sentence[:110]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))
