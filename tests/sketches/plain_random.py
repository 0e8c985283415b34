"""Every random stream, written out in plain Python from its description: no arrays of words, no compiled code.

Slow and simple on purpose. The counter holds row (two words), group and stream; the key is the seed, mixed with the
number of the purpose by Philox itself.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

FloatArray = NDArray[np.float64]
Key = tuple[int, int]

_LOW = 0xFFFFFFFF
PURPOSES = ("gaussian", "shuffle", "sparse_sign", "count_sketch", "row_sample", "leverage_sample",
            "leverage_directions", "srht", "orthogonal")  # fmt: skip


def philox(counter: tuple[int, int, int, int], key: Key) -> tuple[int, int, int, int]:
    """Philox4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011)."""
    x0, x1, x2, x3 = counter
    key0, key1 = key
    for _ in range(10):
        first, second = x0 * 0xD2511F53, x2 * 0xCD9E8D57
        x0, x1, x2, x3 = (second >> 32) ^ x1 ^ key0, second & _LOW, (first >> 32) ^ x3 ^ key1, first & _LOW
        key0, key1 = (key0 + 0x9E3779B9) & _LOW, (key1 + 0xBB67AE85) & _LOW
    return x0, x1, x2, x3


def key_of(seed: int, purpose: str) -> Key:
    words = philox((PURPOSES.index(purpose), 0, 0, 0), (seed & _LOW, seed >> 32))
    return words[0], words[1]


def words_of(key: Key, stream: int, row: int, group: int = 0) -> tuple[int, int, int, int]:
    return philox((row & _LOW, row >> 32, group, stream), key)


def long_word(key: Key, stream: int, row: int) -> int:
    """64 bits for one row: the first word is the lower half."""
    words = words_of(key, stream, row)
    return words[1] << 32 | words[0]


def shared_word(key: Key, stream: int, row: int) -> int:
    """32 bits for one row; four rows share a counter."""
    return words_of(key, stream, row // 4)[row % 4]


def normal(key: Key, stream: int, row: int, column: int) -> float:
    """Box–Muller: words 0 and 2 are radii, 1 and 3 angles; four columns share a counter."""
    words = words_of(key, stream, row, column // 4)
    pair = 2 * (column % 4 // 2)
    radius = math.sqrt(-2 * math.log((words[pair] + 0.5) / 2**32))
    angle = 2 * math.pi * (words[pair + 1] + 0.5) / 2**32
    return radius * (math.sin(angle) if column % 2 else math.cos(angle))


def shuffled_partition(seed: int, row: int, count: int) -> int:
    return (long_word(key_of(seed, "shuffle"), 0, row) >> 32) * count >> 32


def gaussian(size: int, seed: int, stream: int, rows: list[int]) -> FloatArray:
    key = key_of(seed, "gaussian")
    return np.array([[normal(key, stream, row, i) for row in rows] for i in range(size)]) / math.sqrt(size)


def orthogonal(size: int, seed: int, stream: int, factor: FloatArray, row_count: int) -> FloatArray:
    """N₁ T⁻¹ R, T the triangle of N₁ above a triangle of normals and chi variates, of fewer and fewer rows."""
    key, width = key_of(seed, "orthogonal"), len(factor)
    first = np.array([[normal(key, stream, row, column) for column in range(width)] for row in range(size)])
    rest = np.zeros((width, width))
    for row in range(width):
        uniform = ((long_word(key, stream, 2**41 + row) >> 12) + 0.5) / 2**52
        rest[row, row] = math.sqrt(chi2.ppf(uniform, row_count - size - row))
        rest[row, row + 1 :] = [normal(key, stream, 2**40 + row, column) for column in range(row + 1, width)]
    gram = first.T @ first + rest.T @ rest
    return math.sqrt(row_count / size) * first @ np.linalg.solve(np.linalg.cholesky(gram).T, factor)


def hadamard_rows(seed: int, stream: int, size: int, padded: int) -> list[int]:
    """Rows of the Hadamard matrix that are kept: drawn until there are enough different ones."""
    key, draw = key_of(seed, "srht"), 0
    kept: list[int] = []
    while len(kept) < size:
        row = long_word(key, stream, 2**62 + draw) % padded
        kept += [row] if row not in kept else []
        draw += 1
    return sorted(kept)


def srht(size: int, seed: int, stream: int, rows: list[int], padded: int) -> FloatArray:
    """S for positions of rows in their partition, out of a power of two of them."""
    key = key_of(seed, "srht")
    signs = [1 - 2 * (shared_word(key, stream, row) % 2) for row in rows]
    kept = hadamard_rows(seed, stream, size, padded)
    return np.array([[s * (-1) ** (h & row).bit_count() for row, s in zip(rows, signs, strict=True)] for h in kept]) / (
        math.sqrt(size)
    )


def count_sketch(size: int, seed: int, stream: int, rows: list[int]) -> FloatArray:
    key, out = key_of(seed, "count_sketch"), np.zeros((size, len(rows)))
    for place, row in enumerate(rows):
        word = shared_word(key, stream, row)
        out[word * size >> 32, place] = 1 - 2 * (word % 2)
    return out


def sparse_sign(size: int, seed: int, stream: int, rows: list[int], sparsity: int) -> FloatArray:
    key, out = key_of(seed, "sparse_sign"), np.zeros((size, len(rows)))
    for place, row in enumerate(rows):
        taken: list[int] = []
        for j in range(sparsity):
            # A single word is taken from a counter that four rows share.
            word = words_of(key, stream, row, j // 4)[j % 4] if sparsity > 1 else shared_word(key, stream, row)
            last = size - sparsity + j
            chosen = word * (last + 1) >> 32
            taken.append(last if chosen in taken else chosen)
            out[taken[-1], place] = (1 - 2 * (word % 2)) / math.sqrt(sparsity)
    return out


def row_sample(size: int, seed: int, stream: int, rows: list[int]) -> FloatArray:
    key = key_of(seed, "row_sample")
    order = sorted(range(len(rows)), key=lambda place: long_word(key, stream, rows[place]))
    return np.eye(len(rows))[order[:size]] * math.sqrt(len(rows) / size)


def leverage_sample(size: int, seed: int, stream: int, features: FloatArray, directions: int = 16) -> FloatArray:
    """S for rows numbered from zero: scores from a sparse sign sketch, then priority sampling."""
    rows, columns = features.shape
    first = max(4 * columns, columns + 16)
    looked = sparse_sign(first, seed, stream, list(range(rows)), 8) @ features
    _, values, rotation = np.linalg.svd(looked, full_matrices=False)
    white = features @ (rotation.T / values)
    if columns > directions:
        key = key_of(seed, "leverage_directions")
        drawn = [[normal(key, 0, row, column) for row in range(columns)] for column in range(directions)]
        white = white @ np.array(drawn).T / math.sqrt(directions)
    scores = 0.9 / columns * np.sum(white**2, axis=1) + 0.1 / rows
    key = key_of(seed, "leverage_sample")
    uniform = np.array([((long_word(key, stream, row) >> 11) + 0.5) / 2**53 for row in range(rows)])
    order = np.argsort(-scores / uniform, kind="stable")
    kept, threshold = order[:size], (scores / uniform)[order[size]]
    return np.asarray(np.eye(rows)[kept] * np.sqrt(np.maximum(1.0, threshold / scores[kept]))[:, None])
