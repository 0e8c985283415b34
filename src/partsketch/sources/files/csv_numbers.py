"""Lines of plain numbers, made doubles by compiled code in half the time of a parser that is ready for everything.

Whoever calls it leaves to that parser whatever is not plain: quotes, texts, missing values, more than nineteen digits,
numbers at the ends of what doubles hold. The doubles are the same: those closest to what is written.

Eight digits are read at a time (Lemire and Mula). A number w·10^q becomes a double by its product with the first 128
bits of 5^q (Lemire, "Number parsing at a gigabyte per second", 2021); where these do not tell which double is closest,
the line is not plain.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled, compiled_with
from partsketch.common.linalg.lanes import place_of

_WORD = ir.IntType(64)

#: Powers of ten between which every number of nineteen digits is a double that is neither tiny nor infinite.
_LEAST_POWER, _LARGEST_POWER = -300, 280

#: Bytes behind the end of a text that are read, and come to nothing.
PADDING = 8

_MINUS, _POINT, _LINE_FEED, _RETURN, _QUOTE = (np.uint8(ord(sign)) for sign in '-.\n\r"')
_SMALL_E, _LARGE_E, _PLUS, _ZERO = (np.uint8(ord(sign)) for sign in "eE+0")

_ONE, _TEN = np.uint64(1), np.uint64(10)
_ZEROS = np.uint64(0x3030303030303030)
_ABOVE_NINE = np.uint64(0x7676767676767676)
_HIGH_BITS = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0x000000FF000000FF)
#: 100 + 10⁶·2³², and 1 + 10⁴·2³²: they bring four pairs of digits together.
_FIRST_PAIRS, _SECOND_PAIRS = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
_TENS = np.array([10**digits for digits in range(9)], dtype=np.uint64)
#: Bits of a product beyond the 55 that decide a double.
_BEYOND = np.uint64(2**9 - 1)
_FRACTION = np.uint64(2**52 - 1)
#: What no number is: the word of a double that is none.
_UNKNOWN = np.uint64(2**64 - 1)
#: Digits of which every number fits a word of 64 bits.
_MOST_DIGITS = 19

_inlined = compiled_with(inline="always")


def may_be_plain(separator: str, decimal: str) -> bool:
    """Tell whether plain numbers can be told from what is between them, on a machine with the lowest byte first."""
    return sys.byteorder == "little" and decimal == "." and not separator.isalnum() and separator not in '+-.\r\n"'


@cache
def powers_of_five() -> NDArray[np.uint64]:
    """Return the first 128 bits of 5^q for every power q, high word and low; those below one are rounded up."""
    words = []
    for power in range(_LEAST_POWER, _LARGEST_POWER + 1):
        five = 5 ** abs(power)
        # A power of two with 127 bits more than the divisor: a quotient of 128 bits.
        below_one = (1 << (five.bit_length() + 127)) // five + 1
        bits = five << 128 >> five.bit_length() if power >= 0 else below_one
        words.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(words, dtype=np.uint64)


@intrinsic
def _eight_bytes(typingctx, text, place):  # type: ignore[no-untyped-def]
    """Return eight bytes of text from a place on as one word."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load(place_of(builder, data, args[1], ir.IntType(8)), align=1, typ=_WORD)

    return types.uint64(text, types.int64), generate


@intrinsic
def _trailing_zeros(typingctx, word):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return builder.cttz(args[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


@intrinsic
def _leading_zeros(typingctx, word):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return builder.ctlz(args[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


@intrinsic
def _high_product(typingctx, first, second):  # type: ignore[no-untyped-def]
    """Return the upper half of the product of two words."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _WORD)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def _as_double(typingctx, word):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.uint64), generate


@_inlined
def _together(word):  # type: ignore[no-untyped-def]
    """Return the number of eight digits, one in each byte of a word, the first in the lowest."""
    word = word * _TEN + (word >> np.uint64(8))
    pairs = (word & _PAIRS) * _FIRST_PAIRS + ((word >> np.uint64(16)) & _PAIRS) * _SECOND_PAIRS
    return pairs >> np.uint64(32)


@_inlined
def _digits(text, place, number):  # type: ignore[no-untyped-def]
    """Return the place after a run of digits and the number with them behind; more than a word holds is not seen."""
    word = _eight_bytes(text, place) ^ _ZEROS
    # The lowest bit that is set is right: what a byte carries reaches only those behind it.
    others = ((word + _ABOVE_NINE) | word) & _HIGH_BITS
    # A branch, not a count of eight: the processor need not wait for it before it reads on.
    while not others:
        number = number * _TENS[8] + _together(word)
        place += 8
        word = _eight_bytes(text, place) ^ _ZEROS
        others = ((word + _ABOVE_NINE) | word) & _HIGH_BITS
    count = _trailing_zeros(others) >> 3
    # Digits that are missing become zeros in front. A word is moved out of itself in two steps: there is no other way.
    word = (word << np.uint64(8 * (7 - count))) << np.uint64(8)
    return place + count, number * _TENS[count] + _together(word)


@_inlined
def _closest(digits, power, powers):  # type: ignore[no-untyped-def]
    """Return the double closest to digits · 10^power as a word, without its sign, or `_UNKNOWN`."""
    zeros = _leading_zeros(digits)
    digits = digits << np.uint64(zeros)
    high_five = powers[power - _LEAST_POWER, 0]
    high, low = _high_product(digits, high_five), digits * high_five
    if (high & _BEYOND) == _BEYOND:
        more = _high_product(digits, powers[power - _LEAST_POWER, 1])
        low = low + more
        if more > low:
            high += _ONE
        if low == _UNKNOWN:
            return _UNKNOWN
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    mantissa = high >> shift
    # Half-way between two doubles, which only powers close to zero allow: the one that ends in a zero.
    if low <= _ONE and -4 <= power <= 23 and (mantissa & np.uint64(3)) == _ONE and (mantissa << shift) == high:
        mantissa &= ~_ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    # log₂ 10 is 217706 / 2¹⁶ as far as these powers need it.
    exponent = ((217706 * power) >> 16) + 63 + np.int64(top) - zeros + 1023
    if mantissa >> np.uint64(53):
        mantissa >>= _ONE
        exponent += 1
    return (mantissa & _FRACTION) | (np.uint64(exponent) << np.uint64(52))


def plain_batch(chunk: memoryview, separator: str, columns: Sequence[str], names: Sequence[str]) -> Any:
    """Return the record batch of columns of numbers in whole lines of a byte array, or None if these are not plain."""
    import pyarrow as pa

    text, size = chunk.obj, len(chunk)
    if not isinstance(text, bytearray) or len(text) < size + PADDING or text[size - 1] != _LINE_FEED:
        return None
    numbers = {name: number for number, name in enumerate(names)}
    places = np.array([numbers.get(name, -1) for name in columns], dtype=np.int64)
    # A name that is there twice, or not at all, is a matter for the other parser.
    if sorted(places[places >= 0].tolist()) != list(range(len(names))):
        return None
    out = np.empty((len(names), text.count(b"\n", 0, size)))
    rows = read_numbers(np.frombuffer(text, np.uint8), size, ord(separator), places, powers_of_five(), out)
    if rows < 0:
        return None
    arrays = [pa.Array.from_buffers(pa.float64(), rows, [None, pa.py_buffer(values)]) for values in out]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


@_inlined
def _number(text, place, powers):  # type: ignore[no-untyped-def]
    """Return the place after a number and its double as a word, or `_UNKNOWN` for what is not plain."""
    negative = text[place] == _MINUS
    place += np.int64(negative)
    begin = place
    place, digits = _digits(text, place, np.uint64(0))
    count, power = place - begin, np.int64(0)
    if count == 0:
        return place, _UNKNOWN
    if text[place] == _POINT:
        begin = place + 1
        place, digits = _digits(text, begin, digits)
        power = begin - place
        count -= power
        if power == 0:
            return place, _UNKNOWN
        if count > _MOST_DIGITS:
            # Zeros in front are none of them.
            begin = begin - 1 - (count + power)
            while count > 1 and (text[begin] == _ZERO or text[begin] == _POINT):
                count -= np.int64(text[begin] == _ZERO)
                begin += 1
    if count > _MOST_DIGITS:
        return place, _UNKNOWN
    if text[place] == _SMALL_E or text[place] == _LARGE_E:
        below = text[place + 1] == _MINUS
        place += 1 + np.int64(below or text[place + 1] == _PLUS)
        begin = place
        place, exponent = _digits(text, place, np.uint64(0))
        if place == begin or place - begin > 4:
            return place, _UNKNOWN
        power += -np.int64(exponent) if below else np.int64(exponent)
    word = np.uint64(0)
    if digits:
        if power < _LEAST_POWER or power > _LARGEST_POWER:
            return place, _UNKNOWN
        word = _closest(digits, power, powers)
    return place, word | (np.uint64(negative) << np.uint64(63))


@compiled
def read_numbers(text, size, separator, places, powers, out):  # type: ignore[no-untyped-def]
    """Fill the columns `out` with the numbers in lines of text, and return how many lines; −1 if one is not plain.

    `places` has the column of `out` of every column of the text, −1 for those that are not wanted. The last of `size`
    bytes ends a line, and behind it there are `PADDING` more.
    """
    place, row = np.int64(0), np.int64(0)
    while place < size:
        if row == out.shape[1]:
            return np.int64(-1)
        for column in range(places.size):
            if column:
                if text[place] != separator:
                    return np.int64(-1)
                place += 1
            if places[column] < 0:
                while text[place] != separator and text[place] != _LINE_FEED and text[place] != _RETURN:
                    if text[place] == _QUOTE:
                        return np.int64(-1)
                    place += 1
            else:
                place, word = _number(text, place, powers)
                if word == _UNKNOWN:
                    return np.int64(-1)
                out[places[column], row] = _as_double(word)
        place += np.int64(text[place] == _RETURN)
        if text[place] != _LINE_FEED:
            return np.int64(-1)
        place += 1
        row += 1
    return row
