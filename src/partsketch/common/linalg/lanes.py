"""Eight numbers at a time: the few vector operations that the compiler does not find by itself.

The compiler cannot know that the rows of a sketch and the rows of the data do not overlap, and checks it for every row
or gives up on vector instructions. These operations say what is meant. Each product and each sum is rounded on its own,
so the bits are those of plain loops, on processors with narrower registers as well. ARCHITECTURE.md says what each
operation is for, and what plain loops cost instead.

Pointers are opaque, as LLVM has them: what lies behind one is said where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Numbers in one operation: a register of 512 bits, a cache line.
LANES = 8

#: Numbers between the row worked on and what is asked for meanwhile: about as many as arrive in the time memory takes.
AHEAD = 1280

#: The same for columns that are read side by side: fewer numbers of each.
_COLUMN_AHEAD = 128

POINTER = ir.PointerType()
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)
_INTEGERS = ir.VectorType(ir.IntType(64), LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
_COUNTING = ir.Constant(_INTEGERS, list(range(LANES)))


def index_of(number: int) -> Any:
    """Return a constant index."""
    return ir.Constant(ir.IntType(64), number)


def _pointer(context: Any, builder: Any, signature: Any, args: Sequence[Any], which: int) -> Any:
    """Return the address of the lanes that start at an index of a flat array."""
    array = context.make_array(signature.args[which])(context, builder, args[which])
    return place_of(builder, array.data, args[which + 1])


def spread(builder: Any, number: Any) -> Any:
    """Return a vector that holds one number in every lane."""
    integer = ir.IntType(32)
    single = builder.insert_element(_NOTHING, number, ir.Constant(integer, 0))
    return builder.shuffle_vector(single, _NOTHING, ir.Constant(ir.VectorType(integer, LANES), [0] * LANES))


def _spread_integer(builder: Any, number: Any) -> Any:
    """Return a vector of integers that holds one number in every lane."""
    nothing = ir.Constant(_INTEGERS, ir.Undefined)
    index = ir.IntType(32)
    single = builder.insert_element(nothing, number, ir.Constant(index, 0))
    return builder.shuffle_vector(single, nothing, ir.Constant(ir.VectorType(index, LANES), [0] * LANES))


def first_lanes(builder: Any, count: Any) -> Any:
    """Return the mask of the first `count` lanes."""
    return builder.icmp_signed("<", _COUNTING, _spread_integer(builder, count))


def place_of(builder: Any, data: Any, index: Any, kind: Any = _DOUBLE) -> Any:
    """Return the address of an entry of flat data, doubles unless said otherwise."""
    place = builder.gep(data, [index], source_etype=kind)
    # The pointers of numba's arrays still have types, and llvmlite hands them on.
    place.type = POINTER
    return place


def entry_of(context: Any, builder: Any, array_type: Any, data: Any, index: Any) -> Any:
    """Return an entry of a flat array of any type."""
    kind = context.get_data_type(array_type.dtype)
    return builder.load(place_of(builder, data, index, kind), typ=kind)


def ask_for(builder: Any, data: Any, index: Any) -> None:
    """Ask for the cache line of a double, which may lie beyond the end: what cannot be reached is ignored."""
    integer = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [POINTER, integer, integer, integer])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # To read, into the second-level cache, as data.
    options = [ir.Constant(integer, number) for number in (0, 2, 1)]
    builder.call(ask, [place_of(builder, data, index), *options])


def masked_load(builder: Any, pointer: Any, mask: Any) -> Any:
    """Return the lanes that the mask names, zero in the others."""
    kind = ir.FunctionType(_VECTOR, [POINTER, ir.IntType(32), _MASK, _VECTOR])
    load = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.load.v8f64.p0")
    return builder.call(load, [pointer, ir.Constant(ir.IntType(32), 8), mask, ir.Constant(_VECTOR, [0.0] * LANES)])


def masked_store(builder: Any, values: Any, pointer: Any, mask: Any) -> None:
    """Write the lanes that the mask names."""
    kind = ir.FunctionType(ir.VoidType(), [_VECTOR, POINTER, ir.IntType(32), _MASK])
    store = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.store.v8f64.p0")
    builder.call(store, [values, pointer, ir.Constant(ir.IntType(32), 8), mask])


def load_lanes(builder: Any, pointer: Any) -> Any:
    """Return eight numbers. Rows of a caller's array start anywhere: only the alignment of a double is certain."""
    return builder.load(pointer, align=8, typ=_VECTOR)


def sum_of_lanes(builder: Any, vector: Any) -> Any:
    """Return the sum of eight numbers, of neighbours first."""
    parts = [builder.extract_element(vector, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
    while len(parts) > 1:
        parts = [builder.fadd(one, other) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@intrinsic
def add_scaled(typingctx, out, at, values, start, scale):  # type: ignore[no-untyped-def]
    """Add scale · values[start : start + 8] to out[at : at + 8], both flat."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        place = _pointer(context, builder, signature, args, 0)
        product = builder.fmul(
            load_lanes(builder, _pointer(context, builder, signature, args, 2)), spread(builder, args[4])
        )
        builder.store(builder.fadd(load_lanes(builder, place), product), place, align=8)
        return context.get_dummy_value()

    return types.void(out, types.intp, values, types.intp, types.float64), generate


@intrinsic
def fetch(typingctx, values, at):  # type: ignore[no-untyped-def]
    """Ask for the cache line of values[at], which may lie beyond the end: what cannot be reached is ignored."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        ask_for(builder, context.make_array(signature.args[0])(context, builder, args[0]).data, args[1])
        return context.get_dummy_value()

    return types.void(values, types.intp), generate


@intrinsic
def fetch_all(typingctx, values, at, count):  # type: ignore[no-untyped-def]
    """Ask for values[at : at + count], which may lie beyond the end."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        with cgutils.for_range(builder, builder.lshr(builder.add(args[2], index_of(LANES - 1)), index_of(3))) as loop:
            ask_for(builder, data, builder.add(args[1], builder.shl(loop.index, index_of(3))))
        return context.get_dummy_value()

    return types.void(values, types.intp, types.intp), generate


@intrinsic
def copy_groups(typingctx, out, at, apart, values, start, count, scale):  # type: ignore[no-untyped-def]
    """Write scale · values[start : start + count], eight numbers at a time, to out at `at`, `at + apart` and so on.

    An operation and not a function: a call for every row would count references to the arrays, which takes longer.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        place, data = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3))
        factor = spread(builder, args[6])

        def addresses(block: Any) -> tuple[Any, Any]:
            source = builder.add(args[4], builder.shl(block, index_of(3)))
            target = builder.add(args[1], builder.mul(block, args[2]))
            return place_of(builder, data, source), place_of(builder, place, target)

        blocks = builder.lshr(args[5], index_of(3))
        with cgutils.for_range(builder, blocks) as loop:
            source, target = addresses(loop.index)
            builder.store(builder.fmul(load_lanes(builder, source), factor), target, align=8)
        rest = builder.and_(args[5], index_of(LANES - 1))
        with builder.if_then(builder.icmp_signed(">", rest, index_of(0))):
            mask = first_lanes(builder, rest)
            source, target = addresses(blocks)
            masked_store(builder, builder.fmul(masked_load(builder, source, mask), factor), target, mask)
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, integer, values, integer, integer, types.float64), generate


def _butterflies(builder: Any, values: list[Any]) -> list[Any]:
    """Return the Hadamard transform of a power of two of vectors, natural order."""
    half = 1
    while half < len(values):
        for start in range(0, len(values), 2 * half):
            for i in range(start, start + half):
                first, second = values[i], values[i + half]
                values[i], values[i + half] = builder.fadd(first, second), builder.fsub(first, second)
        half *= 2
    return values


def _transform_of(rows: int) -> Callable[..., Any]:
    """Return the operation that transforms `rows` rows of eight numbers, `stride` apart, in place."""

    @intrinsic
    def transform(typingctx, out, at, stride):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            pointers = []
            index = args[1]
            for _ in range(rows):
                pointers.append(place_of(builder, array.data, index))
                index = builder.add(index, args[2])
            values = _butterflies(builder, [load_lanes(builder, pointer) for pointer in pointers])
            for pointer, value in zip(pointers, values, strict=True):
                builder.store(value, pointer, align=8)
            return context.get_dummy_value()

        return types.void(out, types.intp, types.intp), generate

    operation: Callable[..., Any] = transform
    return operation


transform_2 = _transform_of(2)
transform_4 = _transform_of(4)
transform_16 = _transform_of(16)


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Return the columns of eight vectors of eight: halves are exchanged at distances of four, two and one."""
    index = ir.VectorType(ir.IntType(32), LANES)
    for distance in (4, 2, 1):
        lanes = [lane for lane in range(LANES) if not lane & distance]
        lower = [lane & ~distance if not lane & distance else (lane & ~distance) + LANES for lane in range(LANES)]
        upper = [lane + distance if lane in lanes else lane + LANES for lane in range(LANES)]
        for i in lanes:
            first, second = rows[i], rows[i + distance]
            rows[i] = builder.shuffle_vector(first, second, ir.Constant(index, lower))
            rows[i + distance] = builder.shuffle_vector(first, second, ir.Constant(index, upper))
    return rows


@intrinsic
def turn_columns(typingctx, out, at, out_step, addresses, first, begin):  # type: ignore[no-untyped-def]
    """Write eight numbers of each of eight columns, which lie anywhere, to `out` from `at` on, a row each.

    Columns are known by their addresses, from addresses[first] on; rows are taken from `begin` on, and go to rows
    `out_step` numbers apart. What comes next of each column is asked for.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out_data, places = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3))
        integer = ir.IntType(64)
        columns = []
        for lane in range(LANES):
            address = builder.load(
                place_of(builder, places, builder.add(args[4], index_of(lane)), integer), typ=integer
            )
            column = builder.inttoptr(address, POINTER)
            ask_for(builder, column, builder.add(args[5], index_of(_COLUMN_AHEAD)))
            columns.append(load_lanes(builder, place_of(builder, column, args[5])))
        place = args[1]
        for row in transposed(builder, columns):
            builder.store(row, place_of(builder, out_data, place), align=8)
            place = builder.add(place, args[2])
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, integer, addresses, integer, integer), generate


@intrinsic
def transpose_eight(typingctx, out, at, out_step, values, first, step):  # type: ignore[no-untyped-def]
    """Write the transpose of eight rows of eight numbers, `step` apart in `values`, to `out` from `at` on.

    There the rows, columns before, are `out_step` apart. Single numbers become doubles, long integers short ones.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        out_data, value_data = (context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 3))
        kind, read = (context.get_data_type(signature.args[i].dtype) for i in (0, 3))
        single = read == ir.FloatType()
        rows, index = [], args[4]
        for _ in range(LANES):
            vector = ir.VectorType(read, LANES)
            pointer = place_of(builder, value_data, index, read)
            rows.append(builder.load(pointer, align=4 if single else 8, typ=vector))
            index = builder.add(index, args[5])
        place = args[1]
        change = builder.fpext if single else builder.trunc
        for row in transposed(builder, rows):
            changed = row if row.type.element == kind else change(row, ir.VectorType(kind, LANES))
            builder.store(changed, place_of(builder, out_data, place, kind), align=4)
            place = builder.add(place, args[2])
        return context.get_dummy_value()

    integer = types.intp
    return types.void(out, integer, integer, values, integer, integer), generate
