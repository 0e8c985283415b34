"""Where the rows and the random numbers of a summary come from, and what its maker tells of it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from partsketch.common.errors import InputError
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding


@dataclass(frozen=True)
class Part:
    """Which rows, and which random numbers, stand behind some rows of a summary.

    Attributes
    ----------
    site
        Name of the data set or site; row numbers of different sites are unrelated.
    stream
        Stream of random numbers; also the partition's number.
    start, stop
        Rows numbered start to stop (of the stream's partition) are in; stop is excluded. None when that is not told.
    size
        Rows of the summary that belong to this part.
    seed
        Seed of the sketch; None for exact summaries, and when nobody can draw the same numbers again.
    contiguous
        Whether all rows of the range are in; False when only those of this stream's partition are.
    label
        Which of the site's sets of rows (a day, say); row numbers of different labels are unrelated.
    cut
        Equal for the partitions of one set of rows that was cut once; rows of other cuts may be the same rows.
    partition
        Name of the partition; empty when the rows were not cut.
    sparsity
        Non-zeros per row of the data, for kinds of sketch that leave it open.
    """

    site: str
    stream: int
    start: int | None
    stop: int | None
    size: int
    seed: int | None
    contiguous: bool = True
    label: str = ""
    cut: str = ""
    partition: str = ""
    sparsity: int | None = None

    @property
    def name(self) -> str:
        """Site, label and partition in one phrase."""
        return " ".join(text for text in (self.site, self.label, self.partition) if text) or "unnamed"

    def range_overlaps(self, other: Part) -> bool:
        """Whether the row numbers overlap, and are not merely shared out among partitions; True when not told."""
        if not self.contiguous and not other.contiguous and self.stream != other.stream:
            return False
        if self.start is None or self.stop is None or other.start is None or other.stop is None:
            return self.stream == other.stream
        return self.start < other.stop and other.start < self.stop


T = TypeVar("T")
Owned = tuple[T, Part]


def find_overlap(owned: Sequence[Owned[T]]) -> tuple[Owned[T], Owned[T]] | None:
    """Return two parts that may hold the same row, with their owners; None when no two do.

    Parts of one site and label may, unless they belong to one cut and their row numbers are different.
    """
    by_site: dict[tuple[str, str], list[Owned[T]]] = defaultdict(list)
    for entry in owned:
        by_site[entry[1].site, entry[1].label].append(entry)
    for entries in by_site.values():
        for entry in entries:
            if entry[1].cut != entries[0][1].cut:
                return entries[0], entry
        found = _same_stream(entries) or _same_numbers(entries)
        if found is not None:
            return found
    return None


def _same_stream(entries: Sequence[Owned[T]]) -> tuple[Owned[T], Owned[T]] | None:
    """Find parts of one stream of which one tells no rows, or whose rows overlap."""
    furthest: dict[int, Owned[T]] = {}
    for entry in sorted(entries, key=_place):
        part = entry[1]
        before = furthest.get(part.stream)
        if before is not None and part.range_overlaps(before[1]):
            return before, entry
        if before is None or (before[1].stop or 0) <= (part.stop or 0):
            furthest[part.stream] = entry
    return None


def _same_numbers(entries: Sequence[Owned[T]]) -> tuple[Owned[T], Owned[T]] | None:
    """Find parts whose row numbers overlap, and are not merely shared out among partitions."""
    furthest: dict[bool, Owned[T]] = {}
    for entry in sorted((entry for entry in entries if entry[1].start is not None), key=_place):
        start, stop = _place(entry)
        # Rows that lie together may meet any others; those that are shared out, only rows that lie together.
        for contiguous in (True, False) if entry[1].contiguous else (True,):
            if contiguous in furthest and start < _place(furthest[contiguous])[1]:
                return furthest[contiguous], entry
        before = furthest.setdefault(entry[1].contiguous, entry)
        if _place(before)[1] < stop:
            furthest[entry[1].contiguous] = entry
    return None


def _place(entry: Owned[T]) -> tuple[int, int]:
    return entry[1].start or 0, entry[1].stop or 0


@dataclass(frozen=True)
class Noise:
    """What exact least squares of a target on all columns that are no targets leaves of the rows of one partition.

    Attributes
    ----------
    target
        Its name.
    residual_sum
        Residual sum of squares, rows multiplied by the roots of their weights.
    freedom
        Rows less the rank of the features.
    """

    target: str
    residual_sum: float
    freedom: int


@dataclass(frozen=True)
class About:
    """What the maker of a summary tells of it besides its numbers.

    Attributes
    ----------
    targets
        Columns that were meant as targets; any column can be one.
    encoding
        Levels of the text columns that became indicators.
    weighted
        Whether rows carry weights of their own.
    private
        Whether the random numbers came from the operating system and nothing tells of single rows.
    rounded_to
        The row count is rounded to a multiple of this; 1 when it is exact.
    rows_dropped
        Rows left out for missing values; None when that is not told.
    noise
        Noise of every target as measured on the rows; empty where it was not.
    """

    targets: tuple[str, ...] = ()
    encoding: Encoding = NOTHING_ENCODED
    weighted: bool = False
    private: bool = False
    rounded_to: int = 1
    rows_dropped: int | None = 0
    noise: tuple[Noise, ...] = ()

    def joined(self, other: About) -> About:
        """Return what can be told of the rows of both together: noise cannot, its numbers are of each alone."""
        known = self.rows_dropped is not None and other.rows_dropped is not None
        return About(
            targets=self.targets if self.targets == other.targets else (),
            encoding=self.encoding,
            weighted=self.weighted or other.weighted,
            private=self.private and other.private,
            rounded_to=max(self.rounded_to, other.rounded_to),
            rows_dropped=(self.rows_dropped or 0) + (other.rows_dropped or 0) if known else None,
        )

    def with_noise_in(self, units: Mapping[str, float], columns: set[str], features: set[str]) -> About:
        """Return the same with noise of these targets in their units; without any where it is of other features."""
        known = features == columns - {one.target for one in self.noise}
        told = [(one, units[one.target]) for one in self.noise if known and one.target in units]
        # Squares of units may be beyond doubles.
        noise = tuple(replace(one, residual_sum=one.residual_sum / unit / unit) for one, unit in told)
        return replace(self, noise=noise)

    def narrowed(self, columns: Sequence[str]) -> About:
        """Return what can be told when these columns are left; text of which indicators are gone is not encoded."""
        kept = set(columns)
        targets = tuple(name for name in self.targets if name in kept)
        if self.encoding.design is not None:
            features = [name for name in columns if name in self.encoding.design.feature_names]
            return replace(self, targets=targets, encoding=self.encoding.narrowed(features, targets), noise=())
        levels = tuple(pair for pair in self.encoding.levels if kept.issuperset(self.encoding.indicator_names(pair[0])))
        return replace(
            self,
            targets=targets,
            encoding=Encoding(levels, self.encoding.drop_first) if levels else NOTHING_ENCODED,
            noise=(),
        )


def site_seed(seed: int, site: str, label: str) -> int:
    """Return the seed for one set of rows of one site.

    Sites that agree on a seed must not use the same random numbers: sketches of different rows would not be
    independent. Without a name, the seed is used as it is.
    """
    if not site and not label:
        return seed
    text = json.dumps(["partsketch site seed", seed, site, label])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def shared_rows(mine: Part, theirs: Part) -> str:
    """Say in words which rows two parts share."""
    if None in (mine.start, mine.stop, theirs.start, theirs.stop) or mine.cut != theirs.cut:
        return f"rows of {mine.name!r}"
    starts, stops = [part.start or 0 for part in (mine, theirs)], [part.stop or 0 for part in (mine, theirs)]
    return f"rows {max(starts)} to {min(stops)}"


def joined_parts(mine: Part, theirs: Part) -> Part:
    """Return the part of both, whose rows must follow one another."""
    if mine.range_overlaps(theirs):
        raise InputError(
            f"Cannot sum: {shared_rows(mine, theirs)} have the same numbers in both summaries; number the rows of the "
            "second one after the first."
        )
    assert mine.start is not None
    assert theirs.start is not None
    if mine.stop != theirs.start and theirs.stop != mine.start:
        raise InputError("Cannot sum: the rows of the two summaries do not follow one another.")
    return replace(mine, start=min(mine.start, theirs.start), stop=max(mine.stop or 0, theirs.stop or 0))
