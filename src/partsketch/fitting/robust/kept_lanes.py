"""Rows that are kept: eight at a time they become scores in registers, and go to their places, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from partsketch.common.linalg.lanes import (
    LANES,
    POINTER,
    ask_for,
    index_of,
    load_lanes,
    place_of,
    spread,
    transposed,
)

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)
#: Numbers of a column between those worked on and those that are asked for.
_COLUMN_AHEAD = 128
#: Numbers that a line has a multiple of.
HALF = LANES // 2


@intrinsic
def write_scores(  # type: ignore[no-untyped-def]
    typingctx, out, at, apart, addresses, row, ones, centre, scales, residuals, labels, weights
):
    """Write the scores of eight rows from `row` on, a line for each column, and behind them their labels.

    Lines are `apart` numbers apart in `out`, the first from `at` on.

    The columns at these addresses are features and one target. Of each its centre is taken off; times `residuals` they
    add up to what is left of the target, each product rounded once where it is added. That times a feature, its scale
    and the weight is a score. Where `ones` is 1, a column of ones comes first. No weights are ones.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        target, columns, middle, units, factors, numbers, heavy = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 3, 6, 7, 8, 9, 10)
        )
        at, apart, row, ones, integer = args[1], args[2], args[4], args[5], ir.IntType(64)
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")

        def number(array: Any, place: Any) -> Any:
            return spread(builder, builder.load(place_of(builder, array.data, place), typ=ir.DoubleType()))

        def line(place: Any) -> Any:
            return place_of(builder, target.data, builder.add(at, builder.mul(place, apart)))

        total = cgutils.alloca_once_value(builder, _ZEROS)
        with builder.if_then(builder.icmp_signed("!=", ones, index_of(0))):
            builder.store(number(factors, index_of(0)), total)
        with cgutils.for_range(builder, columns.nitems) as loop:
            place = builder.add(loop.index, ones)
            address = builder.load(place_of(builder, columns.data, loop.index, integer), typ=integer)
            column = builder.inttoptr(address, POINTER)
            ask_for(builder, column, builder.add(row, index_of(_COLUMN_AHEAD)))
            value = builder.fsub(load_lanes(builder, place_of(builder, column, row)), number(middle, place))
            builder.store(value, line(place), align=8)
            builder.store(builder.call(fused, [number(factors, place), value, builder.load(total)]), total)
        with builder.if_then(builder.icmp_signed("!=", heavy.nitems, index_of(0))):
            weight = load_lanes(builder, place_of(builder, heavy.data, row))
            builder.store(builder.fmul(builder.load(total), weight), total)
        left = builder.load(total)
        with builder.if_then(builder.icmp_signed("!=", ones, index_of(0))):
            builder.store(builder.fmul(left, number(units, index_of(0))), line(index_of(0)), align=8)
        # The target lies behind the features.
        behind = builder.sub(builder.add(columns.nitems, ones), index_of(1))
        with cgutils.for_range(builder, builder.sub(columns.nitems, index_of(1))) as loop:
            place = builder.add(loop.index, ones)
            value = builder.fmul(load_lanes(builder, line(place)), number(units, place))
            builder.store(builder.fmul(value, left), line(place), align=8)
        of_rows = builder.load(place_of(builder, numbers.data, row, integer), align=8, typ=_INTEGERS)
        builder.store(builder.sitofp(of_rows, _VECTOR), line(behind), align=8)
        return context.get_dummy_value()

    integer = types.intp
    given = (out, integer, integer, addresses, integer, integer, centre, scales, residuals, labels, weights)
    return types.void(*given), generate


def _placing(width: int) -> Any:
    """Return the operation that places so many columns of eight rows."""

    @intrinsic
    def place(typingctx, out, step, left, places, row, values, first, apart):  # type: ignore[no-untyped-def]
        """Write columns, which are `apart` numbers apart from values[first] on, into eight lines of `out`.

        They go to columns `left` and following of the lines places[row] and following, each `step` numbers long.
        """

        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            target, given, data = (
                context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3, 5)
            )
            _, step, left, _, row, _, first, apart = args
            columns = [_NOTHING] * LANES
            for column in range(width):
                at = builder.add(first, builder.mul(index_of(column), apart))
                columns[column] = load_lanes(builder, place_of(builder, data, at))
            some = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
            for lane, line in enumerate(transposed(builder, columns)):
                at = place_of(builder, given, builder.add(row, index_of(lane)), ir.IntType(64))
                place = builder.add(builder.mul(builder.load(at, typ=ir.IntType(64)), step), left)
                numbers = line if width == LANES else builder.shuffle_vector(line, _NOTHING, some)
                builder.store(numbers, place_of(builder, target, place), align=8)
            return context.get_dummy_value()

        integer = types.intp
        return types.void(out, integer, integer, places, integer, values, integer, integer), generate

    return place


place_eight, place_four = _placing(LANES), _placing(HALF)


@intrinsic
def add_line(typingctx, rows, at, count, sums, to):  # type: ignore[no-untyped-def]
    """Add the numbers from rows[at] on to those from sums[to] on: `count` of them, a multiple of four."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data, out = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3))
        _, at, count, _, to = args

        def add(offset: Any, kind: Any) -> None:
            place = place_of(builder, out, builder.add(to, offset))
            value = builder.load(place_of(builder, data, builder.add(at, offset)), align=8, typ=kind)
            builder.store(builder.fadd(builder.load(place, align=8, typ=kind), value), place, align=8)

        with cgutils.for_range(builder, builder.lshr(count, index_of(3))) as loop:
            add(builder.shl(loop.index, index_of(3)), _VECTOR)
        with builder.if_then(builder.icmp_signed("!=", builder.and_(count, index_of(HALF)), index_of(0))):
            add(builder.sub(count, index_of(HALF)), ir.VectorType(ir.DoubleType(), HALF))
        return context.get_dummy_value()

    integer = types.intp
    return types.void(rows, integer, integer, sums, integer), generate
