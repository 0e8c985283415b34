"""Dense kernels that NumPy does not offer, or not without holding the interpreter lock.

SciPy's wrapped BLAS routines keep the lock while they work, so worker threads would wait for one another; the same
routines reached through their C addresses do not.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.column_kernels import column_addresses, gram_of_columns
from partsketch.common.linalg.group_products import GROUP
from partsketch.common.linalg.wide_gram import wide_gram
from partsketch.common.linalg.wide_triangles import NARROWEST_SHARED, inverse_of_triangle

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

FloatArray = NDArray[np.float64]

#: Up to this many columns the kernel that keeps four by four sums is quicker than that which copies panels first.
WIDEST_KERNEL = 128

#: Up to this width triangles are solved as any matrix is, by NumPy: an upper triangle is its own LU decomposition, with
#: no rows exchanged, so nothing but the back substitution rounds. Wider ones are worth loading SciPy.
_WIDEST_TRIANGLE_OF_NUMPY = 128


def tile_rows_for(width: int) -> int:
    """Return how many rows of `width` columns make one tile.

    A tile should stay in the second-level cache (about 2¹⁷ numbers) and still be tall enough for efficient products.
    Many columns are copied into strips that do, and a tile is two products: it may be eight times as large. The number
    depends on the width alone, because the order of summation, and so the last bits of every summary, depends on it.
    """
    rows = 8192
    least, most = (1024, 2**17) if width <= WIDEST_KERNEL else (2048, 2**20)
    while rows > least and rows * width > most:
        rows //= 2
    while rows < 2 * width:
        rows *= 2
    return rows


def padded_width(width: int) -> int:
    """Round a number of columns up to whole groups of the compiled kernel, or whole vector registers of the library."""
    unit = GROUP if width <= 32 else 8
    return -(-width // unit) * unit


def gram(columns: FloatArray) -> FloatArray:
    """Return Z Zᵀ for Z of shape (columns, rows), contiguous along either."""
    width, rows = columns.shape
    if width > WIDEST_KERNEL:
        return wide_gram(columns.T)
    if columns.strides[1] != 8 or width % GROUP:
        padded = np.zeros((-(-width // GROUP) * GROUP, rows))
        padded[:width] = columns
        return gram(padded)[:width, :width]
    out = np.empty((width, width))
    gram_of_columns(column_addresses(columns), rows, out)
    return out


@cache
def _thread_pools() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    # SciPy brings a BLAS of its own; it must be loaded before the libraries are looked for.
    if not _load_library_of_scipy():
        import scipy.linalg  # noqa: F401
    return ThreadpoolController()


def _load_library_of_scipy() -> bool:
    """Load the BLAS that lies beside SciPy, as its wheels have it: all of SciPy takes twenty times as long."""
    place = find_spec("scipy")
    folders = place.submodule_search_locations or () if place is not None else ()
    found = [
        library
        for folder in folders
        for beside in (Path(folder).with_name("scipy.libs"), Path(folder) / ".dylibs")
        for library in beside.glob("*openblas*")
    ]
    try:
        for library in found:
            ctypes.CDLL(str(library))
    except OSError:
        return False
    return bool(found)


class _Limit:
    """The limit that all fits under way share: set by the first to come, lifted by the last to go."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limiter: Any = None


_LIMIT = _Limit()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Limit the linear algebra libraries to one thread while in this context.

    Workers already use every core, and sums must not depend on the number of cores. Finding the libraries takes
    milliseconds, so it is done once. The limit belongs to the process: fits that run side by side share it.
    """
    with _LIMIT.lock:
        if _LIMIT.users == 0:
            _LIMIT.limiter = _thread_pools().limit(limits=1)
        _LIMIT.users += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.users -= 1
            if _LIMIT.users == 0:
                _LIMIT.limiter.restore_original_limits()


def triangular_factor(*stacked: FloatArray) -> FloatArray:
    """Return the square upper triangular R, diagonal not negative, with RᵀR = Σ AᵀA over the given matrices A."""
    matrix = np.vstack(stacked) if len(stacked) > 1 else stacked[0]
    width = matrix.shape[1]
    factor: FloatArray = np.asarray(np.linalg.qr(matrix, mode="r"))
    if factor.shape[0] < width:
        factor = np.vstack([factor, np.zeros((width - factor.shape[0], width))])
    return with_positive_diagonal(factor)


def triangular_factors(stacked: FloatArray) -> FloatArray:
    """Return `triangular_factor` of each of several matrices with no fewer rows than columns, shape (k, rows, q)."""
    factors = np.triu(np.linalg.qr(stacked, mode="r"))
    return factors * np.where(np.diagonal(factors, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, :, None]


def triangular_inverse(factor: FloatArray, lower: bool = False) -> FloatArray:
    """Return the inverse of a triangular matrix; LinAlgError if it has none."""
    if lower:
        return triangular_inverse(factor.T).T
    if len(factor) <= _WIDEST_TRIANGLE_OF_NUMPY:
        return np.asarray(np.linalg.inv(factor))
    if len(factor) > NARROWEST_SHARED:
        return inverse_of_triangle(np.ascontiguousarray(factor))
    from scipy.linalg.lapack import dtrtri

    inverse, failed = dtrtri(factor)
    if failed:
        raise np.linalg.LinAlgError("a diagonal entry of the triangle is zero")
    return np.asarray(inverse)


def triangular_solve(factor: FloatArray, right: FloatArray, lower: bool = False) -> FloatArray:
    """Return the solution of R x = b for a triangle R without zeros on its diagonal, an upper one unless said."""
    if len(factor) <= _WIDEST_TRIANGLE_OF_NUMPY:
        return np.asarray(np.linalg.solve(factor, right))
    from scipy.linalg.lapack import dtrtrs

    # The function of LAPACK itself: what SciPy puts around it takes longer than a small triangle. It holds matrices by
    # columns: one that lies by rows is its own transpose there, and need not be copied.
    by_rows = factor.flags.c_contiguous
    given, lower = (factor.T, not lower) if by_rows else (factor, lower)
    return np.asarray(dtrtrs(given, right, lower=lower, trans=by_rows)[0])


def with_positive_diagonal(factor: FloatArray) -> FloatArray:
    """Return the upper triangle with the signs of its rows turned so that the diagonal is not negative."""
    signs = np.where(np.diagonal(factor) < 0, -1.0, 1.0)
    return np.ascontiguousarray(np.triu(factor) * signs[:, None])
