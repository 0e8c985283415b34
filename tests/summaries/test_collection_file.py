"""Files of many summaries: a file that breaks each rule of docs/sketch-format.md, and the sentence that refuses it."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import pytest

from partsketch import InputError
from partsketch.summaries.collection_file import LARGEST_INDEX, MOST_SUMMARIES, from_bytes
from tests.summaries.test_file import BODY, a_summary, header, sealed

ENTRY = a_summary().to_bytes()


def collected(index: Any, entries: bytes, length: int | None = None) -> bytes:
    """A file with a right checksum around whatever it holds."""
    text = index if isinstance(index, bytes) else json.dumps(index).encode()
    data = b"PSKETCH\n" + struct.pack("<II", 3, len(text) if length is None else length) + text + entries
    return data + hashlib.sha256(data).digest()


def sizes(*entries: bytes) -> dict[str, list[int]]:
    return {"bytes": [len(entry) for entry in entries]}


def holding(*entries: bytes) -> bytes:
    return collected(sizes(*entries), b"".join(entries))


TWO = holding(ENTRY, ENTRY)


def test_the_sealing_of_this_test_is_right() -> None:
    assert from_bytes(TWO) == (a_summary(), a_summary())


REFUSED = {
    "the index is not too long": (collected({}, b"", LARGEST_INDEX + 1), "its index has 16777217 bytes, more than"),
    "the index is there": (collected({}, b"", 4000), "it is cut short"),
    "the index is JSON": (collected(b"\xff", ENTRY), "not JSON"),
    "the index is an object": (collected([len(ENTRY)] * 2, ENTRY * 2), "not a JSON object"),
    "no key is repeated": (collected(b'{"bytes": [1], "bytes": [1]}', b"x"), "a key of its header is repeated"),
    "there is the one key": (collected({}, ENTRY * 2), "other keys than 'bytes'"),
    "there is no other key": (collected({**sizes(ENTRY, ENTRY), "more": 1}, ENTRY * 2), "other keys than 'bytes'"),
    "sizes are a list": (collected({"bytes": 5}, ENTRY * 2), "other keys than 'bytes'"),
    "sizes are whole": (collected({"bytes": [float(len(ENTRY))] * 2}, ENTRY * 2), "no positive whole numbers"),
    "sizes are no truths": (collected({"bytes": [True, True]}, b"xx"), "no positive whole numbers"),
    "sizes are positive": (collected({"bytes": [2 * len(ENTRY), 0]}, ENTRY * 2), "no positive whole numbers"),
    "there are two": (holding(ENTRY), "it has 1 summaries: 2 to 1048576 are allowed"),
    "there are not too many": (collected({"bytes": [1] * (MOST_SUMMARIES + 1)}, b""), "it has 1048577 summaries"),
    "the size is right, less": (collected(sizes(ENTRY, ENTRY), ENTRY), "its size is not what its index says"),
    "the size is right, more": (collected(sizes(ENTRY, ENTRY), ENTRY * 2 + b"x"), "its size is not what its index"),
    "the checksum is right": (TWO[:-1] + bytes([TWO[-1] ^ 1]), "do not match its checksum"),
    "none holds others": (holding(ENTRY, TWO), "summary 1 holds others"),
    "none is noisy": (
        holding(ENTRY, sealed(header(), BODY, version=4)),
        "summary 1) holds sums of products with noise",
    ),
    "each keeps its own rules": (holding(ENTRY, sealed(header(row_count=0), BODY)), "'row_count' in its header"),
    "each has its own checksum": (holding(ENTRY, ENTRY[:-1] + bytes([ENTRY[-1] ^ 1])), "(summary 1) is damaged"),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_a_file_that_breaks_a_rule_is_refused(rule: str) -> None:
    data, words = REFUSED[rule]
    with pytest.raises(InputError) as raised:
        from_bytes(data, "many.psk")
    sentence = str(raised.value)
    assert sentence.startswith("many.psk")
    assert words in sentence
    assert sentence.endswith(".")
