"""From summaries to the moments that the theory works with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from partsketch.sketches.base import law_of_kind
from partsketch.summaries.summary import Summary
from partsketch.theory.many_moments import many_moments
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.sketch_moments import SketchMoments, read_sketch, sketch_moments

FloatArray = NDArray[np.float64]


def exact_moments(
    summaries: Sequence[Summary], features: tuple[str, ...], target: str, free_columns: int
) -> list[PartitionMoments]:
    """Return the moments of each partition from its exact summary."""
    columns = (*features, target)
    factors = [summary.select(columns) for summary in summaries]
    return many_moments(factors, [summary.row_count for summary in summaries], free_columns)


def moments_of_sketches(
    summaries: Sequence[Summary], features: tuple[str, ...], target: str, free_columns: int
) -> SketchMoments:
    """Return unbiased estimates of the moments of each partition from its sketch."""
    return sketch_moments(
        _Selected(summaries, (*features, target)),
        [summary.row_count for summary in summaries],
        sketch=law_of_kind(summaries[0].kind),
        free_columns=free_columns,
    )


class _Selected(Sequence[FloatArray]):
    """Columns of many summaries, copied when they are looked at."""

    def __init__(self, summaries: Sequence[Summary], columns: tuple[str, ...]) -> None:
        self._summaries, self._columns = summaries, columns

    def __len__(self) -> int:
        return len(self._summaries)

    @overload
    def __getitem__(self, number: int) -> FloatArray: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[FloatArray]: ...

    def __getitem__(self, number: int | slice) -> FloatArray | Sequence[FloatArray]:
        if isinstance(number, slice):
            return _Selected(self._summaries[number], self._columns)
        return self._summaries[number].select(self._columns)


def read_summary(summary: Summary, columns: tuple[str, ...], free_columns: int) -> PartitionMoments:
    """Return the moments of a sketch itself."""
    return read_sketch(summary.select(columns), free_columns=free_columns, source_rows=summary.row_count)


class FitMoments:
    """Moments of all partitions for one target, made when first asked for: certificate and inference share them."""

    def __init__(self, summaries: Sequence[Summary], features: tuple[str, ...], target: str, free_columns: int) -> None:
        self._summaries = summaries
        self._asked = (features, target, free_columns)

    @cached_property
    def exact(self) -> list[PartitionMoments]:
        """Moments from exact summaries."""
        return exact_moments(self._summaries, *self._asked)

    @cached_property
    def estimated(self) -> SketchMoments:
        """Unbiased estimates of the moments of each partition from its sketch."""
        return moments_of_sketches(self._summaries, *self._asked)

    @property
    def matrices(self) -> list[FloatArray]:
        """The rows of each summary, features and then the target."""
        features, target, _ = self._asked
        return [summary.select((*features, target)) for summary in self._summaries]

    @cached_property
    def sketches(self) -> Sequence[PartitionMoments]:
        """Moments of the sketches themselves."""
        if "estimated" in self.__dict__:
            return self.estimated.sketches
        features, target, free_columns = self._asked
        return [read_summary(summary, (*features, target), free_columns) for summary in self._summaries]
