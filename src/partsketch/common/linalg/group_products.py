"""Inner products of four columns with four others: what sums of products of few columns are made of."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from partsketch.common.linalg.lanes import POINTER, ask_for, index_of, place_of

#: Columns are worked on in groups of this many: four by four sums stay in registers.
GROUP = 4

_DOUBLE = ir.DoubleType()
_INDEX = ir.IntType(32)
#: A product and a sum are rounded together, where the processor can.
_CONTRACTED = ("contract",)


@cache
def lanes() -> int:
    """Return how many numbers a register holds. Half of the wide ones stay unused unless they are asked for."""
    return 8 if binding.get_host_cpu_features().get("avx512f") else 4


def _shuffled(builder: Any, first: Any, second: Any, places: list[int]) -> Any:
    mask = ir.Constant(ir.VectorType(_INDEX, len(places)), places)
    return builder.shuffle_vector(first, second, mask)


def _totals_of_four(builder: Any, vectors: list[Any]) -> Any:
    """Return the sums of the numbers of four vectors."""
    if vectors[0].type.count == 8:
        lower, upper = list(range(4)), list(range(4, 8))
        vectors = [
            builder.fadd(_shuffled(builder, one, one, lower), _shuffled(builder, one, one, upper)) for one in vectors
        ]
    first, second = (
        builder.fadd(_shuffled(builder, one, other, [0, 4, 2, 6]), _shuffled(builder, one, other, [1, 5, 3, 7]))
        for one, other in (vectors[:2], vectors[2:])
    )
    return builder.fadd(
        _shuffled(builder, first, second, [0, 1, 4, 5]), _shuffled(builder, first, second, [2, 3, 6, 7])
    )


def _load_first(builder: Any, pointer: Any, mask: Any, vector: Any) -> Any:
    """Return the numbers that the mask names, zero in the others."""
    kind = ir.FunctionType(vector, [POINTER, _INDEX, mask.type, vector])
    load = cgutils.get_or_insert_function(builder.module, kind, f"llvm.masked.load.v{vector.count}f64.p0")
    return builder.call(load, [pointer, ir.Constant(_INDEX, 8), mask, ir.Constant(vector, [0.0] * vector.count)])


@intrinsic
def group_products(typing_context, addresses, i, j, begin, rows, ahead, apart, out):  # type: ignore[no-untyped-def]
    """Add the inner products of columns i to i + 3 with columns j to j + 3, from row `begin` on.

    Meanwhile what comes next is asked for, from the address `ahead` on, `apart` bytes further with every few rows: so
    that it arrives while numbers are multiplied.
    """
    count = lanes()
    vector, shift = ir.VectorType(_DOUBLE, count), count.bit_length() - 1

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        places, matrix = (
            context.make_array(signature.args[which])(context, builder, arguments[which]) for which in (0, 7)
        )
        _, first, second, top, height, next_address, step_ahead, _ = arguments
        integer = ir.IntType(64)

        def column(begin: Any, number: int) -> Any:
            place = place_of(builder, places.data, builder.add(begin, index_of(number)), integer)
            return place_of(builder, builder.inttoptr(builder.load(place, typ=integer), POINTER), top)

        left, right = ([column(begin, number) for number in range(GROUP)] for begin in (first, second))
        zeros = ir.Constant(vector, [0.0] * count)
        sums = [[cgutils.alloca_once_value(builder, zeros) for _ in range(GROUP)] for _ in range(GROUP)]

        def add(xs: list[Any], ys: list[Any]) -> None:
            for x, row in zip(xs, sums, strict=True):
                for y, total in zip(ys, row, strict=True):
                    product = builder.fmul(x, y, flags=_CONTRACTED)
                    builder.store(builder.fadd(builder.load(total, typ=vector), product, flags=_CONTRACTED), total)

        asked = builder.inttoptr(next_address, POINTER)
        with cgutils.for_range(builder, builder.lshr(height, index_of(shift))) as loop:
            row = builder.shl(loop.index, index_of(shift))
            ask_for(builder, asked, builder.lshr(builder.mul(loop.index, step_ahead), index_of(3)))
            add(
                *(
                    [builder.load(place_of(builder, data, row), align=8, typ=vector) for data in side]
                    for side in (left, right)
                )
            )
        rest = builder.and_(height, index_of(count - 1))
        with builder.if_then(builder.icmp_signed(">", rest, index_of(0))):
            numbers = ir.VectorType(integer, count)
            single = builder.insert_element(ir.Constant(numbers, ir.Undefined), rest, ir.Constant(_INDEX, 0))
            all_rest = _shuffled(builder, single, single, [0] * count)
            mask = builder.icmp_signed("<", ir.Constant(numbers, list(range(count))), all_rest)
            row = builder.sub(height, rest)
            add(
                *(
                    [_load_first(builder, place_of(builder, data, row), mask, vector) for data in side]
                    for side in (left, right)
                )
            )
        step, four = builder.extract_value(matrix.shape, 1), ir.VectorType(_DOUBLE, GROUP)
        for one, row_sums in enumerate(sums):
            totals = _totals_of_four(builder, [builder.load(total, typ=vector) for total in row_sums])
            row = builder.mul(builder.add(first, index_of(one)), step)
            place = place_of(builder, matrix.data, builder.add(row, second))
            builder.store(builder.fadd(builder.load(place, align=8, typ=four), totals), place, align=8)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(addresses, integer, integer, integer, integer, integer, integer, out), generate
