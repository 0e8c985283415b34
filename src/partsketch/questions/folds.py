"""Folds for cross-validation: groups of partitions, and for each the factor of all rows outside it.

Factors of the folds before and after are stacked from both ends; nothing is ever subtracted from a total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.solve import factor_of_rows
from partsketch.questions.panel import Panel

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fold:
    """One fold: the factor of its rows, of all other rows, and how much weight each has."""

    inside: FloatArray
    outside: FloatArray
    weight_inside: float
    weight_outside: float


def deal(count: int, folds: int | Sequence[int]) -> list[list[int]]:
    """Return the partitions of every fold: dealt one after the other, or as a list says for each partition."""
    if isinstance(folds, bool | float | str) or not isinstance(folds, int | np.integer | Iterable):
        raise InputError(f"folds is {folds!r}: give a whole number, or the fold of each partition.")
    if not isinstance(folds, int | np.integer):
        given = list(folds)
        if len(given) != count:
            raise InputError(f"folds names {len(given)} partitions: give the fold of each of the {count}.")
        groups = [[place for place, fold in enumerate(given) if fold == name] for name in dict.fromkeys(given)]
    else:
        if folds > count:
            raise InputError(
                f"{folds} folds need at least as many partitions, and there are {count}: ask for fewer folds, or "
                f'summarise with partition_by="shuffle", n_partitions={folds}.'
            )
        groups = [list(range(first, count, int(folds))) for first in range(int(folds))]
    if len(groups) < 2:
        raise InputError("Cross-validation needs at least two folds.")
    return groups


def make_folds(panel: Panel, groups: Sequence[Sequence[int]]) -> list[Fold]:
    """Return the folds with the factors inside and outside each."""
    inside = [panel.stacked(group) for group in groups]
    before: list[DoubleDouble | None] = [None]
    after: list[DoubleDouble | None] = [None]
    for factor, other in zip(inside[:-1], inside[:0:-1], strict=True):
        before.append(_joined(before[-1], factor))
        after.append(_joined(after[-1], other))
    after.reverse()
    weights = [float(panel.weight_sums[list(group)].sum()) for group in groups]
    total = sum(weights)
    folds = []
    for factor, earlier, later, weight in zip(inside, before, after, weights, strict=True):
        outside = earlier if later is None else _joined(earlier, later)
        assert outside is not None
        folds.append(Fold(factor.high, outside.high, weight, total - weight))
    return folds


def _joined(first: DoubleDouble | None, second: DoubleDouble) -> DoubleDouble:
    if first is None:
        return second
    return factor_of_rows(DoubleDouble(np.vstack([first.high, second.high]), np.vstack([first.low, second.low])))
