"""Copies of a sketch under several names: found by what their rows span, whatever order, sign or mixture they are in.

Two sketches of different rows never have the same Gram matrix ZᵀZ, to nine digits, by chance. A copy has, when its rows
were exchanged, multiplied by −1 or turned by any orthogonal matrix, and so has an exact factor of the same rows.

A copy whose numbers were all multiplied by one has the Gram matrix of the other up to a factor. Honest files may have
that as well: exact ones of balanced designs, samples and sums with signs of rows that take few values, any of rows that
span one direction alone. Gaussian and orthogonal sketches of fewer rows than the data have are continuous: from two
directions on, proportional Gram matrices are no chance. So factors are looked for in these, and only there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.sketches.base import get_sketch
from partsketch.summaries.summary import Summary, common_centre

FloatArray = NDArray[np.float64]

#: Products of the same numbers in another order differ by roundings, a few thousand of 2⁻⁵² at most.
_ROUNDING = 1e-10
#: Neighbours by size that are looked at: more of them than that were made to be alike, and not by copying.
_NEIGHBOURS = 32
#: Part of the rows that their second direction holds at least. In it and across it, Gram matrices of m rows differ by
#: some 0.01/√m of their size: that two agree to ten digits has a chance below 1e-12, also with ten thousand rows.
_SECOND = 0.01


@dataclass(frozen=True)
class _Block:
    """Rows of one part of a random sketch, or all of an exact factor, columns in units of their size."""

    summary: int
    rows: FloatArray
    size: float
    continuous: bool

    def has_directions(self) -> bool:
        """Tell whether a factor can be told from chance: the second direction of the rows holds enough of them."""
        if not self.continuous:
            return False
        seen = self.rows @ _directions(self.rows.shape[1])
        squares = np.linalg.eigvalsh(seen.T @ seen)
        return bool(squares[-2] > _SECOND * squares[-1])

    def in_its_unit(self) -> _Block:
        """Return the block without its scale, and a size that is the same for all multiples of it."""
        rows = self.rows / np.sqrt(self.size)
        return replace(self, rows=rows, size=1.0 + float(np.sum((rows @ _directions(rows.shape[1])[:, 0]) ** 2)))


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
        blocks += _blocks(number, matrix * scale, sizes, _is_continuous(summary))
    return _alike(blocks) or _alike([block.in_its_unit() for block in blocks if block.has_directions()])


def _is_continuous(summary: Summary) -> bool:
    """Tell whether the Gram matrix of every part is a continuous random matrix, whatever the rows are."""
    law = get_sketch(summary.kind).law
    if law is None or not law.is_exact:
        return False
    # An orthogonal sketch of no more rows than it has itself is exact; of one part among several they are not told.
    rotation = law.rotation(summary.row_count)
    return rotation == math.inf or (len(summary.parts) == 1 and rotation > summary.height)


def _alike(blocks: list[_Block]) -> tuple[int, int] | None:
    """Return the numbers of two summaries with blocks of the same Gram matrix."""
    blocks = sorted(blocks, key=lambda block: block.size)
    for i, block in enumerate(blocks):
        for other in blocks[i + 1 : i + 1 + _NEIGHBOURS]:
            if other.size > block.size * (1 + _ROUNDING):
                break
            if _same_gram(block.rows, other.rows):
                first, second = sorted((block.summary, other.summary))
                return first, second
    return None


def _blocks(number: int, matrix: FloatArray, sizes: Sequence[int], continuous: bool) -> Iterator[_Block]:
    """Yield what may be a copy."""
    stops = np.cumsum(sizes)
    for start, stop in zip(stops - sizes, stops, strict=True):
        rows = matrix[start:stop]
        # The sum of squares is the same for all copies.
        squares = float(np.sum(rows**2))
        if squares > 0:
            yield _Block(number, rows, squares, continuous)


def _same_gram(first: FloatArray, second: FloatArray) -> bool:
    """Whether the Gram matrices agree, seen through a few fixed directions: no matrix of columns × columns is made."""
    directions = _directions(first.shape[1])
    products = [rows.T @ (rows @ directions) for rows in (first, second)]
    room = _ROUNDING * np.sum(first**2)
    return bool((np.abs(products[0] - products[1]) <= room).all())


def _directions(columns: int) -> FloatArray:
    return np.random.default_rng(0).choice([-1.0, 1.0], size=(columns, 4))
