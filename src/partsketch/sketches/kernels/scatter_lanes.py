"""Adding eight numbers to several places: the inner loops of `scatter.py`.

They are written in the compiler's own language for the reason that `lanes.py` gives: it cannot know that the rows of a
sketch and those of the data do not overlap.
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
    entry_of,
    first_lanes,
    index_of,
    load_lanes,
    masked_load,
    place_of,
    spread,
)


@intrinsic
def add_row(typingctx, out, at, values, start, count, scale, ahead):  # type: ignore[no-untyped-def]
    """Add scale · values[start : start + count] to out from `at` on, and ask for the numbers that lie `ahead`.

    Up to the next multiple of eight zeros are added to `out`: storing only some of eight numbers would take longer.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        target, source = (
            place_of(builder, context.make_array(signature.args[i])(context, builder, args[i]).data, args[i + 1])
            for i in (0, 2)
        )
        factor = spread(builder, args[5])

        def add(block: Any, mask: Any = None) -> None:
            index = builder.shl(block, index_of(3))
            ask_for(builder, source, builder.add(index, args[6]))
            place, taken = place_of(builder, target, index), place_of(builder, source, index)
            row = load_lanes(builder, taken) if mask is None else masked_load(builder, taken, mask)
            builder.store(builder.fadd(load_lanes(builder, place), builder.fmul(row, factor)), place, align=8)

        whole = builder.lshr(args[4], index_of(3))
        with cgutils.for_range(builder, whole) as loop:
            add(loop.index)
        rest = builder.and_(args[4], index_of(LANES - 1))
        with builder.if_then(builder.icmp_signed(">", rest, index_of(0))):
            add(whole, first_lanes(builder, rest))
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, values, integer, integer, types.float64, integer), generate


@intrinsic
def add_to_each(typingctx, out, base, unit, places, first, step, signs, count, values, start):  # type: ignore[no-untyped-def]
    """Add signs[e] · values[start : start + 8] to out at base + unit · places[e] for count entries e = first, step on.

    The eight values stay in their register; a loop over `add_scaled` would read them again every time.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out_array, place_array, sign_array, value_array = (
            context.make_array(signature.args[i])(context, builder, args[i]) for i in (0, 3, 6, 8)
        )

        row = load_lanes(builder, place_of(builder, value_array.data, args[9]))
        with cgutils.for_range(builder, args[7]) as loop:
            entry = builder.add(args[4], builder.mul(loop.index, args[5]))
            place = entry_of(context, builder, signature.args[3], place_array.data, entry)
            sign = entry_of(context, builder, signature.args[6], sign_array.data, entry)
            target = place_of(builder, out_array.data, builder.add(args[1], builder.mul(place, args[2])))
            total = builder.fadd(load_lanes(builder, target), builder.fmul(row, spread(builder, sign)))
            builder.store(total, target, align=8)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, integer, places, integer, integer, signs, integer, values, integer), generate


def _adding_to_eight(groups: int) -> Callable[..., Any]:
    """Return the operation that adds some groups of eight numbers to eight places each."""

    @intrinsic
    def add(typingctx, out, base, apart, places, signs, first, values, start, values_apart):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            out_data, place_data, sign_data, value_data = (
                context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3, 4, 6)
            )
            rows, bases = [], []
            index, base = args[7], args[1]
            for _ in range(groups):
                rows.append(load_lanes(builder, place_of(builder, value_data, index)))
                bases.append(base)
                index, base = builder.add(index, args[8]), builder.add(base, args[2])
            for number in range(LANES):
                entry = builder.add(args[5], index_of(number))
                place = builder.zext(entry_of(context, builder, signature.args[3], place_data, entry), ir.IntType(64))
                sign = spread(builder, entry_of(context, builder, signature.args[4], sign_data, entry))
                for row, base in zip(rows, bases, strict=True):
                    target = place_of(builder, out_data, builder.add(base, place))
                    total = builder.fadd(load_lanes(builder, target), builder.fmul(row, sign))
                    builder.store(total, target, align=8)
            return context.get_dummy_value()

        integer = types.intp
        return types.void(out, integer, integer, places, signs, integer, values, integer, integer), generate

    operation: Callable[..., Any] = add
    return operation


#: add_to_eight(out, base, apart, places, signs, first, values, start, values_apart): add
#: signs[e] · values[start : start + 8] to out at base + places[e] for the eight entries e from `first` on. Entries that
#: follow one another, in a number known beforehand, take a fifth less time than those of `add_to_each`.
add_to_eight = _adding_to_eight(1)

#: Do the same with a second group of eight, `values_apart` further on, to places that are `apart` further on.
add_pair_to_eight = _adding_to_eight(2)
