"""The factors of all partitions side by side, in coordinates in which any regression among their columns is solved.

Columns are measured from a centre, in powers of two close to their spread, once for all questions. With an intercept
for each partition the first row and column of every factor are left out: what remains is measured from the partition's
own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.solve import factor_of_rows
from partsketch.model.coordinates import Coordinates
from partsketch.model.spread import spread_units
from partsketch.summaries.summary import Summary, common_centre, joined_rows
from partsketch.summaries.tasks import INTERCEPT

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Panel:
    """Factors of k partitions over the same q columns.

    Attributes
    ----------
    columns
        Their names; the ones come first, if they are there.
    high, low
        The factors, shape (k, rows, q), and what their doubles leave out; low is None where that is nothing.
    centre, unit
        What was taken off the columns, and what they were then divided by.
    row_counts, weight_sums
        Per partition.
    absorbed
        How many intercepts were taken out of the partitions beforehand: k, or 0.
    means
        With intercepts of partitions: the means of all columns in each partition, as they are, shape (k, q).
    """

    columns: tuple[str, ...]
    high: FloatArray
    low: FloatArray | None
    centre: FloatArray
    unit: FloatArray
    row_counts: NDArray[np.int64]
    weight_sums: FloatArray
    absorbed: int = 0
    means: FloatArray | None = None

    @property
    def count(self) -> int:
        """Number of partitions."""
        return len(self.high)

    @cached_property
    def row_count(self) -> int:
        """Rows of all partitions."""
        return int(self.row_counts.sum())

    @cached_property
    def weight_sum(self) -> float:
        """Weight of all partitions."""
        return float(self.weight_sums.sum())

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where columns are."""
        return [self._place[name] for name in names]

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.columns)}

    @cached_property
    def by_column(self) -> FloatArray:
        """The factors, shape (q, k, rows), so that some columns are quickly taken."""
        return np.ascontiguousarray(self.high.transpose(2, 0, 1))

    @cached_property
    def total(self) -> DoubleDouble:
        """The factor of all rows together."""
        return self.stacked(range(self.count))

    def stacked(self, partitions: Sequence[int]) -> DoubleDouble:
        """Return the factor of the rows of some partitions."""
        chosen = np.asarray(partitions, dtype=np.intp)
        width = self.high.shape[2]
        low = None if self.low is None else self.low[chosen].reshape(-1, width)
        return factor_of_rows(DoubleDouble.of(self.high[chosen].reshape(-1, width), low))

    def coordinates(self, features: Sequence[str], targets: Sequence[str]) -> Coordinates:
        """Return the coordinates of a regression among the columns."""
        chosen = self.places((*features, *targets))
        free = int(INTERCEPT in features)
        return Coordinates(len(features), free, self.centre[chosen], self.unit[chosen])


def make_panel(summaries: Sequence[Summary], intercept: str) -> Panel:
    """Return the panel of summaries for regressions with an intercept "common", "partition" or "none"."""
    first = summaries[0]
    width = len(first.columns)
    centred = intercept != "none"
    centre = common_centre(summaries) if centred else np.zeros(width)
    rows = joined_rows(centre, *summaries)
    counts = np.array([summary.row_count for summary in summaries], dtype=np.int64)
    weights = np.array([summary.weight_sum for summary in summaries])
    unit = spread_units(lambda: [rows.high], float(weights.sum()), int(centred))
    shape = (len(summaries), -1, width)
    high = (rows.high / unit).reshape(shape)
    low = (rows.low / unit).reshape(shape) if rows.low.any() else None
    if intercept != "partition":
        return Panel(first.columns, high, low, centre, unit, counts, weights)
    # The first row of a factor holds the sums of the columns, over the root of the weight.
    means = high[:, 0, :] / high[:, 0, :1] * unit + centre
    inner = (slice(None), slice(1, None), slice(1, None))
    return Panel(
        columns=first.columns[1:],
        high=np.ascontiguousarray(high[inner]),
        low=None if low is None else np.ascontiguousarray(low[inner]),
        centre=np.zeros(width - 1),
        unit=unit[1:],
        row_counts=counts,
        weight_sums=weights,
        absorbed=len(summaries),
        means=means[:, 1:],
    )
