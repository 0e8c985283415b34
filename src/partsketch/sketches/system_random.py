"""Normal numbers from the operating system's randomness: nobody can draw them again, with or without a seed.

Every number takes 32 fresh bits of `os.urandom`; they become normals by the polynomials of `counter_random`.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.compiled import compiled
from partsketch.sketches.random import negative_logs, sine_cosine


@compiled
def _fill(words, scale, out):  # type: ignore[no-untyped-def]
    doubled = 2.0 * scale * scale
    rows = out.shape[1]
    for group in range(out.shape[0] // 4):
        row0 = out[4 * group]
        row1 = out[4 * group + 1]
        row2 = out[4 * group + 2]
        row3 = out[4 * group + 3]
        first = words[4 * group * rows : (4 * group + 1) * rows]
        second = words[(4 * group + 1) * rows : (4 * group + 2) * rows]
        third = words[(4 * group + 2) * rows : (4 * group + 3) * rows]
        fourth = words[(4 * group + 3) * rows : (4 * group + 4) * rows]
        for r in range(rows):
            negative_log0, negative_log1 = negative_logs(np.uint64(first[r]), np.uint64(third[r]))
            radius = np.sqrt(negative_log0 * doubled)
            sine, cosine = sine_cosine(np.uint64(second[r]))
            row0[r] = radius * cosine
            row1[r] = radius * sine
            radius = np.sqrt(negative_log1 * doubled)
            sine, cosine = sine_cosine(np.uint64(fourth[r]))
            row2[r] = radius * cosine
            row3[r] = radius * sine


def fill_system_normals(scale: float, out: NDArray[np.float64]) -> None:
    """Fill `out`, whose number of rows is a multiple of four, with independent scale · N(0, 1)."""
    _fill(np.frombuffer(os.urandom(4 * out.size), dtype=np.uint32), scale, out)
