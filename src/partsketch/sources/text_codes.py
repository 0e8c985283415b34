"""Texts of a column told apart: few different ones, as they lie in memory, in a table that stays in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import place_of

#: Most different texts of which codes are made.
MOST_CODED = 1 << 12
#: Places of the table: at most a quarter of them are taken.
_PLACES = 4 * MOST_CODED
_SHIFT = 64 - _PLACES.bit_length() + 1
#: An odd number without a pattern: products with it spread texts over the table.
SPREAD = np.uint64(0x9E3779B97F4A7C15)


@intrinsic
def _part_of(typingctx, data, at, length):  # type: ignore[no-untyped-def]
    """Return the first bytes of a text that begins at data[at], eight at most, with zeros behind them.

    Nothing behind the data is read; there are eight bytes at least. No branches: texts are of any length, and the
    processor would guess wrongly. No array is handed to a function: that would count references to it.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])

        def number(value: int) -> Any:
            return ir.Constant(ir.IntType(64), value)

        def at_most(value: Any, most: Any) -> Any:
            return builder.select(builder.icmp_signed("<", value, most), value, most)

        _, at, length = args
        begin = at_most(at, builder.sub(array.nitems, number(8)))
        # Shifted in two steps: one by 64 bits would leave everything as it is.
        half = builder.shl(builder.sub(at, begin), number(2))
        place = place_of(builder, array.data, begin, ir.IntType(8))
        word = builder.load(place, align=1, typ=ir.IntType(64))
        word = builder.lshr(builder.lshr(word, half), half)
        half = builder.shl(at_most(length, number(8)), number(2))
        mask = builder.sub(builder.shl(builder.shl(number(1), half), half), number(1))
        return builder.and_(word, mask)

    return types.uint64(data, types.intp, types.intp), generate


@intrinsic
def _word_at(typingctx, data, at):  # type: ignore[no-untyped-def]
    """Return the eight bytes from data[at] on, wherever they begin."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = place_of(builder, array.data, args[1], ir.IntType(8))
        return builder.load(place, align=1, typ=ir.IntType(64))

    return types.uint64(data, types.intp), generate


@compiled
def _number_texts(offsets, data, valid, first_bit, codes, firsts):  # type: ignore[no-untyped-def]
    """Give texts numbers in the order in which they first occur; return how many, or -1 if they are more than `firsts`.

    Parameters
    ----------
    offsets
        Where each text begins, and the end of the last.
    valid, first_bit
        Bits of the rows that have a text, and which of them is the first; no bits where all have one.
    codes
        Gets the number of each row's text, 0 where it has none.
    firsts
        Gets the row in which each text first occurs.
    """
    table = np.full(_PLACES, -1, np.int32)
    words, lengths, used = np.empty(firsts.size, np.uint64), np.empty(firsts.size, np.int64), 0
    for row in range(codes.size):
        if valid.size:
            codes[row] = 0
            bit = row + first_bit
            if not (valid[bit >> 3] >> np.uint8(bit & 7)) & np.uint8(1):
                continue
        at, length = np.int64(offsets[row]), np.int64(offsets[row + 1]) - np.int64(offsets[row])
        word = _part_of(data, at, length)
        # The last eight bytes of a longer text may have been read in part: no others lie behind it for certain.
        for begin in range(8, length, 8):
            part = begin if begin + 8 <= length else length - 8
            word = (word ^ (word >> np.uint64(29))) * SPREAD + _word_at(data, at + part)
        place = np.int64(((word + np.uint64(length)) * SPREAD) >> np.uint64(_SHIFT))
        while True:
            code = table[place]
            if code < 0:
                if used == firsts.size:
                    return -1
                table[place], words[used], lengths[used], firsts[used], code = used, word, length, row, used
                used += 1
                break
            same = (words[code] == word) & (lengths[code] == length)
            # Of short texts the word is all.
            if same and length > 8:
                other = np.int64(offsets[firsts[code]])
                for begin in range(0, length, 8):
                    part = begin if begin + 8 <= length else length - 8
                    same &= _word_at(data, at + part) == _word_at(data, other + part)
            if same:
                break
            place = (place + 1) & (_PLACES - 1)
        codes[row] = code
    return used


def coded_texts(column: Any) -> Any:
    """Return an Arrow array of texts as codes of the different ones, None if these are too many.

    As Arrow's own `dictionary_encode`, in a third of the time where texts have up to eight bytes.
    """
    import pyarrow as pa

    bits, places, data = column.buffers()
    kind = np.dtype(np.int64 if pa.types.is_large_string(column.type) else np.int32)
    if not len(column) or places is None or data is None or data.size < 8:
        coded = column.dictionary_encode()
        return coded if len(coded.dictionary) <= MOST_CODED else None
    offsets = np.frombuffer(places, kind, len(column) + 1, column.offset * kind.itemsize)
    valid = np.frombuffer(bits, np.uint8) if bits is not None and column.null_count else np.empty(0, np.uint8)
    codes, firsts = np.empty(len(column), np.int32), np.empty(MOST_CODED, np.int64)
    count = _number_texts(offsets, np.frombuffer(data, np.uint8), valid, column.offset, codes, firsts)
    if count < 0:
        return None
    absent = column.is_null().to_numpy(zero_copy_only=False) if valid.size else None
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=absent), column.take(pa.array(firsts[:count])))
