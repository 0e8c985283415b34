"""The score of one row, in vectors: what it adds to the sums of its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from partsketch.common.linalg.lanes import (
    LANES,
    first_lanes,
    index_of,
    load_lanes,
    masked_load,
    masked_store,
    place_of,
    spread,
    sum_of_lanes,
)

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)


@intrinsic
def add_score(typingctx, rows, at, centre, coefficients, first, count, weight, sums, to):  # type: ignore[no-untyped-def]
    """Add weight · (v · b) v to the numbers from sums[to] on, v the row at rows[at] less the centre, b coefficients.

    All have `count` times eight numbers; b begins at coefficients[first]. Products are rounded once where they are
    added.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data, middle, scales, out = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 3, 7)
        )
        _, at, _, _, first, count, weight, _, to = args
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")

        def moved(offset: Any) -> Any:
            value = load_lanes(builder, place_of(builder, data, builder.add(at, offset)))
            return builder.fsub(value, load_lanes(builder, place_of(builder, middle, offset)))

        total = cgutils.alloca_once_value(builder, _ZEROS)
        with cgutils.for_range(builder, count) as loop:
            offset = builder.shl(loop.index, index_of(3))
            scale = load_lanes(builder, place_of(builder, scales, builder.add(first, offset)))
            builder.store(builder.call(fused, [moved(offset), scale, builder.load(total)]), total)
        factor = spread(builder, builder.fmul(weight, sum_of_lanes(builder, builder.load(total))))
        with cgutils.for_range(builder, count) as loop:
            offset = builder.shl(loop.index, index_of(3))
            place = place_of(builder, out, builder.add(to, offset))
            builder.store(builder.call(fused, [factor, moved(offset), load_lanes(builder, place)]), place, align=8)
        return context.get_dummy_value()

    integer = types.intp
    given = (rows, integer, centre, coefficients, integer, integer, types.float64, sums, integer)
    return types.void(*given), generate


@intrinsic
def add_scaled_row(typingctx, rows, at, count, scale, sums, to):  # type: ignore[no-untyped-def]
    """Add scale times the `count` numbers from rows[at] on to those from sums[to] on, rounded once each."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data, out = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 4))
        _, at, count, scale, _, to = args
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")
        factor = spread(builder, scale)
        blocks = builder.lshr(builder.add(count, index_of(LANES - 1)), index_of(3))
        with cgutils.for_range(builder, blocks) as loop:
            offset = builder.shl(loop.index, index_of(3))
            mask = first_lanes(builder, builder.sub(count, offset))
            value = masked_load(builder, place_of(builder, data, builder.add(at, offset)), mask)
            place = place_of(builder, out, builder.add(to, offset))
            added = builder.call(fused, [factor, value, masked_load(builder, place, mask)])
            masked_store(builder, added, place, mask)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(rows, integer, integer, types.float64, sums, integer), generate


@intrinsic
def product_of_rows(typingctx, rows, one, other, count):  # type: ignore[no-untyped-def]
    """Return the sum of products of the `count` numbers from rows[one] on and those from rows[other] on."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")
        total = cgutils.alloca_once_value(builder, _ZEROS)
        blocks = builder.lshr(builder.add(args[3], index_of(LANES - 1)), index_of(3))
        with cgutils.for_range(builder, blocks) as loop:
            offset = builder.shl(loop.index, index_of(3))
            mask = first_lanes(builder, builder.sub(args[3], offset))
            first, second = (
                masked_load(builder, place_of(builder, data, builder.add(args[i], offset)), mask) for i in (1, 2)
            )
            builder.store(builder.call(fused, [first, second, builder.load(total)]), total)
        return sum_of_lanes(builder, builder.load(total))

    integer = types.intp
    return types.float64(rows, integer, integer, integer), generate


#: Vectors of a line that are multiplied at once: sums of several hide the time that each takes.
_SIDE_BY_SIDE = 4
#: Numbers that `write_products` writes.
PRODUCTS = _SIDE_BY_SIDE * LANES


@intrinsic
def write_products(typingctx, out, at, factors, first, values, start, step, count):  # type: ignore[no-untyped-def]
    """Write a sum of products to the numbers from out[at] on: each is rounded once, line after line.

    Factors lie one after another from factors[first] on, lines of values `step` apart from values[start] on.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        target, scales, data = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 4)
        )
        _, at, _, first, _, start, step, count = args
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")
        totals = [cgutils.alloca_once_value(builder, _ZEROS) for _ in range(_SIDE_BY_SIDE)]
        with cgutils.for_range(builder, count) as loop:
            factor = builder.load(place_of(builder, scales, builder.add(first, loop.index)), typ=ir.DoubleType())
            spread_factor = spread(builder, factor)
            place = builder.add(start, builder.mul(loop.index, step))
            for number, total in enumerate(totals):
                line = load_lanes(builder, place_of(builder, data, builder.add(place, index_of(number * LANES))))
                builder.store(builder.call(fused, [spread_factor, line, builder.load(total)]), total)
        for number, total in enumerate(totals):
            place = place_of(builder, target, builder.add(at, index_of(number * LANES)))
            builder.store(builder.load(total), place, align=8)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, factors, integer, values, integer, integer, integer), generate
