"""Vector operations on rows of groups: rows are padded to whole vectors, and products are summed row after row."""

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
    sum_of_lanes,
    transposed,
)

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_ZEROS = ir.Constant(_VECTOR, [0.0] * LANES)

#: Numbers of a column between those worked on and those that are asked for.
_COLUMN_AHEAD = 128


@intrinsic
def see_block(typingctx, values, at, count, step, block, seen):  # type: ignore[no-untyped-def]
    """Note eight columns of some rows in `seen`; rows begin at `at` and are `step` numbers apart.

    `seen` is flat, and holds three rows: the least values, the largest, and zeros, which are not zeros where values are
    not finite.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data, noted = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 5))
        _, at, count, step, block, _ = args
        column = builder.shl(block, index_of(3))
        kept = [place_of(builder, noted, builder.add(column, builder.mul(step, index_of(row)))) for row in range(3)]
        least, largest, nothing = (cgutils.alloca_once_value(builder, load_lanes(builder, place)) for place in kept)
        first = builder.add(at, column)
        with cgutils.for_range(builder, count) as loop:
            row = builder.add(first, builder.mul(loop.index, step))
            value = load_lanes(builder, place_of(builder, data, row))
            for comparison, end in (("<", least), (">", largest)):
                before = builder.load(end)
                builder.store(builder.select(builder.fcmp_ordered(comparison, value, before), value, before), end)
            builder.store(builder.fadd(builder.load(nothing), builder.fmul(value, _ZEROS)), nothing)
        for place, end in zip(kept, (least, largest, nothing), strict=True):
            builder.store(builder.load(end), place, align=8)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(values, integer, integer, integer, integer, seen), generate


@intrinsic
def turn_to_places(typingctx, out, step, left, places, addresses, row):  # type: ignore[no-untyped-def]
    """Write eight numbers of each of eight columns, which lie anywhere, into eight rows of `out`, which may as well.

    Columns are known by their addresses, from addresses[left] on, and go to columns `left` and following. Numbers are
    taken from `row` on, and go to rows places[row] and following, each `step` numbers long. What comes next of each
    column is asked for.
    """
    return types.void(out, types.intp, types.intp, places, addresses, types.intp), _turning(False)


@intrinsic
def turn_past_cache(typingctx, out, step, left, places, addresses, row):  # type: ignore[no-untyped-def]
    """Do the same with lines of the cache, at whose beginning `out` begins, that are not read before they are written.

    For rows that do not stay in the cache anyway: to bring their lines there takes as long as to write them.
    """
    return types.void(out, types.intp, types.intp, places, addresses, types.intp), _turning(True)


def _turning(past_cache: bool) -> Any:
    """Return what generates the code of `turn_to_places` or `turn_past_cache`."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        target, given, known = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3, 4)
        )
        _, step, left, _, _, row = args
        integer = ir.IntType(64)
        columns = []
        for lane in range(LANES):
            at = place_of(builder, known, builder.add(left, index_of(lane)), integer)
            column = builder.inttoptr(builder.load(at, typ=integer), POINTER)
            ask_for(builder, column, builder.add(row, index_of(_COLUMN_AHEAD)))
            columns.append(load_lanes(builder, place_of(builder, column, row)))
        for lane, line in enumerate(transposed(builder, columns)):
            at = place_of(builder, given, builder.add(row, index_of(lane)), integer)
            place = builder.add(builder.mul(builder.load(at, typ=integer), step), left)
            stored = builder.store(line, place_of(builder, target, place), align=64 if past_cache else 8)
            if past_cache:
                stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return generate


@intrinsic
def add_block(typingctx, values, start, step, count, left, right, ahead, out, at):  # type: ignore[no-untyped-def]
    """Add to the eight rows of eight numbers from out[at] on the products of columns of some rows.

    Rows begin at `start` and are `step` numbers apart, as are those of `out`; the columns are the eight from `left` on,
    by the eight from `right` on. Sums stay in registers; each product is added, rounded once, row after row. What lies
    `ahead` numbers further on is asked for.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data, target = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 7))
        _, first, step, count, left, right, ahead, _, at = args
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")
        places, index = [], at
        for _ in range(LANES):
            places.append(place_of(builder, target, index))
            index = builder.add(index, step)
        sums = [cgutils.alloca_once_value(builder, load_lanes(builder, place)) for place in places]
        with cgutils.for_range(builder, count) as loop:
            row = builder.add(first, builder.mul(loop.index, step))
            beside = builder.add(row, right)
            vector = load_lanes(builder, place_of(builder, data, beside))
            ask_for(builder, data, builder.add(beside, ahead))
            for lane, total in enumerate(sums):
                place = place_of(builder, data, builder.add(row, builder.add(left, index_of(lane))))
                factor = spread(builder, builder.load(place, typ=ir.DoubleType()))
                builder.store(builder.call(fused, [factor, vector, builder.load(total)]), total)
        for place, total in zip(places, sums, strict=True):
            builder.store(builder.load(total), place, align=8)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(values, integer, integer, integer, integer, integer, integer, out, integer), generate


@intrinsic
def subtract_products(typingctx, out, at, factors, first, apart, values, start, step, count):  # type: ignore[no-untyped-def]
    """Take sums of products off the eight numbers from out[at] on, in a register; each is rounded once, row after row.

    Factors are `apart` numbers apart from factors[first] on, the rows of eight values `step` from values[start] on.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        target, scales, data = (
            context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 5)
        )
        _, at, _, first, apart, _, start, step, count = args
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
        fused = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v8f64")
        place = place_of(builder, target, at)
        total = cgutils.alloca_once_value(builder, load_lanes(builder, place))
        with cgutils.for_range(builder, count) as loop:
            factor = place_of(builder, scales, builder.add(first, builder.mul(loop.index, apart)))
            scale = spread(builder, builder.fneg(builder.load(factor, typ=ir.DoubleType())))
            vector = load_lanes(builder, place_of(builder, data, builder.add(start, builder.mul(loop.index, step))))
            builder.store(builder.call(fused, [scale, vector, builder.load(total)]), total)
        builder.store(builder.load(total), place, align=8)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, factors, integer, integer, values, integer, integer, integer), generate


@intrinsic
def sum_of_squares(typingctx, values, at, count):  # type: ignore[no-untyped-def]
    """Return the sum of squares of `count` times eight numbers: lane by lane, then of the lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        total = cgutils.alloca_once_value(builder, _ZEROS)
        with cgutils.for_range(builder, args[2]) as loop:
            value = load_lanes(
                builder, place_of(builder, data, builder.add(args[1], builder.shl(loop.index, index_of(3))))
            )
            builder.store(builder.fadd(builder.load(total), builder.fmul(value, value)), total)
        return sum_of_lanes(builder, builder.load(total))

    return types.float64(values, types.intp, types.intp), generate
