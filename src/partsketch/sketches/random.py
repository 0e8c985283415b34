"""Random numbers as a pure function of where they are used: Philox4x32-10 counters, Box–Muller normals.

A number depends on (key, stream, row, column) and on nothing else, so a sketch is the same for any block size, thread
count, engine or order of arrival. Only additions, multiplications, divisions and square roots of IEEE doubles are used,
each rounded on its own (no fused operations), hence the same bits on every processor. The logarithm and the sine are
written as polynomials because calls to the mathematical library would stop the compiler from using vector
instructions. Their coefficients are minimax for a relative error of 1e-13: a 32-bit word places a number no more finely
than 1e-10, and every further term would cost time in what is half the work of a Gaussian sketch.

The counter holds row (64 bits), column group (32 bits) and stream (32 bits); the key holds the seed and the purpose.
NumPy's generators take seven times as long for a normal number (`python -m benchmarks.kernels`), and give the n-th of a
sequence instead of that of a row and column.

Philox: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled, compiled_with

#: Purposes that need random numbers of their own under one seed; others have a number made of their name.
PURPOSES = {
    "gaussian": 0,
    "shuffle": 1,
    "sparse_sign": 2,
    "count_sketch": 3,
    "row_sample": 4,
    "leverage_sample": 5,
    "leverage_directions": 6,
    "srht": 7,
    "orthogonal": 8,
}

COLUMNS_PER_COUNTER = 4

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
LOW_WORD = np.uint64(0xFFFFFFFF)
WORD_BITS = np.uint64(32)

_TWO_PI_PER_COUNT = 2.0 * np.pi / 2.0**32


_inlined = compiled_with(inline="always")


@_inlined
def philox(x0, x1, x2, x3, key0, key1):  # type: ignore[no-untyped-def]
    """Ten rounds on four 32-bit words held in 64-bit integers, so that one multiplication gives both halves."""
    for _ in range(10):
        product0 = x0 * _MULTIPLIER_0
        product1 = x2 * _MULTIPLIER_1
        x0 = (product1 >> WORD_BITS) ^ x1 ^ key0
        x1 = product1 & LOW_WORD
        x2 = (product0 >> WORD_BITS) ^ x3 ^ key1
        x3 = product0 & LOW_WORD
        key0 = (key0 + _WEYL_0) & LOW_WORD
        key1 = (key1 + _WEYL_1) & LOW_WORD
    return x0, x1, x2, x3


@_inlined
def _split(word):  # type: ignore[no-untyped-def]
    """Return exponent e and fraction f with (word + 1/2)/2³² = 2^(e − 32) (1 + f), 1 + f in [√½, √2)."""
    value = np.float64(np.int64(word)) + 0.5
    # Shift the binade so that the mantissa lies around one, where the polynomial of the logarithm is centred.
    bits = np.float64(value).view(np.int64) + np.int64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    exponent = np.float64((bits >> np.int64(52)) - np.int64(1023))
    bits = (bits & np.int64(0x000FFFFFFFFFFFFF)) + np.int64(0x3FE6A09E667F3BCD)
    return exponent, np.int64(bits).view(np.float64) - 1.0


@_inlined
def _join(exponent, s):  # type: ignore[no-untyped-def]
    """Return −log of what `_split` split, given s = f/(2 + f)."""
    z = s * s
    tail = 0.2857210905452986 + z * (0.22176194191624266 + z * 0.19584057475549496)
    log_mantissa = s * (2.0 + z * (0.6666666667579997 + z * (0.39999995622518464 + z * tail)))
    return (32.0 - exponent) * 0.6931471805599453094 - log_mantissa


@_inlined
def negative_logs(first, second):  # type: ignore[no-untyped-def]
    """Return −log((word + 1/2)/2³²) of two 32-bit words, with one division between them: divisions are slow."""
    exponent0, fraction0 = _split(first)
    exponent1, fraction1 = _split(second)
    denominator0, denominator1 = 2.0 + fraction0, 2.0 + fraction1
    inverse = 1.0 / (denominator0 * denominator1)
    return (
        _join(exponent0, fraction0 * (denominator1 * inverse)),
        _join(exponent1, fraction1 * (denominator0 * inverse)),
    )


@_inlined
def _with_sign(value, quadrant):  # type: ignore[no-untyped-def]
    """Negate a number in quadrants 2 and 3, in its sign bit."""
    sign = (quadrant << np.int64(62)) & np.int64(-0x8000000000000000)
    return np.int64(np.float64(value).view(np.int64) ^ sign).view(np.float64)


@_inlined
def sine_cosine(word):  # type: ignore[no-untyped-def]
    """Return sine and cosine of 2π(word + 1/2)/2³² for a 32-bit word."""
    signed = np.int64(word)
    quadrant = (signed + np.int64(0x20000000)) >> np.int64(30)
    angle = (np.float64(signed - (quadrant << np.int64(30))) + 0.5) * _TWO_PI_PER_COUNT
    z = angle * angle
    tail = -0.00019841263824426177 + z * (2.7555358088163894e-06 + z * -2.4761677894170513e-08)
    sine = angle + angle * z * (-0.16666666666631608 + z * (0.008333333325274231 + z * tail))
    tail = -0.0013888883753424646 + z * (2.479952001326966e-05 + z * -2.7210238180320954e-07)
    cosine = 1.0 + z * (-0.5 + z * (0.04166666662282818 + z * tail))
    odd = (quadrant & np.int64(1)) == np.int64(1)
    return (
        _with_sign(cosine if odd else sine, quadrant),
        _with_sign(sine if odd else cosine, quadrant + np.int64(1)),
    )


@compiled
def make_normals(key0, key1, stream, rows, first_group, scale, out):  # type: ignore[no-untyped-def]
    """Fill groups of four rows of `out`, from a group on, with the normal numbers of these row numbers."""
    doubled = 2.0 * scale * scale
    for group in range(out.shape[0] // 4):
        x2_start = np.uint64(first_group + group) & LOW_WORD
        row0 = out[4 * group]
        row1 = out[4 * group + 1]
        row2 = out[4 * group + 2]
        row3 = out[4 * group + 3]
        for r in range(rows.shape[0]):
            row = np.uint64(rows[r])
            x0, x1, x2, x3 = philox(row & LOW_WORD, row >> WORD_BITS, x2_start, stream, key0, key1)
            negative_log0, negative_log1 = negative_logs(x0, x2)
            radius = np.sqrt(negative_log0 * doubled)
            sine, cosine = sine_cosine(x1)
            row0[r] = radius * cosine
            row1[r] = radius * sine
            radius = np.sqrt(negative_log1 * doubled)
            sine, cosine = sine_cosine(x3)
            row2[r] = radius * cosine
            row3[r] = radius * sine


@compiled
def _fill_words(key0, key1, stream, rows, out):  # type: ignore[no-untyped-def]
    for r in range(rows.shape[0]):
        row = np.uint64(rows[r])
        x0, x1, _x2, _x3 = philox(row & LOW_WORD, row >> WORD_BITS, np.uint64(0), stream, key0, key1)
        out[r] = (x1 << WORD_BITS) | x0


@compiled
def fill_single_words(key0, key1, stream, row_numbers, first, words):  # type: ignore[no-untyped-def]
    """Fill `words` with one 32-bit word per row, four neighbouring rows sharing a counter; return where they begin.

    Rows are counted from `first` on; their numbers rise. `words` has room for six more.
    """
    count = row_numbers.shape[0]
    begin, end = row_numbers[0] - first, row_numbers[count - 1] - first
    if end - begin != count - 1:
        for i in range(count):
            row = np.uint64((row_numbers[i] - first) >> 2)
            drawn = philox(row & LOW_WORD, row >> WORD_BITS, np.uint64(0), stream, key0, key1)
            words[i] = drawn[(row_numbers[i] - first) & 3]
        return np.int64(0)
    for group in range(begin >> 2, (end >> 2) + 1):
        row = np.uint64(group)
        x0, x1, x2, x3 = philox(row & LOW_WORD, row >> WORD_BITS, np.uint64(0), stream, key0, key1)
        at = 4 * (group - (begin >> 2))
        words[at] = x0
        words[at + 1] = x1
        words[at + 2] = x2
        words[at + 3] = x3
    return begin & 3


@compiled
def philox_words(x0, x1, x2, x3, key0, key1):  # type: ignore[no-untyped-def]
    """Return the four output words of Philox4x32-10 for four counter words and two key words."""
    return philox(x0, x1, x2, x3, key0, key1)


def _purpose_number(purpose: str) -> int:
    """Return a number of 32 bits for a purpose: one from the list, or 2³¹ and above for any other name."""
    if purpose in PURPOSES:
        return PURPOSES[purpose]
    return 2**31 | zlib.crc32(purpose.encode())


# Asked for every segment.
@lru_cache(maxsize=256)
def derive_key(seed: int, purpose: str) -> tuple[np.uint64, np.uint64]:
    """Return the two key words for a seed (0 ≤ seed < 2⁶⁴) and a purpose.

    The purpose is mixed in by one evaluation of Philox itself, so that the numbers of two purposes, and of two seeds,
    are unrelated.
    """
    low, high = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    words = philox_words(np.uint64(_purpose_number(purpose)), np.uint64(0), np.uint64(0), np.uint64(0), low, high)
    return np.uint64(words[0]), np.uint64(words[1])


def fill_normals(
    key: tuple[np.uint64, np.uint64],
    stream: int,
    rows: NDArray[np.int64],
    scale: float,
    out: NDArray[np.float64],
    first_column: int = 0,
) -> None:
    """Fill `out[c, r]` with scale · N(0, 1) for column first_column + c and row number rows[r].

    The number of rows of `out` and `first_column` are multiples of four: one counter gives four columns.
    """
    make_normals(key[0], key[1], np.uint64(stream), rows, first_column // COLUMNS_PER_COUNTER, scale, out)


def random_words(key: tuple[np.uint64, np.uint64], stream: int, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return one uniform 64-bit word for each row number."""
    out = np.empty(rows.shape[0], dtype=np.uint64)
    _fill_words(key[0], key[1], np.uint64(stream), rows, out)
    return out
