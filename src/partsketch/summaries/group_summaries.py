"""Exact summaries of many groups that were summed side by side: each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.sketches.groups import GroupFactors
from partsketch.summaries.provenance import About, Part
from partsketch.summaries.summary import Summary

#: What each summary tells of itself: given its number, and its part as far as the rows tell.
Story = Callable[[int, Part], tuple[Part, About]]


class GroupSummaries(Sequence[Summary]):
    """Behaves as the tuple of all summaries; thousands of them take longer to make than the rows to sum.

    Parameters
    ----------
    factors
        Of all groups.
    columns
        Names, the intercept first.
    rows_seen
        How many rows the source had.
    story
        What else is told; None for nothing.
    """

    def __init__(
        self, factors: GroupFactors, columns: tuple[str, ...], rows_seen: int, story: Story | None = None
    ) -> None:
        self._factors, self.columns, self._rows_seen, self._story = factors, columns, rows_seen, story
        self._made: dict[int, Summary] = {}

    def told(self, story: Story) -> GroupSummaries:
        """Return the same numbers with another story."""
        return GroupSummaries(self._factors, self.columns, self._rows_seen, story)

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """Rows of each."""
        return self._factors.counts

    def __len__(self) -> int:
        return len(self._factors.groups)

    @overload
    def __getitem__(self, place: int) -> Summary: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Summary, ...]: ...
    def __getitem__(self, place: int | slice) -> Summary | tuple[Summary, ...]:
        numbers = range(len(self))[place]
        if isinstance(numbers, range):
            return tuple(self[number] for number in numbers)
        if numbers not in self._made:
            self._made[numbers] = self._summary(numbers)
        return self._made[numbers]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (list(self),)

    def _summary(self, number: int) -> Summary:
        found = self._factors
        rows, low = found.factor(number)
        centre = found.centres[number]
        if centre.any():
            rows, low = DoubleDouble.of(rows, low).moved(centre)
        count, weight = int(found.counts[number]), float(found.weights[number])
        part = Part(
            site="",
            stream=int(found.groups[number]),
            start=0,
            stop=self._rows_seen,
            size=len(rows),
            seed=None,
            contiguous=False,
        )
        about = About(weighted=weight != count, rows_dropped=0)
        if self._story is not None:
            part, about = self._story(number, part)
        return Summary(
            matrix=rows,
            columns=self.columns,
            kind="triangular",
            parts=(part,),
            row_count=count,
            weight_sum=weight,
            low=low,
            centre=centre,
            about=about,
        )
