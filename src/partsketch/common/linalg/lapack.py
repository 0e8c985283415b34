"""Routines of LAPACK that NumPy does not offer, reached through their C addresses.

SciPy's own wrappers hold the interpreter lock while they work, and worker threads would wait for one another.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

#: Columns that a factorisation takes at a time.
PANEL = 64


Argument = int | bytes | NDArray[np.floating] | ctypes.c_void_p | ctypes.c_int


@cache
def _routine(library: str, name: str, arguments: int) -> Callable[..., None]:
    from numba.extending import get_cython_function_address

    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)
    return signature(get_cython_function_address(f"scipy.linalg.cython_{library}", name))


def call(name: str, *arguments: Argument) -> int:
    """Call a routine of LAPACK, which takes the addresses of everything; the last argument it adds tells of errors.

    Returns the number of the column at which it could not go on, zero as a rule.
    """
    failed = ctypes.c_int(0)
    _call("lapack", name, *arguments, failed)
    if failed.value < 0:
        raise ValueError(f"{name} refuses argument {-failed.value}")
    return failed.value


def call_blas(name: str, *arguments: Argument) -> None:
    """Call a routine of the BLAS, which takes the addresses of everything and tells of no errors."""
    _call("blas", name, *arguments)


def _call(library: str, name: str, *arguments: Argument) -> None:
    kept = [
        ctypes.c_int(value) if isinstance(value, int) else ctypes.c_char(value) if isinstance(value, bytes) else value
        for value in arguments
    ]
    places = [
        value.ctypes.data if isinstance(value, np.ndarray) else value if isinstance(value, ctypes.c_void_p)
        else ctypes.addressof(value)
        for value in kept
    ]  # fmt: skip
    _routine(library, name, len(places))(*places)
