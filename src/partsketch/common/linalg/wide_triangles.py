"""Factors and inverses of wide triangles, cut into parts that threads share.

The parts depend on the number of columns alone, so a result has the same bits whoever makes them.
"""

from __future__ import annotations

import ctypes
from functools import partial

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.helpers import share
from partsketch.common.linalg.lapack import call, call_blas

FloatArray = NDArray[np.float64]

#: From more columns than this on parts are worth their calls.
NARROWEST_SHARED = 512

#: Columns that are eliminated at a time: fewer make slow products, more make what nobody can share.
_PANEL = 128
#: Columns of a part.
_STRIP = 256


def upper_factor(gram: FloatArray) -> FloatArray:
    """Return the upper triangular R, diagonal positive, with RᵀR = G; LinAlgError where G is not positive definite."""
    if len(gram) <= NARROWEST_SHARED:
        return np.ascontiguousarray(np.linalg.cholesky(gram).T, dtype=np.float64)
    width = len(gram)
    factor = np.zeros((width, width))
    for begin in range(0, width, _PANEL):
        end = min(begin + _PANEL, width)
        above = factor[:begin, begin:end].T
        corner = np.linalg.cholesky(gram[begin:end, begin:end] - above @ above.T)
        factor[begin:end, begin:end] = corner.T
        inverse = inverse_of_triangle(np.ascontiguousarray(corner.T)).T
        share(
            [
                partial(_eliminate, gram, factor, inverse, begin, end, strip, min(strip + _STRIP, width))
                for strip in range(end, width, _STRIP)
            ]
        )
    return factor


def single_factor(gram: NDArray[np.float32]) -> None:
    """Write the upper triangular factor over the upper triangle of a matrix of single numbers, which lies by rows.

    LinAlgError where it is not positive definite. What is below the diagonal may be anything, and is so afterwards.
    """
    width = len(gram)
    step = width if width <= NARROWEST_SHARED else _PANEL
    for begin in range(0, width, step):
        end = min(begin + step, width)
        above, corner = gram[:begin, begin:end], gram[begin:end, begin:end]
        if begin:
            with np.errstate(all="ignore"):
                corner -= above.T @ above
        if call("spotrf", b"L", end - begin, _place(gram, begin, begin), width):
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        share(
            [
                partial(_eliminate_in_single_numbers, gram, begin, end, strip, min(strip + _STRIP, width))
                for strip in range(end, width, _STRIP)
            ]
        )


def _eliminate_in_single_numbers(gram: NDArray[np.float32], begin: int, end: int, first: int, last: int) -> None:
    """Write rows begin to end of some columns of the factor, by substitution: an inverse would round more."""
    if begin:
        gram[begin:end, first:last] -= gram[:begin, begin:end].T @ gram[:begin, first:last]
    one, width, sizes = np.ones(1, dtype=np.float32), len(gram), (last - first, end - begin)
    corner, strip = _place(gram, begin, begin), _place(gram, begin, first)
    call_blas("strsm", b"R", b"L", b"T", b"N", *sizes, one, corner, width, strip, width)


def _place(matrix: NDArray[np.floating], row: int, column: int) -> ctypes.c_void_p:
    """Return the address of an entry of a matrix that lies by rows."""
    return ctypes.c_void_p(matrix.ctypes.data + matrix.itemsize * (row * matrix.shape[1] + column))


def single_solve(factor: NDArray[np.float32], right: NDArray[np.float32]) -> None:
    """Write over b the solution x of Rᵀx = b, R being what `single_factor` wrote."""
    call("strtrs", b"L", b"N", b"N", len(factor), 1, factor, len(factor), right, len(factor))


def _eliminate(
    gram: FloatArray, factor: FloatArray, inverse: FloatArray, begin: int, end: int, first: int, last: int
) -> None:
    """Make rows begin to end of some columns of the factor."""
    left = gram[begin:end, first:last] - factor[:begin, begin:end].T @ factor[:begin, first:last]
    np.matmul(inverse, left, out=factor[begin:end, first:last])


def is_upper_triangle(matrix: FloatArray) -> bool:
    """Tell whether all entries below the diagonal are zero; no copy of many columns is made for that."""
    strips = range(0, len(matrix), _PANEL)
    return not any(
        np.tril(matrix[begin : begin + _PANEL, begin : begin + _PANEL], -1).any()
        or matrix[begin + _PANEL :, begin : begin + _PANEL].any()
        for begin in strips
    )


def inverse_of_triangle(factor: FloatArray) -> FloatArray:
    """Return the inverse of an upper triangle that lies by rows; LinAlgError if it has none."""
    if not np.diagonal(factor).all():
        raise np.linalg.LinAlgError("a diagonal entry of the triangle is zero")
    width = len(factor)
    inverse = np.zeros((width, width))
    np.fill_diagonal(inverse, 1.0)
    step = width if width <= NARROWEST_SHARED else _STRIP
    share([partial(_invert, factor, inverse, row, min(row + step, width)) for row in range(0, width, step)])
    return inverse


def _invert(factor: FloatArray, inverse: FloatArray, begin: int, end: int) -> None:
    """Make some rows of the inverse: for LAPACK, which holds matrices by columns, columns of a lower triangle."""
    width = len(factor)
    corner, rows = (_place(matrix, begin, begin) for matrix in (factor, inverse))
    call("dtrtrs", b"L", b"N", b"N", width - begin, end - begin, corner, width, rows, width)
