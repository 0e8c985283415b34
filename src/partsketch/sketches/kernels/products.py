"""S A for a Gaussian S that is never stored: numbers of S are made and multiplied a few hundred rows at a time.

The product is that of the linear algebra library, called from compiled code, so that neither the interpreter nor the
memory comes between making the numbers and using them.

Plainly, NumPy draws S a few hundred columns at a time and multiplies: four times as long (`python -m
benchmarks.kernels`), and S depends on how the rows were cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from partsketch.common.linalg.compiled import compiled
from partsketch.common.linalg.lanes import AHEAD, LANES, POINTER, copy_groups, fetch_all, index_of, place_of
from partsketch.sketches.random import make_normals

_INTEGER, _NUMBER, _LETTER = ir.IntType(32), ir.DoubleType(), ir.IntType(8)


@cache
def product_address() -> int:
    """Return where the library's matrix product is; it is passed to compiled code, which can then be kept on disk."""
    return int(get_cython_function_address("scipy.linalg.cython_blas", "dgemm"))


@intrinsic
def _add_product(typingctx, address, width, count, rows, tile, tile_at, numbers, total, total_at):  # type: ignore[no-untyped-def]
    """Add S A to `total`: A is rows × width from `tile_at` on, S count × rows, all flat and held by rows."""

    def generate(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
        def place(array: int, at: Any) -> Any:
            return place_of(builder, context.make_array(signature.args[array])(context, builder, args[array]).data, at)

        def kept(value: Any) -> Any:
            return cgutils.alloca_once_value(builder, value)

        width, count, rows = (kept(builder.trunc(args[i], _INTEGER)) for i in (1, 2, 3))
        plain, one = kept(ir.Constant(_LETTER, ord("N"))), kept(ir.Constant(_NUMBER, 1.0))
        # The library holds matrices by columns and so sees all three transposed: Totalᵀ += Aᵀ Sᵀ.
        given = [plain, plain, width, count, rows, one, place(4, args[5]), width, place(6, index_of(0)), rows, one]
        given += [place(7, args[8]), width]
        # The one pointer with a type: llvmlite learns from it what a function takes that is known by its address alone.
        kind = ir.FunctionType(ir.VoidType(), [POINTER] * len(given))
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), given)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(integer, integer, integer, integer, tile, integer, numbers, total, integer), generate


@compiled
def multiply_kept(work, count):  # type: ignore[no-untyped-def]
    """Add S A for the `count` rows that are kept, a strip of S at a time; all matrices are flat."""
    address, key0, key1, stream, scale, size, strip, width, numbers, total, kept, kept_rows = work
    for first in range(0, size, strip):
        height = min(strip, size - first)
        padded = (height + 3) // 4 * 4
        made = numbers[: padded * count].reshape(padded, count)
        make_normals(key0, key1, stream, kept_rows[:count], first // 4, scale, made)
        _add_product(address, width, height, count, kept, 0, numbers, total, first * width)


@compiled
def add_dense_rows(work, filled, row_numbers, features, targets, roots, intercept):  # type: ignore[no-untyped-def]
    """Keep rows [1 features targets] and multiply them whenever there is no more room; return how many stay kept."""
    width, kept, kept_rows = work[7], work[10], work[11]
    columns = features.shape[1]
    flat = features.reshape(-1)
    for i in range(row_numbers.shape[0]):
        fetch_all(flat, i * columns + AHEAD, columns)
        start = filled * width + intercept
        root = roots[i] if roots.size else 1.0
        if intercept:
            kept[start - 1] = root
        copy_groups(kept, start, LANES, flat, i * columns, columns, root)
        for j in range(targets.shape[1]):
            kept[start + columns + j] = root * targets[i, j]
        kept_rows[filled] = row_numbers[i]
        filled += 1
        if filled == kept_rows.size:
            multiply_kept(work, filled)
            filled = 0
    return filled


@compiled
def add_sparse_rows(work, filled, row_numbers, features, targets, roots, intercept, columns):  # type: ignore[no-untyped-def]
    """Do the same for compressed rows."""
    width, kept, kept_rows = work[7], work[10], work[11]
    values, indices, starts = features
    for i in range(row_numbers.shape[0]):
        start = filled * width + intercept
        root = roots[i] if roots.size else 1.0
        if intercept:
            kept[start - 1] = root
        for j in range(columns):
            kept[start + j] = 0.0
        for entry in range(starts[i], starts[i + 1]):
            kept[start + indices[entry]] = root * values[entry]
        for j in range(targets.shape[1]):
            kept[start + columns + j] = root * targets[i, j]
        kept_rows[filled] = row_numbers[i]
        filled += 1
        if filled == kept_rows.size:
            multiply_kept(work, filled)
            filled = 0
    return filled


@compiled
def add_product(address, count, rows, tile, tile_at, width, numbers, total, total_at):  # type: ignore[no-untyped-def]
    """Add S A for numbers of S that are given, count × rows."""
    _add_product(address, width, count, rows, tile, tile_at, numbers, total, total_at)
