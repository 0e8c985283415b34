"""How kernels are compiled, said once.

Compiled code is kept on disk, holds no interpreter lock, and does not look for divisions by zero: the check is a
branch, and a branch stops vectorisation. Sums are not reordered and nothing is fused unless a kernel says so, hence the
same bits everywhere.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numba.extending import _Intrinsic


class _KeptCode(FunctionCache):
    """Compiled code on disk, loaded without the tables that only the compiler needs.

    numba fills them before it looks on the disk; that takes longer than everything else a small fit does. The compiler
    fills them itself when nothing is found.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # Kernels that need memory of their own ask numba for it.
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def _keep_with_what_it_takes_in(kernel: Any, function: Any) -> None:
    """Let code on disk count only while the kernels and numbers of other modules, compiled into it, are as they were.

    numba compares the kernel's own file alone. Code that went on calling a kernel which takes other arguments by now,
    or another layout, wrote outside its memory.
    """
    kernel._cache.__class__ = _KeptCode
    taken_in: list[Any] = []
    for name, value in sorted(function.__globals__.items()):
        if type(value) in (bool, int, float):
            taken_in.append((name, value))
        elif isinstance(getattr(value, "_cache", None), _KeptCode) and value.__module__ != function.__module__:
            taken_in.append((name, value._cache._cache_file._source_stamp))
        elif isinstance(value, _Intrinsic):
            written = os.stat(value._defn.__code__.co_filename)
            taken_in.append((name, (written.st_mtime, written.st_size)))
    kept = kernel._cache._cache_file
    # Stamps of stamps would grow without end.
    digest = hashlib.blake2b(repr((kept._source_stamp, taken_in)).encode(), digest_size=16).hexdigest()
    kept._source_stamp = digest


def compiled_with(**options: Any) -> Callable[[Any], Any]:
    """Return the decorator of a kernel that needs more of the compiler than others do."""

    def made(function: Any) -> Any:
        try:
            kernel = njit(cache=True, nogil=True, error_model="numpy", **options)(function)
        except RuntimeError as error:
            # Nobody may write beside the package, or at home: the kernel is compiled in every process.
            if "no locator available" not in str(error):
                raise
            kernel = njit(nogil=True, error_model="numpy", **options)(function)
        # Without a compiler (NUMBA_DISABLE_JIT) the kernel is the function.
        if type(getattr(kernel, "_cache", None)) is FunctionCache:
            _keep_with_what_it_takes_in(kernel, function)
        return kernel

    return made


#: Compiles a kernel when it is first called.
compiled = compiled_with()
