"""Exact summaries of many groups at once: one list with an entry for each group, instead of an object for each.

The list is flat: how many columns and groups there are, a head for each group (its number, rows, weight, kind of entry,
and where its numbers begin), and the numbers. A group keeps its rows while they are few; from then on it has sums of
products around a centre, with twice the digits where doubles would not tell its columns apart. So no group, however its
rows are strewn over the segments, is summed before there is enough of it to tell.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.lanes import LANES
from partsketch.common.memory import Pool
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, IntArray, Stream
from partsketch.sketches.base import SketchSpecification
from partsketch.sketches.gram import SAFE_INFLATION
from partsketch.sketches.kernels.group_factors import factor_entries, factor_precisely
from partsketch.sketches.kernels.group_merge import merge_entries
from partsketch.sketches.kernels.group_rows import find_places, place_rows
from partsketch.sketches.kernels.group_sums import HEAD, write_segment
from partsketch.sketches.triangular import TriangularSketch

#: Rows of a group that a segment should have: adding up its sums of products takes as long as those of some rows.
_ROWS_PER_GROUP = 128
#: Numbers that a segment of rows holds at most: 64 MB.
_MOST_NUMBERS = 2**23
#: Columns up to which twice the rows stay in the cache.
_NARROW = 32
#: Columns whose values are all smaller, or of which one is larger, have squares that get lost.
_SMALLEST, _LARGEST = 1e-140, 1e140
#: Groups whose factors take longer than starting a second thread for half of them.
_MANY_GROUPS = 1000
#: Rows that a group keeps as they are, per column: then its sums have as many numbers as the rows at most.
_ROWS_KEPT = 2


def padded(width: int) -> int:
    """Return the numbers of a row with those that fill up its last vector."""
    return -(-width // LANES) * LANES


def group_segment_rows(width: int, groups: int) -> int:
    """Return how many row numbers make a segment: it depends on the number of columns and groups alone.

    Rows that stay in the cache are quicker to put in order, but every segment costs a merge; of many groups there
    should be some rows each.
    """
    rows = 2**17 if width <= _NARROW else 2**16
    while rows < 2**18 and rows < _ROWS_PER_GROUP * groups:
        rows *= 2
    while rows > 2**12 and rows * width > _MOST_NUMBERS:
        rows //= 2
    return rows


_room: Pool = Pool(np.float64, most_arrays=4, most_numbers=2**25)


def give_back_room() -> None:
    """Leave the memory of lists that nobody holds to others."""
    _room.clear()


class Entries(NamedTuple):
    """The list of groups, taken apart."""

    width: int
    head: FloatArray
    body: FloatArray

    @classmethod
    def read(cls, flat: FloatArray) -> Entries:
        """Return the parts of a flat list, which cannot be written."""
        # Some engines hand out arrays that cannot be written: to the compiler those are another type, for which all
        # kernels would be compiled once more.
        kept = flat.view()
        kept.flags.writeable = False
        return cls._parts(kept)

    @classmethod
    def _parts(cls, flat: FloatArray) -> Entries:
        count = int(flat[1])
        return cls(int(flat[0]), flat[2 : 2 + count * HEAD].reshape(count, HEAD), flat[2 + count * HEAD :])

    @classmethod
    def room(cls, width: int, count: int, numbers: int) -> tuple[FloatArray, Entries]:
        """Return room for a flat list, and its parts; what is not written takes no memory."""
        # Lists come and go with every segment, and fresh memory takes as long as the work on it.
        size = 2 + count * HEAD + numbers
        flat: FloatArray = _room.take(-(-size // 2**16) * 2**16)[:size]  # type: ignore[assignment]
        flat[0], flat[1] = width, count
        return flat, cls._parts(flat)

    @property
    def most(self) -> int:
        """How many rows a group keeps."""
        return _ROWS_KEPT * self.width


class SegmentEntries(NamedTuple):
    """The list of a segment, the least and largest value of every column, and whether all values are finite."""

    flat: FloatArray
    ends: FloatArray
    finite: bool


class GroupOrder(NamedTuple):
    """Where rows go group by group, in their order; the groups that are there, and where each starts."""

    places: IntArray
    present: IntArray
    starts: IntArray


def order_groups(groups: IntArray) -> GroupOrder:
    """Return the order of rows of these groups."""
    highest = int(groups.max(initial=-1)) + 1
    places = np.empty(len(groups), dtype=np.int64)
    if highest > 4 * len(groups) + 2**16:
        places[np.argsort(groups, kind="stable")] = np.arange(len(groups))
        present, sizes = np.unique(groups, return_counts=True)
    else:
        counts = np.zeros(highest, dtype=np.int64)
        find_places(groups, counts, places)
        present = np.flatnonzero(counts)
        sizes = counts[present]
    return GroupOrder(places, present, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def summarise_groups(rows: FloatArray, weights: FloatArray, groups: IntArray, width: int) -> SegmentEntries:
    """Return the list of a segment's rows, of which the first `width` numbers count.

    The others, which fill up vectors, are zero. The first is the root of a row's weight; `weights` are empty where each
    is one.
    """
    order = order_groups(groups)
    ordered = np.empty(rows.shape)
    place_rows(rows, order.places, ordered)
    return summarise_in_order(ordered, weights, order, width)


def summarise_in_order(rows: FloatArray, weights: FloatArray, order: GroupOrder, width: int) -> SegmentEntries:
    """Return the list of rows that lie in the order of their groups; weights are as the rows came."""
    present, starts = order.present, order.starts
    counts = np.diff(starts)
    most = _ROWS_KEPT * width
    sums = width + width * (width + 1)
    numbers = int(np.where(counts <= most, counts * padded(width), sums).sum())
    flat, entries = Entries.room(width, len(present), numbers)
    entries.head[:, 0], entries.head[:, 1] = present, counts
    entries.head[:, 2] = counts
    if weights.size:
        ordered = np.empty_like(weights)
        ordered[order.places] = weights
        entries.head[:, 2] = np.add.reduceat(ordered, starts[:-1])
    ends = np.empty((3, rows.shape[1]))
    with np.errstate(all="ignore"):
        used = write_segment(rows, width, starts, bool(weights.size), most, entries.head, entries.body, ends)
    return SegmentEntries(flat[: len(flat) - numbers + used], ends[:2, :width], not ends[2].any())


def check_sizes(ends: FloatArray, names: tuple[str, ...]) -> None:
    """Refuse columns whose squares a double cannot hold, by their least and largest values; the named ones are last."""
    largest = np.abs(ends).max(axis=0)[-len(names) :]
    for name, size in zip(names, largest, strict=True):
        if size > _LARGEST or 0 < size < _SMALLEST:
            change = "divide" if size > _LARGEST else "multiply"
            raise InputError(
                f"Column {name!r} has numbers of size {size:.3g}, whose squares get lost: {change} it by a constant."
            )


@dataclass(frozen=True, eq=False)
class GroupFactors:
    """The factors of many groups.

    Attributes
    ----------
    groups, counts, weights
        Number, rows and weight of each.
    centres
        What was taken off the columns of each.
    highs
        The upper triangles of the factors, row by row.
    place_of_low, lows
        Where what the doubles of a factor leave out is, if it is kept; −1 otherwise.
    """

    groups: IntArray
    counts: IntArray
    weights: FloatArray
    centres: FloatArray
    highs: FloatArray
    place_of_low: IntArray
    lows: FloatArray

    def factor(self, number: int) -> tuple[FloatArray, FloatArray | None]:
        """Return the factor of one group, and what its doubles leave out of it, if that is kept."""
        width = self.centres.shape[1]
        upper = _triangle(width)
        high = np.zeros((width, width))
        high[upper] = self.highs[number]
        if self.place_of_low[number] < 0:
            return high, None
        low = np.zeros((width, width))
        low[upper] = self.lows[self.place_of_low[number]]
        return high, low


_triangles: dict[int, tuple[NDArray[np.intp], NDArray[np.intp]]] = {}


def _triangle(width: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return rows and columns of the upper triangle, row by row."""
    if width not in _triangles:
        _triangles[width] = np.triu_indices(width)
    return _triangles[width]


def factors_of(flat: FloatArray) -> GroupFactors:
    """Return the factors of all groups of a list."""
    entries = Entries.read(flat)
    width, count = entries.width, len(entries.head)
    triangle = width * (width + 1) // 2
    centres, highs = np.zeros((count, width)), np.empty((count, triangle))
    trusted = np.zeros(count, dtype=np.bool_)

    def factor(part: slice) -> None:
        given = (entries.head[part], entries.body, entries.most, SAFE_INFLATION)
        with np.errstate(all="ignore"):
            factor_entries(width, *given, centres[part], highs[part], trusted[part])

    # Every group has a factor of its own, and its bits, whoever makes it.
    middle = count // 2 if count >= _MANY_GROUPS else count
    with ThreadPoolExecutor(1) as beside:
        rest = beside.submit(factor, slice(middle, count)) if middle < count else None
        factor(slice(0, middle))
        if rest is not None:
            rest.result()
    places = np.flatnonzero(~trusted)
    place_of_low = np.full(count, -1)
    place_of_low[places] = np.arange(len(places))
    precise, lows = np.empty((len(places), triangle)), np.empty((len(places), triangle))
    factor_precisely(width, entries.head, entries.body, entries.most, places, centres, precise, lows)
    highs[places] = precise
    head = entries.head
    return GroupFactors(
        head[:, 0].astype(np.int64), head[:, 1].astype(np.int64), head[:, 2].copy(), centres, highs, place_of_low, lows
    )


class GroupedTriangularSketch(TriangularSketch):
    """Factors of many groups of rows, summed side by side; each becomes an ordinary exact summary."""

    kind = "triangular_groups"
    by_group = True
    summary_kind = "triangular"

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Refuse: rows of groups are summed a segment at a time."""
        raise NotImplementedError("groups are summed a segment at a time")

    def merge(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Merge two lists."""
        one, other = Entries.read(first), Entries.read(second)
        count = len(np.union1d(one.head[:, 0], other.head[:, 0]))
        # Rows that meet sums may become sums of twice the digits.
        both = len(one.head) + len(other.head) - count
        numbers = one.body.size + other.body.size + both * one.width * (one.width + 1) // 2
        flat, entries = Entries.room(one.width, count, numbers)
        heads, bodies = (one.head, other.head), (one.body, other.body)
        with np.errstate(all="ignore"):
            _, used = merge_entries(one.width, heads, bodies, one.most, entries.head, entries.body)
        return flat[: len(flat) - numbers + used]
