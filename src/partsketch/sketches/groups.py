"""Exact summaries of many groups at once: one table with a line for each group, instead of an object for each.

A line is the number of the group, its rows, its weight, how many columns there are, what is taken off them, and their
sums of products; in a table with twice the digits, also what the doubles of the sums leave out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.column_kernels import GROUP
from partsketch.common.linalg.double_double import DoubleDouble, factor_gram
from partsketch.common.linalg.lanes import LANES
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, IntArray, Stream
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.gram import SAFE_INFLATION, inflation, power_of_two
from partsketch.sketches.kernels.group_sums import HEAD, add_groups, doubtful_groups, factor_groups, sum_groups
from partsketch.sketches.triangular import TriangularSketch

#: Rows whose columns are multiplied at once: those of a few should stay in the first-level cache.
_STRIP_ROWS = 512
#: Rows of a group that a segment should have: adding up its sums of products takes as long as those of some rows.
_ROWS_PER_GROUP = 128
#: Numbers that a segment of rows holds at most: 64 MB.
_MOST_NUMBERS = 2**23
#: Columns whose values are all smaller, or of which one is larger, have squares that get lost.
_SMALLEST, _LARGEST = 1e-140, 1e140


def group_segment_rows(width: int, groups: int) -> int:
    """Return how many row numbers make a segment: it depends on the number of columns and groups alone.

    Rows that stay in the cache are quicker to put in order; of many groups there should be some rows each.
    """
    rows = 2**16
    while rows < 2**18 and rows < _ROWS_PER_GROUP * groups:
        rows *= 2
    while rows > 2**12 and rows * width > _MOST_NUMBERS:
        rows //= 2
    return rows


@dataclass(frozen=True, eq=False)
class GroupTable:
    """The table of groups, taken apart."""

    groups: IntArray
    counts: IntArray
    weights: FloatArray
    centre: FloatArray
    high: FloatArray
    low: FloatArray | None

    @classmethod
    def read(cls, table: FloatArray, width: int) -> GroupTable:
        """Return what `written` wrote."""
        count, first = len(table), HEAD + width
        second = first + width * width
        shape = (count, width, width)
        return cls(
            groups=table[:, 0].astype(np.int64),
            counts=table[:, 1].astype(np.int64),
            weights=table[:, 2],
            centre=table[:, HEAD:first],
            high=table[:, first:second].reshape(shape),
            low=table[:, second:].reshape(shape) if table.shape[1] > second else None,
        )

    def written(self) -> FloatArray:
        """Return all of it in one table."""
        count = len(self.groups)
        widths = np.full(count, self.centre.shape[1])
        head = np.column_stack([self.groups, self.counts, self.weights, widths]).astype(np.float64)
        parts = [head, self.centre, self.high.reshape(count, -1)]
        return np.hstack(parts if self.low is None else [*parts, self.low.reshape(count, -1)])


class SegmentSums(NamedTuple):
    """The table of a segment, the least and largest value of every column, and whether all sums are finite."""

    table: FloatArray
    ends: FloatArray
    finite: bool


def summarise_groups(rows: FloatArray, roots: FloatArray, weights: FloatArray, groups: IntArray) -> SegmentSums:
    """Return the table of a segment's rows, whose first column is ones; `roots` are empty where each counts once."""
    order, present, starts = _sorted(groups)
    width = rows.shape[1]
    centre, high = np.zeros((len(present), width)), np.empty((len(present), width, width))
    # Columns whose distance is no power of two do not compete for the same few places in the cache.
    strip = np.zeros((-(-width // GROUP) * GROUP, _STRIP_ROWS + LANES))
    ends = np.array([[np.inf], [-np.inf]]) * np.ones(width)
    with np.errstate(all="ignore"):
        sum_groups(rows, roots, order, starts, strip, centre, high, ends)
    counts = np.diff(starts)
    of_groups = counts.astype(np.float64)
    if roots.size:
        of_groups = np.add.reduceat(weights[order], starts[:-1])
    table = GroupTable(present.astype(np.int64), counts, of_groups, centre, high, None)
    # Sums of products are no larger than the sums of squares.
    if not np.isfinite(np.diagonal(high, axis1=1, axis2=2)).all():
        return SegmentSums(table.written(), ends, False)
    precise = np.zeros(len(present), dtype=np.bool_)
    if _is_doubtful(table):
        precise[:] = True
    else:
        doubtful_groups(high, counts, precise)
    return SegmentSums(_made_precise(table, precise, rows, roots, order, starts).written(), ends, True)


def _sorted(groups: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the places of rows group by group, in their order, the groups that are there, and where each starts."""
    # Sixteen bits are sorted by counting, in linear time.
    small = groups.astype(np.uint16) if groups.size and groups.max() < 2**16 else groups
    order = np.argsort(small, kind="stable")
    counts = np.bincount(groups) if groups.size else np.zeros(0, dtype=np.int64)
    present = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[present])]).astype(np.int64)
    return order, present, starts


def check_sizes(ends: FloatArray, names: tuple[str, ...]) -> None:
    """Refuse columns whose squares a double cannot hold, by their least and largest values; the named ones are last."""
    largest = np.abs(ends).max(axis=0)[-len(names) :]
    for name, size in zip(names, largest, strict=True):
        if size > _LARGEST or 0 < size < _SMALLEST:
            raise InputError(f"Column {name!r} has numbers of size {size:.3g}, whose squares get lost: multiply it.")


def _is_doubtful(table: GroupTable) -> bool:
    """Tell whether columns are nearly dependent, over all groups or within them."""
    high = table.high
    mass = np.maximum(high[:, 0, 0], 1e-300)
    sums = high[:, 0, 1:]
    within = high[:, 1:, 1:].sum(axis=0) - (sums / mass[:, None]).T @ sums
    means = table.centre[:, 1:] + sums / mass[:, None]
    away = means - (mass @ means) / mass.sum()
    between = (away * mass[:, None]).T @ away
    return any(_inflated(matrix, within + between) for matrix in (within + between, within))


def _inflated(matrix: FloatArray, all_of_it: FloatArray) -> bool:
    """Tell whether a Gram matrix is badly conditioned, columns that do not vary in it left aside."""
    varies = np.diagonal(matrix) > 1e-12 * np.maximum(np.diagonal(all_of_it), 1e-300)
    inner = matrix[np.ix_(varies, varies)]
    if not len(inner):
        return False
    scale = power_of_two(np.sqrt(np.diagonal(inner)))
    return inflation(inner * np.outer(scale, scale), len(inner)) > 1.0


def _made_precise(
    table: GroupTable,
    precise: NDArray[np.bool_],
    rows: FloatArray,
    roots: FloatArray,
    order: IntArray,
    starts: IntArray,
) -> GroupTable:
    """Return the table with sums of products of some groups made without rounding."""
    if not precise.any():
        return table
    high, low = table.high.copy(), np.zeros_like(table.high)
    for group in np.flatnonzero(precise):
        here = order[starts[group] : starts[group + 1]]
        values = rows[here] - table.centre[group]
        if roots.size:
            values = values * roots[here, None]
        high[group], low[group] = DoubleDouble.of(values).gram()
    return GroupTable(table.groups, table.counts, table.weights, table.centre, high, low)


class GroupedTriangularSketch(TriangularSketch):
    """Factors of many groups of rows, summed side by side; each becomes an ordinary exact summary."""

    kind = "triangular_groups"
    by_group = True
    summary_kind = "triangular"

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Refuse: rows of groups are summed a segment at a time."""
        raise NotImplementedError("groups are summed a segment at a time")

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Merge two tables; with twice the digits where one of them has them."""
        width = _width(first)
        numbers = max(first.shape[1], second.shape[1])
        # Tables may be large, and fresh memory takes as long as the work: there is no more of it than lines.
        out = np.empty((len(np.union1d(first[:, 0], second[:, 0])), numbers))
        add_groups(_widened(first, numbers), _widened(second, numbers), width, out)
        return out

    def taken_apart(self, table: FloatArray) -> dict[int, tuple[FloatArray, FloatArray, int, float]]:
        """Return for each group its factor as `concluded_rows` takes it, its centre, rows and weight."""
        apart = GroupTable.read(table, _width(table))
        factors, trusted = np.zeros_like(apart.high), np.zeros(len(table), dtype=np.bool_)
        factor_groups(apart.high, SAFE_INFLATION, factors, trusted)
        found = {}
        for place, group in enumerate(apart.groups.tolist()):
            rows = factors[place] if trusted[place] else _precise_factor(apart, place)
            found[group] = (rows, apart.centre[place], int(apart.counts[place]), float(apart.weights[place]))
        return found

    def concluded_rows(
        self, specification: SketchSpecification, matrix: FloatArray, row_count: int, stream: int = 0
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the factor, and behind it what its doubles leave out, where that was kept."""
        width = matrix.shape[1]
        return (matrix, None) if len(matrix) == width else (matrix[:width], matrix[width:])


def _precise_factor(table: GroupTable, place: int) -> FloatArray:
    """Return the factor of a group, with twice the digits."""
    high = table.high[place]
    scale = power_of_two(np.sqrt(np.maximum(np.diagonal(high), 0.0)))
    units = np.outer(scale, scale)
    low = None if table.low is None else table.low[place] * units
    return np.vstack(factor_gram(DoubleDouble.of(high * units, low), len(high)).rows) / scale


def _widened(table: FloatArray, numbers: int) -> FloatArray:
    """Return a table whose lines have so many numbers: what doubles leave out of its sums is nothing."""
    if table.shape[1] == numbers:
        return table
    out = np.zeros((len(table), numbers))
    out[:, : table.shape[1]] = table
    return out


def _width(table: FloatArray) -> int:
    """Return how many columns a table is of: the number of its own does not tell, for lines are of two kinds."""
    return int(table[0, HEAD - 1])
