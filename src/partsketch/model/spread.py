"""Units of columns: powers of two close to their spreads, from the rows of summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.helpers import shared_map
from partsketch.common.linalg.wide_triangles import NARROWEST_SHARED

FloatArray = NDArray[np.float64]

#: Numbers of half a megabyte, which stay in the cache of a core while they are worked on.
_NUMBERS_IN_CACHE = 2**16
#: Strips that helpers share at a time.
_TOGETHER = 16

#: Part of a column's sum of squares that centring leaves of a constant: the square of its rounding, with room. It
#: decides a unit, and nothing of rank.
_CONSTANT = 1e-24


def spread_units(stacks: Callable[[], Iterable[FloatArray]], weight: float, free: int) -> FloatArray:
    """Return powers of two close to the spreads of the columns in all matrices together; one for none."""
    largest = np.max([np.abs(stack).max(axis=0, initial=0.0) for stack in _strips(stacks())], axis=0)
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)

    # Multiplying takes a tenth of the time of `ldexp`, and a power of two rounds nothing.
    powers = np.ldexp(1.0, -np.clip(exponents, -1000, 1000))

    def summed(term: Callable[[FloatArray], FloatArray]) -> FloatArray:
        return _sum(lambda rows: term(rows * powers), _strips(stacks()))

    squares = summed(_squares)
    count = float(weight)
    if free:
        means = summed(lambda rows: rows[:, 0] @ rows) / max(squares[0], 1e-300)
        left = summed(lambda rows: _squares(rows - rows[:, :1] * means))
        # What a constant column leaves is rounding.
        squares = np.where(left > _CONSTANT * squares, left, squares)
        count = max(squares[0], 1e-300)
    # The sum of the weights may be beyond doubles, its logarithm is not.
    logarithm = np.log2(max(count, 1e-300)) + (2.0 * exponents[0] if free else 0.0)
    with np.errstate(all="ignore"):
        spread = 0.5 * (np.log2(squares) - logarithm)
    # Spreads of small whole numbers are roots of fractions, half-way between two powers often: borders lie elsewhere.
    powers = np.where(np.isfinite(spread), np.floor(spread + 0.3) + exponents, 0.0)
    unit = np.ldexp(1.0, np.clip(powers, -1000, 1000).astype(np.int64))
    unit[:free] = 1.0
    return np.asarray(unit)


def _strips(stacks: Iterable[FloatArray]) -> Iterator[FloatArray]:
    """Yield some rows at a time: what is made of them stays in the cache of a core."""
    for stack in stacks:
        height = max(1, _NUMBERS_IN_CACHE // max(1, stack.shape[1]))
        yield from (stack[begin : begin + height] for begin in range(0, max(1, len(stack)), height))


def _squares(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", rows, rows))


def _sum(term: Callable[[FloatArray], FloatArray], strips: Iterator[FloatArray]) -> FloatArray:
    """Add up a term of every strip, in their order; those of many columns are shared with helpers, some at a time."""
    some = iter(lambda: list(islice(strips, _TOGETHER)), [])
    together = (shared_map(term, part) if part[0].shape[1] > NARROWEST_SHARED else map(term, part) for part in some)
    return reduce(np.add, chain.from_iterable(together))
