"""Copies of a sketch under several names: found by what their rows span, whatever order, sign or mixture they are in.

Two sketches of different rows never have the same Gram matrix ZᵀZ, to nine digits, by chance. A copy has, when its rows
were exchanged, multiplied by −1 or turned by any orthogonal matrix, and so has an exact factor of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.sketches.base import get_sketch
from partsketch.summaries.summary import Summary, common_centre

FloatArray = NDArray[np.float64]

#: Products of the same numbers in another order differ by roundings, a few thousand of 2⁻⁵² at most.
_ROUNDING = 1e-10
#: Neighbours by size that are looked at: more of them than that were made to be alike, and not by copying.
_NEIGHBOURS = 32


@dataclass(frozen=True)
class _Block:
    """Rows of one part of a random sketch, or all of an exact factor, columns in units of their size."""

    summary: int
    rows: FloatArray
    size: float


def find_twins(summaries: Sequence[Summary]) -> tuple[int, int] | None:
    """Return the numbers of two summaries that hold the same sketch, or None; they may be one and the same."""
    # Around their centre: columns far from zero would all look alike.
    centre = common_centre(summaries)
    matrices = [summary.rows.moved(-centre).high if centre.any() else summary.matrix for summary in summaries]
    units = np.max([np.abs(matrix).max(axis=0) for matrix in matrices], axis=0)
    scale = np.divide(1.0, units, out=np.zeros_like(units), where=units > 0)
    blocks: list[_Block] = []
    for number, (summary, matrix) in enumerate(zip(summaries, matrices, strict=True)):
        sizes = [matrix.shape[0]]
        if get_sketch(summary.kind).is_random:
            # Parts are sketches of their own; factors of several parts are one.
            sizes = [part.size for part in summary.parts]
        blocks += _blocks(number, matrix * scale, sizes)
    blocks.sort(key=lambda block: block.size)
    for i, block in enumerate(blocks):
        for other in blocks[i + 1 : i + 1 + _NEIGHBOURS]:
            if other.size > block.size * (1 + _ROUNDING):
                break
            if _same_gram(block.rows, other.rows):
                first, second = sorted((block.summary, other.summary))
                return first, second
    return None


def _blocks(number: int, matrix: FloatArray, sizes: Sequence[int]) -> Iterator[_Block]:
    """Yield what may be a copy."""
    stops = np.cumsum(sizes)
    for start, stop in zip(stops - sizes, stops, strict=True):
        rows = matrix[start:stop]
        # The sum of squares is the same for all copies.
        squares = float(np.sum(rows**2))
        if squares > 0:
            yield _Block(number, rows, squares)


def _same_gram(first: FloatArray, second: FloatArray) -> bool:
    """Whether the Gram matrices agree, seen through a few fixed directions: no matrix of columns × columns is made."""
    directions = np.random.default_rng(0).choice([-1.0, 1.0], size=(first.shape[1], 4))
    products = [rows.T @ (rows @ directions) for rows in (first, second)]
    room = _ROUNDING * np.sum(first**2)
    return bool((np.abs(products[0] - products[1]) <= room).all())
