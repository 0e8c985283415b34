"""How kernels are compiled, said once.

Compiled code is kept on disk, holds no interpreter lock, and does not look for divisions by zero: the check is a
branch, and a branch stops vectorisation. Sums are not reordered and nothing is fused unless a kernel says so, hence the
same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled_with(**options: Any) -> Callable[[Any], Any]:
    """Return the decorator of a kernel that needs more of the compiler than others do."""

    def made(function: Any) -> Any:
        return njit(cache=True, nogil=True, error_model="numpy", **options)(function)

    return made


#: Compiles a kernel when it is first called.
compiled = compiled_with()
