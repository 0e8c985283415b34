"""Compiled work on rows that are held column by column, each column anywhere in memory.

Arrow delivers every column of a batch in a buffer of its own. These kernels take the addresses of the columns, so that
a Gram matrix is made from the buffers as they are, and a tile is filled by one call that holds no interpreter lock.
Rows that lie one after another are turned into columns a strip at a time.

Plainly, the columns are put together in one matrix, which NumPy multiplies with itself: seven times as long (65,536
rows of 40 columns, `python -m benchmarks.kernels`), a copy of everything, and the sum of all rows at once, of which
nothing can be trusted or mistrusted tile by tile.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled, compiled_with
from partsketch.common.linalg.group_products import GROUP, group_products, lanes
from partsketch.common.linalg.lanes import LANES, transpose_eight, turn_columns

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Compiled once, within what calls them: a function of its own would be compiled, and then again with each caller.
_inlined = compiled_with(inline="always")

#: Rows that are read again for every pair of groups: those of eight columns stay in the first-level cache.
STRIP_BITS = 9
STRIP_ROWS = 1 << STRIP_BITS

#: Rows that are multiplied at a time.
_LANES = lanes()

#: Rows of eight columns that are turned at once, before the next eight: the rows stay in the second-level cache.
_TURNED_ROWS = 256

#: Rows that a transposing copy takes at once: whole cache lines of every column, from rows that stay in the cache.
_ROWS_AT_ONCE = 16


@intrinsic
def pointer_to(typing_context: Any, address: Any) -> Any:
    """Turn an address into a pointer to doubles; numba has no such cast of its own."""
    signature = types.CPointer(types.float64)(types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return signature, generate


@intrinsic
def address_of(typing_context: Any, array: Any) -> Any:
    """Return the address of the first entry of an array."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.int64))

    return types.int64(array), generate


@_inlined
def add_products(addresses: IntArray, begin: int, rows: int, ahead: int, share: int, out: FloatArray) -> None:
    """Add the upper triangle of the Gram matrix of some rows of the columns at these addresses, by groups of four.

    Meanwhile `share` bytes from the address `ahead` on are asked for with each pair of groups; where there is no such
    address, the next rows of a column with each.
    """
    number = 0
    for i in range(0, addresses.size, GROUP):
        for j in range(i, addresses.size, GROUP):
            here, apart = ahead + number * share, share * _LANES >> STRIP_BITS
            if ahead == 0:
                column = number if number < addresses.size else 0
                here, apart = addresses[column] + 8 * (begin + rows), 8 * _LANES
            group_products(addresses, i, j, begin, rows, here, apart, out)
            number += 1


@_inlined
def _clear(out: FloatArray) -> None:
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0


@_inlined
def _mirror(out: FloatArray) -> None:
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = out[j, i]


@compiled
def gram_of_columns(addresses: IntArray, rows: int, out: FloatArray) -> None:
    """Write the Gram matrix of the columns at these addresses; their number is a multiple of four.

    For up to about a hundred columns this takes half the time of a general library, which packs its operands first.
    """
    _clear(out)
    for begin in range(0, rows, STRIP_ROWS):
        # Compared, not `min`: that is one more function to compile.
        left = rows - begin
        add_products(addresses, begin, left if left < STRIP_ROWS else STRIP_ROWS, 0, 0, out)
    _mirror(out)


@compiled
def _copy_transposed(rows: FloatArray, begin: int, end: int, address: int, step: int) -> None:
    """Write column j of rows from begin to end to the address and the j · step numbers from there on."""
    height, width = end - begin, rows.shape[1]
    first = begin * width
    out = numba.carray(pointer_to(address), max(0, (width - 1) * step + height))
    flat = rows.reshape(-1)
    whole = height & -LANES if width >= LANES else 0
    for row in range(0, whole, LANES):
        for left in range(0, width, LANES):
            # The last eight columns may have been written in part: again, with the same numbers.
            column = min(left, width - LANES)
            transpose_eight(out, column * step + row, step, flat, first + row * width + column, width)
    for top in range(whole, height, _ROWS_AT_ONCE):
        bottom = min(top + _ROWS_AT_ONCE, height)
        for column in range(width):
            for row in range(top, bottom):
                out[column * step + row] = flat[first + row * width + column]


@compiled
def gram_of_rows(
    features: FloatArray,
    targets: FloatArray,
    roots: FloatArray,
    first: int,
    last: int,
    ones: int,
    strip: FloatArray,
    addresses: IntArray,
    out: FloatArray,
) -> None:
    """Write the Gram matrix of the columns [1, features, targets] of rows that lie one after another, first to last.

    `roots` are the square roots of the weights of the rows; empty when every row counts once. The bits are those of
    `gram_of_columns`. `strip` has room for the columns of `STRIP_ROWS` rows, one after another; the padding, its last
    columns, is zero; `addresses` are those of its columns.
    """
    # Loops, not slices: those take the compiler ten times as long.
    width, step = features.shape[1], strip.shape[1]
    groups = addresses.size // GROUP
    start, share = address_of(features), 16 * STRIP_ROWS * width // (groups * (groups + 1))
    _clear(out)
    for begin in range(first, last, STRIP_ROWS):
        end = min(begin + STRIP_ROWS, last)
        for column in range(ones):
            for row in range(end - begin):
                strip[column, row] = 1.0
        _copy_transposed(features, begin, end, addresses[ones], step)
        _copy_transposed(targets, begin, end, addresses[ones] + 8 * width * step, step)
        if roots.shape[0]:
            for column in range(ones + width + targets.shape[1]):
                for row in range(begin, end):
                    strip[column, row - begin] *= roots[row]
        add_products(addresses, np.int64(0), end - begin, start + 8 * width * end, share, out)
    _mirror(out)


@compiled
def _copy_columns(sources: IntArray, targets: IntArray, begin: int, count: int) -> None:
    for column in range(sources.size):
        values = pointer_to(sources[column] + 8 * begin)
        out = pointer_to(targets[column])
        for row in range(count):
            out[row] = values[row]


@compiled
def _copy_columns_to_rows(sources: IntArray, begin: int, address: int, step: int, height: int) -> None:
    """Write rows to the address, `step` numbers apart: eight by eight numbers are turned in registers."""
    width = sources.size
    out = numba.carray(pointer_to(address), max(0, (height - 1) * step + width))
    whole = height & -LANES if width >= LANES else 0
    for top in range(0, whole, _TURNED_ROWS):
        for left in range(0, width, LANES):
            # The last eight columns may have been written in part: again, with the same numbers.
            column = min(left, width - LANES)
            for row in range(top, min(top + _TURNED_ROWS, whole), LANES):
                turn_columns(out, row * step + column, step, sources, column, begin + row)
    for column in range(width):
        values = numba.carray(pointer_to(sources[column] + 8 * begin), height)
        for row in range(whole, height):
            out[row * step + column] = values[row]


def copy_columns(addresses: IntArray, begin: int, out: FloatArray) -> None:
    """Copy the rows from `begin` on of the columns at these addresses, one row of `out` each.

    `out` has unit stride along either axis.
    """
    if out.strides[1] == 8:
        _copy_columns(addresses, column_addresses(out), begin, out.shape[1])
    else:
        address = out.__array_interface__["data"][0]
        _copy_columns_to_rows(addresses, begin, address, out.strides[1] // 8, out.shape[1])


def copy_transposed(rows: NDArray[np.generic], out: FloatArray) -> None:
    """Copy rows into `out`, one row of `out` per column; rows of doubles that lie one after another go quickest."""
    if rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned and out.strides[1] == 8:
        _copy_transposed(rows, 0, len(rows), out.__array_interface__["data"][0], out.strides[0] // 8)
    else:
        out[...] = rows.T


def values_at(address: int, count: int) -> FloatArray:
    """Return the doubles at an address, where they lie."""
    return np.asarray(np.ctypeslib.as_array((ctypes.c_double * count).from_address(address)))


def column_addresses(columns: FloatArray) -> IntArray:
    """Return the addresses of the rows of a matrix that holds one column each."""
    start = columns.__array_interface__["data"][0]
    return np.asarray(start + columns.strides[0] * np.arange(columns.shape[0], dtype=np.int64))
