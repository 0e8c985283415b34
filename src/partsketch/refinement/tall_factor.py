"""The triangular factor of one tall matrix, its parts worked on side by side.

The routines divide columns recursively, which is quicker by a third than the customary factorisation; they are reached
through their C addresses, so that they do not hold the interpreter lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from partsketch.blas import with_positive_diagonal

FloatArray = NDArray[np.float64]

#: Columns of a panel.
_PANEL = 64

#: Parts at most, and rows per column of a part at least. Both are fixed: the bits must not depend on the workers.
_MOST_PARTS, _LEAST_HEIGHT = 2, 2


@cache
def _routine(name: str, arguments: int) -> Callable[..., None]:
    from numba.extending import get_cython_function_address

    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)
    return signature(get_cython_function_address("scipy.linalg.cython_lapack", name))


def _call(name: str, *arguments: int | FloatArray | ctypes.c_void_p) -> None:
    """Call a routine of LAPACK, which takes the addresses of everything; the last argument it adds tells of errors."""
    kept = [ctypes.c_int(value) if isinstance(value, int) else value for value in (*arguments, 0)]
    places = [
        value.ctypes.data if isinstance(value, np.ndarray) else value if isinstance(value, ctypes.c_void_p)
        else ctypes.addressof(value)
        for value in kept
    ]  # fmt: skip
    _routine(name, len(places))(*places)
    failed = kept[-1]
    assert isinstance(failed, ctypes.c_int)
    if failed.value:
        raise ValueError(f"{name} refuses argument {-failed.value}")


def tall_factor(matrix: FloatArray, threads: int) -> FloatArray:
    """Return the upper triangular R, diagonal not negative, with RᵀR = AᵀA for A with more rows than columns.

    A matrix that lies by columns is overwritten.
    """
    matrix = np.asfortranarray(matrix)
    rows, width = matrix.shape
    parts = max(1, min(_MOST_PARTS, rows // (_LEAST_HEIGHT * width)))
    bounds = [rows * part // parts for part in range(parts + 1)]
    panel = min(_PANEL, width)

    def place(row: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(matrix.ctypes.data + 8 * row)

    def factor(part: int) -> None:
        first, count = bounds[part], bounds[part + 1] - bounds[part]
        room, work = np.empty((2, panel * width))
        _call("dgeqrt", count, width, panel, place(first), rows, room, panel, work)

    def join(pair: tuple[int, int]) -> None:
        first, second = (place(bounds[part]) for part in pair)
        room, work = np.empty((2, panel * width))
        _call("dtpqrt", width, width, width, panel, first, rows, second, rows, room, panel, work)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(factor, range(parts)))
        _join_all(pool, join, parts)
    return with_positive_diagonal(matrix[:width])


def _join_all(pool: Executor, join: Callable[[tuple[int, int]], None], parts: int) -> None:
    """Join factors of neighbours until one is left, which stands where the first stood."""
    step = 1
    while step < parts:
        list(pool.map(join, [(part, part + step) for part in range(0, parts - step, 2 * step)]))
        step *= 2
