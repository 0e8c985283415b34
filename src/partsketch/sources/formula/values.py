"""What is found of the values of a column in one pass, whatever the order in which they come.

Sums are exact, and tables of values are coarsened by a rule that looks at the set of values alone. So blocks, engines
and the order of arrival cannot change what is found.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.formula.sum_kernel import EXPONENTS, HALF_BITS, add_values, count_keys, square_parts, write_keys

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Different values that a table keeps apart: more are kept to fewer digits.
MOST_VALUES = 1 << 21
#: Bins in which values are counted where a few are selected, as a power of two.
_BIN_BITS = 12


def _no_sums() -> IntArray:
    return np.zeros((2, EXPONENTS), dtype=np.int64)


@dataclass
class ExactSums:
    """Sum and sum of squares of a column, exactly; of columns that are only centred the sum alone."""

    with_squares: bool = True
    count: int = 0
    sums: IntArray = field(default_factory=_no_sums)
    square_sums: IntArray = field(default_factory=_no_sums)

    def see(self, x: FloatArray) -> None:
        """Take some values, all finite."""
        self.count += len(x)
        add_values(x.view(np.int64), self.sums)
        if not self.with_squares:
            return
        high, low = np.empty(len(x)), np.empty(len(x))
        square_parts(x, high, low)
        if not np.isfinite(np.add.reduce(np.abs(high) + np.abs(low))):
            raise InputError(
                "A column that the formula scales has numbers beyond 1e150: multiply it by a small constant."
            )
        add_values(high.view(np.int64), self.square_sums)
        add_values(low.view(np.int64), self.square_sums)

    def add(self, other: ExactSums) -> None:
        """Take in what was found of other rows."""
        self.count += other.count
        self.sums += other.sums
        self.square_sums += other.square_sums

    @property
    def total(self) -> Fraction:
        """The sum, without rounding."""
        return _whole(self.sums)

    @property
    def mean(self) -> float:
        """Mean, rounded once."""
        return float(self.total / self.count)

    def deviation(self, around: float, ddof: float) -> float:
        """Root of the sum of squares around a value, divided by count less `ddof`."""
        centre = Fraction(around)
        squares = _whole(self.square_sums) - 2 * centre * self.total + self.count * centre * centre
        return float(np.sqrt(float(squares / Fraction(self.count - Fraction(ddof)))))


def _whole(sums: IntArray) -> Fraction:
    """Return the number that sums of mantissas by exponent stand for."""
    total = 0
    for exponent in np.flatnonzero(sums.any(axis=0)).tolist():
        mantissa = (int(sums[0, exponent]) << HALF_BITS) + int(sums[1, exponent])
        # The smallest doubles have the exponent of the next, without its leading bit.
        total += mantissa << (max(exponent, 1) - 1)
    return Fraction(total, 1 << 1074)


@dataclass
class ValueTable:
    """The different values of a column and how often each occurs.

    Where there are too many, the last digits are cut off, as few as possible: how many depends on the set of values
    alone, so it is the same in whatever order they come. Knots of splines are made of some tables.
    """

    most: int = MOST_VALUES
    shift: int = 0
    keys: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    key_counts: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    smallest: float = np.inf
    largest: float = -np.inf
    has_knots: bool = False
    _waiting: list[IntArray] = field(default_factory=list)
    _waiting_size: int = 0

    def see(self, x: FloatArray) -> None:
        """Take some values, all finite."""
        if not len(x):
            return
        keys = np.empty(len(x), np.int64)
        smallest, largest = write_keys(x, keys)
        self.smallest, self.largest = min(self.smallest, smallest), max(self.largest, largest)
        self._wait(keys >> self.shift if self.shift else keys)

    def add(self, other: ValueTable) -> None:
        """Take in what was found of other rows."""
        self.smallest, self.largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        if other.shift > self.shift:
            self._settle()
            self._coarsen(other.shift)
        finer = self.shift - other.shift
        if len(other.keys):
            self._settle()
            keys, counts = (self.keys, other.keys >> finer), (self.key_counts, other.key_counts)
            self._merge(np.concatenate(keys), np.concatenate(counts))
        for waiting in other._waiting:
            self._wait(waiting >> finer)
        self._settle_if_many()

    def _wait(self, keys: IntArray) -> None:
        self._waiting.append(keys)
        self._waiting_size += len(keys)
        self._settle_if_many()

    def _settle_if_many(self) -> None:
        if self._waiting_size + len(self.keys) > 2 * self.most or self._waiting_size > self.most:
            self._settle()

    def _settle(self) -> None:
        """Merge what waits into the table, and make it coarser until it is small enough."""
        if self._waiting:
            # Numbers alone are sorted in a fraction of the time that places and counts take along with them.
            keys = np.sort(np.concatenate(self._waiting))
            self._waiting, self._waiting_size = [], 0
            starts = _starts(keys)
            counts = np.diff(starts, append=len(keys))
            keys = keys[starts]
            if len(self.keys):
                self._merge(np.concatenate([self.keys, keys]), np.concatenate([self.key_counts, counts]))
            else:
                self.keys, self.key_counts = keys, counts
        while len(self.keys) > self.most:
            self._coarsen(self.shift + 1)

    def _coarsen(self, shift: int) -> None:
        self._merge(self.keys >> (shift - self.shift), self.key_counts)
        self.shift = shift

    def _merge(self, keys: IntArray, counts: IntArray) -> None:
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        starts = _starts(keys)
        self.keys, self.key_counts = keys[starts], np.add.reduceat(counts, starts) if len(keys) else counts

    @property
    def is_exact(self) -> bool:
        """Whether all values are kept apart."""
        if self._waiting_size + len(self.keys) > self.most:
            self._settle()
        return self.shift == 0

    @property
    def values(self) -> FloatArray:
        """The values in increasing order; where digits were cut off, the middle of those that were alike."""
        self._settle()
        return self._values(self.keys)

    def _values(self, keys: IntArray) -> FloatArray:
        found = _from_keys((keys << self.shift) + ((1 << self.shift) >> 1))
        return np.clip(found, self.smallest, self.largest) if self.shift else found

    @property
    def is_empty(self) -> bool:
        """Whether there are no values."""
        return not (len(self.keys) or self._waiting_size)

    @property
    def counts(self) -> FloatArray:
        """How often each occurs."""
        self._settle()
        return self.key_counts.astype(np.float64)

    def quantiles(self, shares: FloatArray, low: float | None = None, high: float | None = None) -> list[float]:
        """Return quantiles, between neighbouring values by straight lines, of the values from low to high."""
        cuts = (low is not None and low > self.smallest) or (high is not None and high < self.largest)
        if not (len(self.keys) or cuts):
            # Of values that wait, a few are selected without sorting the others.
            keys, ends = np.concatenate(self._waiting), None
            count = len(keys)
        else:
            self._settle()
            keys, counts = self.keys, self.key_counts
            if cuts:
                values = self._values(keys)
                inside = np.ones(len(values), dtype=bool)
                inside &= True if low is None else values >= low
                inside &= True if high is None else values <= high
                keys, counts = keys[inside], counts[inside]
            ends = np.cumsum(counts)
            count = int(ends[-1])
        places = [share * (count - 1) for share in shares]
        ranks = [(int(place), min(int(place) + 1, count - 1)) for place in places]
        wanted = sorted({rank for pair in ranks for rank in pair})
        chosen = _selected(keys, wanted) if ends is None else keys[np.searchsorted(ends, wanted, side="right")]
        value_of = dict(zip(wanted, self._values(chosen).tolist(), strict=True))
        found = []
        for place, pair in zip(places, ranks, strict=True):
            first, second = value_of[pair[0]], value_of[pair[1]]
            # As NumPy does it: from the nearer of the two.
            gap, part = second - first, place - pair[0]
            found.append(float(second - gap * (1 - part) if part >= 0.5 else first + gap * part))
        return found


def _selected(keys: IntArray, ranks: list[int]) -> IntArray:
    """Return the keys of these increasing ranks: all are counted in bins, and those of a few bins told apart."""
    if not ranks:
        return keys[:0]
    first, last = int(keys.min()), int(keys.max())
    if last - first >= 2**63:
        return np.asarray(np.partition(keys, ranks)[ranks])
    shift = max((last - first).bit_length() - _BIN_BITS, 0)
    counts = np.zeros((last - first >> shift) + 1, dtype=np.int64)
    count_keys(keys, first, shift, counts)
    ends, found = np.cumsum(counts), np.empty(len(ranks), dtype=np.int64)
    bins = np.searchsorted(ends, ranks, side="right")
    for number in np.unique(bins).tolist():
        low = first + (number << shift)
        alike = keys[(keys >= low) & (keys <= min(low + (1 << shift) - 1, last))]
        here = np.flatnonzero(bins == number)
        places = np.asarray(ranks)[here] - (ends[number] - counts[number])
        found[here] = np.partition(alike, places)[places]
    return found


def _starts(keys: IntArray) -> IntArray:
    """Return where each of some sorted numbers occurs first."""
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return np.flatnonzero(first)


def _from_keys(keys: IntArray) -> FloatArray:
    bits = np.where(keys >= 0, keys, np.int64(-(2**63)) - keys - 1)
    return bits.view(np.float64)
