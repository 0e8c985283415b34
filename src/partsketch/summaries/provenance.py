"""Where the rows and the random numbers of a summary come from, and what its maker tells of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

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

    def overlaps(self, other: Part) -> bool:
        """Whether a row may be in both."""
        if (self.site, self.label) != (other.site, other.label):
            return False
        return self.cut != other.cut or self.range_overlaps(other)

    def shares_numbers(self, other: Part) -> bool:
        """Whether both were made with the same random numbers."""
        return self.seed is not None and (self.seed, self.stream) == (other.seed, other.stream)


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
    """

    targets: tuple[str, ...] = ()
    encoding: Encoding = NOTHING_ENCODED
    weighted: bool = False
    private: bool = False
    rounded_to: int = 1
    rows_dropped: int | None = 0

    def joined(self, other: About) -> About:
        """Return what can be told of the rows of both together."""
        known = self.rows_dropped is not None and other.rows_dropped is not None
        return About(
            targets=self.targets if self.targets == other.targets else (),
            encoding=self.encoding,
            weighted=self.weighted or other.weighted,
            private=self.private and other.private,
            rounded_to=max(self.rounded_to, other.rounded_to),
            rows_dropped=(self.rows_dropped or 0) + (other.rows_dropped or 0) if known else None,
        )

    def narrowed(self, columns: Sequence[str]) -> About:
        """Return what can be told when these columns are left; text of which indicators are gone is not encoded."""
        kept = set(columns)
        levels = tuple(pair for pair in self.encoding.levels if kept.issuperset(self.encoding.indicator_names(pair[0])))
        return replace(
            self,
            targets=tuple(name for name in self.targets if name in kept),
            encoding=Encoding(levels, self.encoding.drop_first) if levels else NOTHING_ENCODED,
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
