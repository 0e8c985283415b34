"""Sums of doubles without rounding: mantissas are added as whole numbers, those of each exponent by themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Exponents that doubles have, and bits of the lower half of a mantissa: sums of 2³⁵ halves fit into 64 bits.
EXPONENTS, HALF_BITS = 2048, 26
_MASK = (1 << HALF_BITS) - 1
_SPLITTER = 134217729.0  # 2²⁷ + 1 cuts a double into halves whose products are exact.


@compiled
def _add(value_bits: int, sums: IntArray) -> None:
    exponent = (value_bits >> 52) & 0x7FF
    mantissa = value_bits & 0xFFFFFFFFFFFFF
    if exponent:
        mantissa |= 1 << 52
    if value_bits < 0:
        sums[0, exponent] -= mantissa >> HALF_BITS
        sums[1, exponent] -= mantissa & _MASK
    else:
        sums[0, exponent] += mantissa >> HALF_BITS
        sums[1, exponent] += mantissa & _MASK


@compiled
def add_values(bits: IntArray, sums: IntArray) -> None:
    """Add doubles, given by their bits."""
    for row in range(len(bits)):
        _add(bits[row], sums)


@compiled
def square_parts(x: FloatArray, high: FloatArray, low: FloatArray) -> None:
    """Write the squares of doubles as sums of two, which is exact."""
    for row in range(len(x)):
        value = x[row]
        scaled = _SPLITTER * value
        upper = scaled - (scaled - value)
        lower = value - upper
        high[row] = value * value
        low[row] = ((upper * upper - high[row]) + 2.0 * upper * lower) + lower * lower


@compiled
def write_keys(x: FloatArray, keys: IntArray) -> tuple[float, float]:
    """Write whole numbers in the order of doubles, zero having one sign; return the least and largest double."""
    smallest, largest = np.inf, -np.inf
    doubles = keys.view(np.float64)
    for row in range(len(x)):
        smallest, largest = min(smallest, x[row]), max(largest, x[row])
        # Adding zero takes its sign off.
        doubles[row] = x[row] + 0.0
        if keys[row] < 0:
            keys[row] = np.int64(-(2**63)) - keys[row] - 1
    return smallest, largest


@compiled
def count_keys(keys, first, shift, counts):  # type: ignore[no-untyped-def]
    """Count keys by the bin that they lie in: their distance from the first, without its last bits."""
    for key in keys:
        counts[(key - first) >> shift] += 1
