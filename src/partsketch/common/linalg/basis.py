"""Which of dependent columns the others are made of: those that are made of them with small shares.

Columns that stand first may nearly depend on one another. Others are then made of them with huge shares, which cancel,
and the solution of least norm, a difference of huge numbers, keeps few digits of what it says of rows outside the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import DoubleDouble, Factor

FloatArray = NDArray[np.float64]

#: Shares that cost two digits at most: the smallest singular value of the chosen columns is then that of all, over this
#: and the root of how many there are.
_LARGEST_SHARE = 100.0
#: Exchanges go on until shares are no larger: the volume of the chosen columns doubles with each.
_SMALL_SHARE = 2.0
#: After this many factors the shares are taken as they are: those of nearly dependent columns are themselves rounded.
_MOST_FACTORS = 4


def shares_of(factor: Factor) -> FloatArray:
    """Return what each column that is not kept is made of, one column for each."""
    from partsketch.common.linalg.double_double import DoubleDouble

    width, (high, low) = factor.kept.size, factor.rows
    dependent = np.flatnonzero(~factor.kept)
    return factor.solve(DoubleDouble(high[:width, dependent], low[:width, dependent])).high


def well_chosen(
    gram: DoubleDouble, factor: Factor, shares: FloatArray, free: int, rounding: float, units: FloatArray
) -> tuple[NDArray[np.intp], Factor]:
    """Return an order of the columns, and its factor, in which the dependent ones are made of others by small shares.

    As many columns stay independent as in the given factor, which is in the order of the columns and has these shares.
    `units` are what the columns have been multiplied by: shares are compared without them. The free columns stay.
    """
    from partsketch.common.linalg.double_double import DoubleDouble, factor_gram

    width, rank, free = factor.kept.size, int(factor.kept.sum()), int(factor.kept[:free].sum())
    order = np.arange(width)
    for _ in range(_MOST_FACTORS):
        kept = factor.kept
        plain = shares[kept] * units[order[kept], None] / units[order[~kept]]
        if not np.abs(plain[free:]).max(initial=0.0) > _LARGEST_SHARE:
            break
        moved = np.concatenate([*exchanged(order[kept], order[~kept], plain, free), range(width, len(gram.high))])
        inside = np.ix_(moved, moved)
        found = factor_gram(DoubleDouble(gram.high[inside], gram.low[inside]), width, free, 0.0, rounding, rank)
        if not found.kept[:rank].all():
            break
        order, factor = moved[:width], found
        shares = shares_of(factor)
    return order, factor


def exchanged(
    chosen: NDArray[np.intp], rest: NDArray[np.intp], shares: FloatArray, free: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Exchange chosen columns for others until those are made of them with small shares; both in their old order.

    The first `free` stay. A step of Gauss and Jordan turns the shares into those of the other choice.
    """
    chosen, rest, shares = chosen.copy(), rest.copy(), shares.copy()
    for _ in range(8 * shares.size):
        place = np.unravel_index(np.argmax(np.abs(shares[free:])), shares[free:].shape)
        row, column = int(place[0]) + free, int(place[1])
        pivot = shares[row, column]
        if not abs(pivot) > _SMALL_SHARE:
            break
        chosen[row], rest[column] = rest[column], chosen[row]
        lead, aside = shares[row] / pivot, shares[:, column].copy()
        shares -= aside[:, None] * lead
        shares[row] = lead
        shares[:, column] = -aside / pivot
        shares[row, column] = 1.0 / pivot
    chosen[free:].sort()
    return chosen, np.sort(rest)
