"""Gram matrices of many columns, from rows where they lie in memory.

Rows are copied a strip at a time into panels of eight columns, single numbers as doubles, weights applied and ones put
before them; a panel is multiplied with three others while 24 vectors of sums stay in registers. So there is no copy
of a tile, and no product that is made twice: of a pair of panels one product is made, and nothing is mirrored.

Plainly, the columns [1, features, targets] are copied into a tile, which NumPy multiplies with itself; it copies the
numbers again, and mirrors every product. On one thread, which has the memory to itself, that takes a fifth longer for
256 columns and a twentieth for 1,000 (`python -m benchmarks.kernels`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled, compiled_with
from partsketch.common.linalg.lanes import LANES, POINTER, index_of, load_lanes, place_of, spread

FloatArray = NDArray[np.float64]

# Compiled once, within what calls it.
_inlined = compiled_with(inline="always")

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)

#: Rows that are multiplied before sums leave the registers. It decides the order of summation.
STRIP_ROWS = 512

#: Panels that one is multiplied with at a time: 8 × 3 vectors of sums, of 32 registers.
_TOGETHER = 3
#: Panels that stay in the second-level cache while all others pass by; a multiple of the above.
_IN_CACHE = 12


def _number_type(single: bool) -> Any:
    return ir.FloatType() if single else ir.DoubleType()


def _reading(single: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the operations that read one number, and that copy eight of them, of rows of doubles or single numbers."""

    @intrinsic
    def number_at(typingctx, address, index):  # type: ignore[no-untyped-def]
        """Return the number at an index from an address on, as a double."""

        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            kind = _number_type(single)
            place = place_of(builder, builder.inttoptr(args[0], POINTER), args[1], kind)
            value = builder.load(place, typ=kind)
            return builder.fpext(value, ir.DoubleType()) if single else value

        return types.float64(types.int64, types.intp), generate

    @intrinsic
    def copy_eight(typingctx, out, at, address, index, scale):  # type: ignore[no-untyped-def]
        """Write eight numbers from an index on, times a scale, to out[at : at + 8]."""

        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            kind = _number_type(single)
            target = context.make_array(signature.args[0])(context, builder, args[0]).data
            place = place_of(builder, builder.inttoptr(args[2], POINTER), args[3], kind)
            values = builder.load(place, align=4 if single else 8, typ=ir.VectorType(kind, LANES))
            values = builder.fpext(values, _VECTOR) if single else values
            scaled = builder.fmul(values, spread(builder, args[4]))
            builder.store(scaled, place_of(builder, target, args[1]), align=8)
            return context.get_dummy_value()

        return types.void(out, types.intp, types.int64, types.intp, types.float64), generate

    read: Callable[..., Any] = number_at
    copy: Callable[..., Any] = copy_eight
    return read, copy


_double_at, _copy_eight_doubles = _reading(single=False)
_single_at, _copy_eight_singles = _reading(single=True)


def _products_of(panels: int) -> Callable[..., Any]:
    """Return the operation that multiplies a panel with so many others, which follow one another."""

    @intrinsic
    def add_products(typingctx, packed, left, right, apart, rows, out, at, step, fresh):  # type: ignore[no-untyped-def]
        """Add the products of the panel at packed[left] with those from packed[right] on, `apart` numbers apart.

        Each product is added, rounded once, row after row; the sums are added to eight rows of `out`, flat, from
        out[at] on, `step` apart; or written there, if `fresh`, whatever there was.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            data, target = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 5))
            _, left, right, apart, rows, _, at, step, fresh = args
            kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
            fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")
            sums = [[cgutils.alloca_once_value(builder, _ZEROS) for _ in range(panels)] for _ in range(LANES)]
            one = place_of(builder, data, left)
            others = [
                place_of(builder, data, builder.add(right, builder.mul(apart, index_of(number))))
                for number in range(panels)
            ]
            with cgutils.for_range(builder, rows) as loop:
                row = builder.shl(loop.index, index_of(3))
                vectors = [load_lanes(builder, place_of(builder, other, row)) for other in others]
                for lane, totals in enumerate(sums):
                    place = place_of(builder, one, builder.add(row, index_of(lane)))
                    factor = spread(builder, builder.load(place, typ=ir.DoubleType()))
                    for vector, total in zip(vectors, totals, strict=True):
                        builder.store(builder.call(fused, [factor, vector, builder.load(total)]), total)
            for lane, totals in enumerate(sums):
                begin = builder.add(at, builder.mul(step, index_of(lane)))
                for number, total in enumerate(totals):
                    place = place_of(builder, target, builder.add(begin, index_of(LANES * number)))
                    before = builder.select(fresh, _ZEROS, load_lanes(builder, place))
                    builder.store(builder.fadd(before, builder.load(total)), place, align=8)
            return context.get_dummy_value()

        integer = types.intp
        return types.void(packed, integer, integer, integer, integer, out, integer, integer, types.boolean), generate

    operation: Callable[..., Any] = add_products
    return operation


_add_one, _add_two, _add_three = (_products_of(panels) for panels in (1, 2, 3))


@_inlined
def _pack(address, single, columns, targets, target_count, roots, begin, end, ones, packed):  # type: ignore[no-untyped-def]
    """Copy rows begin to end of [1, features, targets], times their roots, into panels; the padding is zero already."""
    # Panels whose distance is no power of two do not compete for the same few places in the cache.
    apart = (STRIP_ROWS + 1) * LANES
    # Panels from `first` to `last` hold features alone; the other columns are copied one by one.
    first, last = (ones + LANES - 1) // LANES, (ones + columns) // LANES
    before = first * LANES
    left_out = last * LANES - before
    for row in range(begin, end):
        at, start = (row - begin) * LANES, row * columns - ones
        root = roots[row] if roots.size else 1.0
        for panel in range(first, last):
            if single:
                _copy_eight_singles(packed, panel * apart + at, address, start + panel * LANES, root)
            else:
                _copy_eight_doubles(packed, panel * apart + at, address, start + panel * LANES, root)
        for number in range(ones + columns + target_count - left_out):
            column = number if number < before else number + left_out
            if column < ones:
                value = 1.0
            elif column >= ones + columns:
                value = _double_at(targets, row * target_count + column - ones - columns)
            elif single:
                value = _single_at(address, start + column)
            else:
                value = _double_at(address, start + column)
            packed[column // LANES * apart + at + column % LANES] = root * value


@compiled
def gram_of_many(
    address: int,
    single: bool,
    columns: int,
    targets: int,
    target_count: int,
    roots: FloatArray,
    first: int,
    last: int,
    ones: int,
    packed: FloatArray,
    out: FloatArray,
) -> None:
    """Write the upper triangle of the Gram matrix of the columns [1, features, targets] of rows first to last.

    Features and targets lie at their addresses, row after row, features as single numbers or as doubles; `roots` are
    square roots of weights, empty where every row counts once. `out` is padded to whole panels; below the diagonal
    some of it is written, and none of it is to be read. `packed` is room for a strip (`room_for_strip`), whose
    padding is zero.
    """
    apart, step = (STRIP_ROWS + 1) * LANES, out.shape[1]
    panels, flat = step // LANES, out.reshape(-1)
    if first == last:
        for i in range(flat.size):
            flat[i] = 0.0
    for begin in range(first, last, STRIP_ROWS):
        end = min(begin + STRIP_ROWS, last)
        _pack(address, single, columns, targets, target_count, roots, begin, end, ones, packed)
        for top in range(0, panels, _IN_CACHE):
            for right in range(top, panels, _TOGETHER):
                stop = min(right + _TOGETHER, panels)
                for left in range(top, min(top + _IN_CACHE, stop)):
                    # Panels to the left of this one have been multiplied with it.
                    here = max(right, left)
                    at = left * LANES * step + here * LANES
                    if stop - here == 3:
                        _add_three(
                            packed, left * apart, here * apart, apart, end - begin, flat, at, step, begin == first
                        )
                    elif stop - here == 2:
                        _add_two(packed, left * apart, here * apart, apart, end - begin, flat, at, step, begin == first)
                    else:
                        _add_one(packed, left * apart, here * apart, apart, end - begin, flat, at, step, begin == first)


@compiled
def add_halves(total: FloatArray, halves: FloatArray, scale: FloatArray, out: FloatArray, begin: int, end: int) -> None:
    """Write total + D (A + B) D on and above the diagonal, in some rows, for the two halves of a product."""
    for i in range(begin, end):
        for j in range(i, scale.size):
            out[i, j] = total[i, j] + (halves[0, i, j] + halves[1, i, j]) * (scale[i] * scale[j])


def room_for_strip(padded: int) -> FloatArray:
    """Return room for a strip of so many columns, whole panels."""
    return np.zeros(padded * (STRIP_ROWS + 1))
