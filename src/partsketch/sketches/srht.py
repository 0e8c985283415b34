"""Subsampled randomised Hadamard transform: S = √(P/m) · (m rows of the orthogonal H) · signs, P a power of two.

Plain functions on matrices in memory, for studies: the entry at (sketch row, data row) is
`± (−1)^popcount(h & row) / √m` and depends on seed, stream and the row's position alone. The transform needs to know P,
the next power of two of the row count, before the first row; streamed sketches do not know it, which is why this kind
is not among those that `fit` offers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partsketch.errors import InputError
from partsketch.sketches.base import FloatArray
from partsketch.sketches.counter_random import philox_words, random_words

#: Keeps the words of this sketch apart from those of every purpose in `counter_random`: the letters SRHT.
_PURPOSE = 0x53524854

#: Numbers that a pass of the transform goes over: half a megabyte stays in the second-level cache.
_CACHE_NUMBERS = 2**16


def padded_rows(row_count: int) -> int:
    """Return P, the smallest power of two that is not below the row count."""
    if row_count < 1:
        raise InputError(f"row_count is {row_count}: a Hadamard transform needs at least one row.")
    return 1 << (row_count - 1).bit_length()


def fast_walsh_hadamard(matrix: ArrayLike) -> FloatArray:
    """Multiply by the Hadamard matrix (entries ±1, natural order) in `P log₂ P` additions per column.

    Parameters
    ----------
    matrix : array of shape (P,) or (P, columns)
        P a power of two. It is left as it is.

    Returns
    -------
    array of the same shape
        `H A`, not normalised: applying it twice multiplies by P.

    Examples
    --------
    >>> fast_walsh_hadamard([1.0, 0.0, 0.0, 0.0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    work = np.array(matrix, dtype=np.float64, order="C")
    if work.ndim not in (1, 2) or work.shape[0] < 1 or work.shape[0] & (work.shape[0] - 1):
        raise InputError(f"matrix has shape {work.shape}: pad it with zero rows to a power of two of them.")
    _transform(work.reshape(work.shape[0], -1))
    return work


def _transform(work: FloatArray) -> None:
    """Transform along the first axis in place; tall matrices in two stages of blocks that stay in the cache."""
    rows, width = work.shape
    # The factors of H = H_a ⊗ H_b are applied one after the other.
    inner = 1 << max(0, (_CACHE_NUMBERS // width).bit_length() - 1)
    if 1 < inner < rows:
        for start in range(0, rows, inner):
            _transform(work[start : start + inner])
        outer = rows // inner
        blocks = work.reshape(outer, inner, width)
        step = max(1, _CACHE_NUMBERS // (outer * width))
        for start in range(0, inner, step):
            block = np.ascontiguousarray(blocks[:, start : start + step])
            _butterflies(block.reshape(outer, -1))
            blocks[:, start : start + step] = block
    else:
        _butterflies(work)


def _butterflies(work: FloatArray) -> None:
    half = 1
    while half < work.shape[0]:
        pairs = work.reshape(-1, 2, half, work.shape[1])
        difference = pairs[:, 0] - pairs[:, 1]
        pairs[:, 0] += pairs[:, 1]
        pairs[:, 1] = difference
        half *= 2


def _words(seed: int, stream: int, numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    if not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed}: give a whole number from 0 to 2**64 - 1.")
    zero = np.uint64(0)
    words = philox_words(np.uint64(_PURPOSE), zero, zero, zero, np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32))
    return random_words((np.uint64(words[0]), np.uint64(words[1])), stream, numbers)


def srht_signs(row_count: int, seed: int, stream: int = 0) -> FloatArray:
    """Return the random sign of every row, ±1, a function of seed, stream and the row's position."""
    words = _words(seed, stream, np.arange(row_count, dtype=np.int64))
    return np.where(words & np.uint64(1), 1.0, -1.0)


def srht_sampled_rows(row_count: int, size: int, seed: int, stream: int = 0) -> NDArray[np.int64]:
    """Return which m of the P rows of the Hadamard matrix are kept, drawn without replacement."""
    padded = padded_rows(row_count)
    if not 1 <= size <= padded:
        raise InputError(f"sketch_size is {size}: an SRHT of {row_count} rows has from 1 to {padded} rows.")
    # The m smallest of P uniform words are a simple random sample. Row numbers from 2⁶² keep them off the signs.
    words = _words(seed, stream, np.arange(padded, dtype=np.int64) + np.int64(2**62))
    return np.sort(np.argpartition(words, size - 1)[:size]).astype(np.int64)


def srht_matrix(row_count: int, size: int, seed: int, stream: int = 0) -> FloatArray:
    """Return S itself, m × rows, with `E[SᵀS] = I`: for checks, and for rows that arrive one at a time.

    Parameters
    ----------
    row_count : int
        Rows of the data.
    size : int
        Rows m of the sketch, at most P.
    seed, stream : int
        Which S.

    Returns
    -------
    array of shape (m, rows)
        Entries ±1/√m.
    """
    kept = srht_sampled_rows(row_count, size, seed, stream)
    parity = np.bitwise_count(kept[:, None] & np.arange(row_count, dtype=np.int64)[None, :]) & 1
    return np.asarray((1.0 - 2.0 * parity) * srht_signs(row_count, seed, stream) / np.sqrt(size), dtype=np.float64)


def srht(matrix: ArrayLike, size: int, seed: int, stream: int = 0) -> FloatArray:
    """Return `S A` by the fast transform: `O(P log P)` per column whatever m is.

    Parameters
    ----------
    matrix : array of shape (rows, columns)
        A.
    size : int
        Rows m of the sketch.
    seed, stream : int
        Which S; the same as in `srht_matrix`.

    Returns
    -------
    array of shape (m, columns)
        The sketch.
    """
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2:
        raise InputError(f"matrix has shape {rows.shape}: pass a table of rows and columns.")
    kept = srht_sampled_rows(rows.shape[0], size, seed, stream)
    padded = np.zeros((padded_rows(rows.shape[0]), rows.shape[1]))
    np.multiply(rows, srht_signs(rows.shape[0], seed, stream)[:, None], out=padded[: rows.shape[0]])
    return np.asarray(fast_walsh_hadamard(padded)[kept] / np.sqrt(size))
