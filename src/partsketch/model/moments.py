"""From summaries to the moments that the theory works with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solution import Solution
from partsketch.summaries.law_of_sketches import law_of_sketches
from partsketch.summaries.summary import Summary
from partsketch.theory.many_moments import many_moments
from partsketch.theory.moments import PartitionMoments, triangular
from partsketch.theory.sketch_moments import SketchMoments, moments_of_parts

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
    parts = [read_summary(summary, (*features, target), free_columns) for summary in summaries]
    return _estimated(parts, summaries)


def _estimated(parts: Sequence[PartitionMoments], summaries: Sequence[Summary]) -> SketchMoments:
    return moments_of_parts(parts, [summary.row_count for summary in summaries], law_of_sketches(summaries))


def read_summary(summary: Summary, columns: tuple[str, ...], free_columns: int) -> PartitionMoments:
    """Return the moments of a sketch itself."""
    triangle = summary.triangle[:, summary.places(columns)]
    return PartitionMoments(triangle, summary.height, free_columns, summary.row_count)


class FitMoments:
    """Moments of all partitions for one target, made when first asked for: certificate and inference share them."""

    def __init__(
        self,
        summaries: Sequence[Summary],
        features: tuple[str, ...],
        target: str,
        free_columns: int,
        solutions: Sequence[Solution] = (),
        number: int = 0,
    ) -> None:
        self._summaries = summaries
        self._asked = (features, target, free_columns)
        # What was solved of each summary by itself, if that is known, and which of its targets is meant.
        self._solutions, self._number = solutions, number

    @cached_property
    def exact(self) -> list[PartitionMoments]:
        """Moments from exact summaries."""
        return exact_moments(self._summaries, *self._asked)

    @cached_property
    def estimated(self) -> SketchMoments:
        """Unbiased estimates of the moments of each partition from its sketch."""
        return _estimated(self.sketches, self._summaries)

    @property
    def matrices(self) -> list[FloatArray]:
        """The rows of each summary, features and then the target."""
        features, target, _ = self._asked
        return [summary.select((*features, target)) for summary in self._summaries]

    @cached_property
    def sketches(self) -> Sequence[PartitionMoments]:
        """Moments of the sketches themselves."""
        features, target, free_columns = self._asked
        columns = (*features, target)
        if not self._solutions:
            return [read_summary(summary, columns, free_columns) for summary in self._summaries]
        return [
            PartitionMoments.from_solution(
                triangular(summary.triangle[:, summary.places(columns)]),
                summary.height,
                free_columns,
                solution,
                self._number,
            )
            for summary, solution in zip(self._summaries, self._solutions, strict=True)
        ]
