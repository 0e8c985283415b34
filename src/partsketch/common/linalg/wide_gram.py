"""Gram matrices of many columns, made in two halves of the rows that threads share.

Halves depend on the number of rows alone, so a product has the same bits whoever makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.helpers import share
from partsketch.common.linalg.lanes import LANES
from partsketch.common.linalg.panel_kernels import add_halves, gram_of_many, room_for_strip

FloatArray = NDArray[np.float64]

#: Rows from which on a product is made in two halves.
_LEAST_TO_HALVE = 512

#: From more columns than this on sums of two halves are worth sharing, so many rows at a time.
_NARROWEST_SHARED, _ROWS_AT_ONCE = 512, 128


class Rows(Protocol):
    """Rows as `sketches.accumulator.DenseRows` holds them: the weights of all of them, or none."""

    @property
    def features(self) -> FloatArray: ...  # noqa: D102

    @property
    def targets(self) -> FloatArray: ...  # noqa: D102

    @property
    def roots(self) -> FloatArray: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class _Plain:
    features: FloatArray
    targets: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    roots: FloatArray = field(default_factory=lambda: np.empty(0))


class WideGram:
    """Room for the Gram matrix of the columns [1, features, targets], more than `WIDEST_KERNEL` of them.

    Only what is on and above the diagonal is made; `mirror` makes the rest.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._halves: FloatArray = np.empty((0, 0, 0))
        self._strips: list[FloatArray] = []

    def multiply(self, rows: Rows, ones: int = 0, begin: int = 0, end: int | None = None) -> Self:
        """Make the Gram matrix of rows begin to end, which lie one after another, features as floats of either kind."""
        if not self._strips:
            padded = -(-self._width // LANES) * LANES
            self._halves = np.empty((2, padded, padded))
            self._strips = [room_for_strip(padded) for _ in range(2)]
        features, targets = rows.features, rows.targets
        end = len(features) if end is None else end
        middle = begin + (end - begin) // 2 if end - begin >= _LEAST_TO_HALVE else end
        places = [values.__array_interface__["data"][0] for values in (features, targets)]
        given = (places[0], features.dtype == np.float32, features.shape[1], places[1], targets.shape[1], rows.roots)
        parts = zip((begin, middle), (middle, end), self._strips, self._halves, strict=True)
        share([partial(gram_of_many, *given, first, last, ones, strip, half) for first, last, strip, half in parts])
        return self

    def diagonal(self) -> FloatArray:
        """Return the sums of squares."""
        first, second = (np.diagonal(half)[: self._width] for half in self._halves)
        return np.asarray(first + second)

    def add_to(self, total: FloatArray, scale: FloatArray, out: FloatArray) -> None:
        """Write total + D G D, D being the diagonal matrix of scales, on and above the diagonal."""
        step = self._width if self._width <= _NARROWEST_SHARED else _ROWS_AT_ONCE
        share(
            [
                partial(add_halves, total, self._halves, scale, out, begin, min(begin + step, self._width))
                for begin in range(0, self._width, step)
            ]
        )


def wide_gram(rows: FloatArray) -> FloatArray:
    """Return the whole Gram matrix of the columns of some rows."""
    width = rows.shape[1]
    product, out = WideGram(width), np.zeros((width, width))
    product.multiply(_Plain(np.ascontiguousarray(rows)))
    product.add_to(out, np.ones(width), out)
    return mirror(out)


def mirror(matrix: FloatArray) -> FloatArray:
    """Write what is above the diagonal below it as well, and return the matrix."""

    def write(begin: int) -> None:
        end = min(begin + _ROWS_AT_ONCE, len(matrix))
        corner = matrix[begin:end, begin:end]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        matrix[end:, begin:end] = matrix[begin:end, end:].T

    share([partial(write, begin) for begin in range(0, len(matrix), _ROWS_AT_ONCE)])
    return matrix
