"""Four rows at a time: their products with a vector, and their sum with a number for each.

Memory is asked for the rows that follow all the while, in the products and in the sum, so that it never waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from partsketch.common.linalg.lanes import (
    LANES,
    ask_for,
    first_lanes,
    load_lanes,
    masked_load,
    masked_store,
    place_of,
    spread,
)

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_INDEX = ir.IntType(64)
_FOUR_NUMBERS, _FOUR_PLACES = types.UniTuple(types.float64, 4), types.UniTuple(types.intp, 4)


def _multiply_add(builder: Any, first: Any, second: Any, total: Any) -> Any:
    """Return first · second + total, rounded once where the processor does so."""
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(
        cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v8f64"), [first, second, total]
    )


@intrinsic
def four_products(typingctx, values, starts, width, vector, at, ahead):  # type: ignore[no-untyped-def]
    """Return the products of values[s : s + width], for four starts s, with vector[at : at + width], all flat.

    Every row is summed alike: eight sums, one per lane, which are added in their order at the end. Of the numbers
    `ahead` of the first two rows memory is asked for.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        given = context.make_array(signature.args[3])(context, builder, args[3]).data
        starts = cgutils.unpack_tuple(builder, args[1])
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in starts]

        def add(column: Any, load: Callable[[Any], Any]) -> None:
            shared = load(place_of(builder, given, builder.add(args[4], column)))
            for total, start in zip(sums, starts, strict=True):
                row = load(place_of(builder, data, builder.add(start, column)))
                builder.store(_multiply_add(builder, row, shared, builder.load(total)), total)

        blocks = builder.lshr(args[2], ir.Constant(_INDEX, 3))
        with cgutils.for_range(builder, blocks) as loop:
            column = builder.shl(loop.index, ir.Constant(_INDEX, 3))
            for start in starts[:2]:
                ask_for(builder, data, builder.add(builder.add(start, column), args[5]))
            add(column, lambda pointer: load_lanes(builder, pointer))
        done = builder.shl(blocks, ir.Constant(_INDEX, 3))
        rest = builder.sub(args[2], done)
        with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(_INDEX, 0))):
            mask = first_lanes(builder, rest)
            add(done, lambda pointer: masked_load(builder, pointer, mask))
        kind = ir.FunctionType(ir.DoubleType(), [ir.DoubleType(), _VECTOR])
        reduce = cgutils.get_or_insert_function(builder.module, kind, "llvm.vector.reduce.fadd.v8f64")
        negative_zero = ir.Constant(ir.DoubleType(), -0.0)
        products = [builder.call(reduce, [negative_zero, builder.load(total)]) for total in sums]
        return cgutils.pack_array(builder, products)

    integer = types.intp
    return _FOUR_NUMBERS(values, _FOUR_PLACES, integer, vector, integer, integer), generate


@intrinsic
def add_four(typingctx, sums, values, start, width, products, ahead):  # type: ignore[no-untyped-def]
    """Add products[r] times row r, of four rows of `width` that lie one after another from `start` on, to sums.

    Of the numbers `ahead` of the last two rows memory is asked for.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out = context.make_array(signature.args[0])(context, builder, args[0]).data
        data = context.make_array(signature.args[1])(context, builder, args[1]).data
        starts = [args[2]]
        for _ in range(3):
            starts.append(builder.add(starts[-1], args[3]))
        products = [spread(builder, product) for product in cgutils.unpack_tuple(builder, args[4])]

        def add(column: Any, load: Callable[[Any], Any]) -> tuple[Any, Any]:
            place = place_of(builder, out, column)
            total = load(place)
            for start, product in zip(starts, products, strict=True):
                row = load(place_of(builder, data, builder.add(start, column)))
                total = _multiply_add(builder, row, product, total)
            return total, place

        blocks = builder.lshr(args[3], ir.Constant(_INDEX, 3))
        with cgutils.for_range(builder, blocks) as loop:
            column = builder.shl(loop.index, ir.Constant(_INDEX, 3))
            for start in starts[2:]:
                ask_for(builder, data, builder.add(builder.add(start, column), args[5]))
            total, place = add(column, lambda pointer: load_lanes(builder, pointer))
            builder.store(total, place, align=8)
        done = builder.shl(blocks, ir.Constant(_INDEX, 3))
        rest = builder.sub(args[3], done)
        with builder.if_then(builder.icmp_signed(">", rest, ir.Constant(_INDEX, 0))):
            mask = first_lanes(builder, rest)
            total, place = add(done, lambda pointer: masked_load(builder, pointer, mask))
            masked_store(builder, total, place, mask)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(sums, values, integer, integer, _FOUR_NUMBERS, integer), generate
