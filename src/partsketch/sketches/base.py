"""What a sketch is: a specification, what it does to rows, and how pieces become one.

Three things are kept apart. A `SketchSpecification` is a small value: kind, size, seed. A `Sketch` says what the kind
needs and offers. An accumulator does the work on the rows of one stream. What it makes is a pure function of the
specification, the stream and the numbered rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class SketchSpecification:
    """Which random compression: kind, number of sketch rows m and seed (both None for the exact factor).

    A private sketch has no seed: its random numbers come from the operating system, and nobody can draw them again.
    """

    kind: str
    size: int | None = None
    seed: int | None = None
    private: bool = False

    def __post_init__(self) -> None:
        sketch = get_sketch(self.kind)
        if sketch.is_random:
            if self.size is None or self.size < 1:
                raise InputError(f"sketch_size is {self.size}: a {self.kind} sketch needs at least one row.")
            if self.private:
                if not sketch.can_be_private:
                    raise InputError(f"A {self.kind} sketch cannot be private: use the Gaussian one.")
                if self.seed is not None:
                    raise InputError("A private sketch takes no seed: its random numbers must not be drawn again.")
            elif self.seed is None or not 0 <= self.seed < 2**64:
                raise InputError(f"seed is {self.seed}: give a whole number from 0 to 2**64 - 1.")
        elif self.private:
            raise InputError(f"A {self.kind} summary is exact and tells all sums of products: it cannot be private.")
        elif self.size is not None or self.seed is not None:
            raise InputError(f"A {self.kind} summary is exact: it takes neither a size nor a seed.")


class Accumulator(ABC):
    """Takes the tiles of one stream in order and gives a small matrix Z with as many columns as the tiles."""

    @abstractmethod
    def add(self, tile: FloatArray, row_numbers: IntArray) -> bool:
        """Take one tile, held as its columns (columns × rows).

        Returns False, having taken nothing, when the tile has values that are not finite.
        """

    def add_columns(self, addresses: IntArray, rows: int) -> bool:
        """Take one tile whose columns of doubles lie at these addresses, padded like a tile.

        Returns False, having taken nothing, when it must be given as a tile. Saves a copy where rows arrive by column.
        """
        return False

    @abstractmethod
    def finish(self) -> FloatArray:
        """Return the matrix of what has been added."""


class Sketch(ABC):
    """A kind of compression.

    Attributes
    ----------
    kind
        The name users give.
    is_random
        Whether it has a size and a seed; False for the exact factor.
    has_exact_theory
        Whether the excess loss of estimators made from it has an exact formula.
    can_be_private
        Whether it can take its random numbers from the operating system.
    """

    kind: str
    is_random: bool
    has_exact_theory: bool
    can_be_private: bool = False

    @abstractmethod
    def accumulator(self, specification: SketchSpecification, stream: int, width: int, targets: int) -> Accumulator:
        """Return an empty accumulator for the rows of one stream with `width` columns, the last ones targets."""

    def prepare(self) -> None:  # noqa: B027 (most kinds have nothing to prepare)
        """Load compiled code now, so that a clock started afterwards measures the work alone."""

    @abstractmethod
    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return the matrix of two disjoint sets of rows of the same stream from the matrices of each."""


def get_sketch(kind: str) -> Sketch:
    """Return the sketch of this name."""
    sketches = {sketch.kind: sketch for sketch in all_sketches()}
    if kind not in sketches:
        known = ", ".join(repr(name) for name in sketches)
        raise InputError(f"sketch is {kind!r}: choose one of {known}.")
    return sketches[kind]


def all_sketches() -> Sequence[Sketch]:
    """Return every kind of sketch. A new one is a file of its own and a line here."""
    from partsketch.sketches.gaussian import GaussianSketch
    from partsketch.sketches.triangular import TriangularSketch

    return (GaussianSketch(), TriangularSketch())
