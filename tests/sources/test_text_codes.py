"""Texts told apart by our own kernel, beside Arrow's answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from partsketch.sources import text_codes
from partsketch.sources.arrow_values import with_codes
from partsketch.sources.text_codes import MOST_CODED, coded_texts

#: Lengths on both sides of eight bytes and of sixteen, texts that differ in their first, ninth or last byte or in their
#: length alone, and bytes of zero, which are what stands behind a short text.
TEXTS = [
    "",
    "\0",
    "\0\0",
    "a",
    "a\0",
    "12345678",
    "12345678\0",
    "123456789",
    "12345678X",
    "0123456789abcdef",
    "0123456789abcdeg",
    "0123456789abcdefg",
    "0123456789abcdef\0",
    "1123456789abcdefg",
    "01234567X9abcdefg",
    "straße",
    "strasse",
]


def _column(kind: Any, missing: bool) -> Any:
    drawn = np.random.default_rng(0).integers(0, len(TEXTS), 500).tolist()
    return pa.array([None if missing and place == 3 else TEXTS[place] for place in drawn], kind)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("cut", [slice(None), slice(13, 490), slice(498, 500)])
def test_codes_are_those_of_arrow(kind: Any, missing: bool, cut: slice) -> None:
    column = _column(kind, missing)[cut]
    assert coded_texts(column).equals(column.dictionary_encode())


@pytest.mark.parametrize("texts", [[], [None], [""], ["a", "bc", "a"], ["1234567"], ["12345678"], [None, "1234567890"]])
def test_few_bytes(texts: list[str | None]) -> None:
    column = pa.array(texts, pa.string())
    assert coded_texts(column).equals(column.dictionary_encode())


def test_texts_that_mix_to_one_word_are_told_apart() -> None:
    whole = 1 << 64

    def mixed(word: int) -> int:
        return (word ^ word >> 29) * int(text_codes.SPREAD) % whole

    one, other, last = (int.from_bytes(text, "little") for text in (b"north of", b"south of", b" a river"))
    # What the first halves differ by after they are mixed, the second halves differ by the other way.
    halves = [(one, last), (other, (last + mixed(one) - mixed(other)) % whole)]
    texts = [b"".join(half.to_bytes(8, "little") for half in pair) for pair in halves]
    column = pa.array(texts, pa.binary()).view(pa.string())
    assert coded_texts(column).indices.to_pylist() == [0, 1]


def test_many_texts_share_a_table() -> None:
    # As many as there may be: places of the table are shared, and looked for further on.
    column = pa.array([str(number * 7919) for number in range(MOST_CODED)] * 2)
    assert coded_texts(column).equals(column.dictionary_encode())


def test_too_many_texts_stay_as_they_are() -> None:
    column = pa.chunked_array([[str(number) for number in range(MOST_CODED + 1)]])
    assert coded_texts(column.chunk(0)) is None
    assert with_codes(column) is column


def test_chunks_have_one_dictionary() -> None:
    parts: list[list[str | None]] = [["b", "a", None], [], ["c", "a"]]
    column = with_codes(pa.chunked_array(parts, pa.string()))
    assert [chunk.dictionary.to_pylist() for chunk in column.chunks] == [["b", "a", "c"]] * 3
    assert column.to_pylist() == [text for part in parts for text in part]
    # Each chunk has few of its own, all together too many.
    apart = pa.chunked_array([[f"{part} {number}" for number in range(MOST_CODED)] for part in "ab"])
    assert with_codes(apart) is apart
