"""How a model came about: plain data, part of the model file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from partsketch.model.methods import NOISY
from partsketch.sources.base import PartitionLeftOut


@dataclass(frozen=True)
class PartitionRecord:
    """One partition (or one sketch of the whole): its name, rows, rank and condition number."""

    name: str
    row_count: int
    rank: int | None
    condition: float | None


@dataclass(frozen=True)
class Record:
    """How a model came about: everything needed to repeat the fit, and the reason of every automatic choice.

    Attributes
    ----------
    options
        The options of the fit, as asked.
    seed
        The seed that was used, also when none was given; None when summaries came from several makers.
    sketch_size
        Rows m of each sketch; None for exact summaries.
    row_count, rows_dropped, rows_left_out
        Rows used; rows dropped for missing values; rows left out as remainder.
    rank, condition, tolerance
        Of the fit: numerical rank, condition number after columns were scaled, relative tolerance of the rank.
    aliased
        Dependent columns, each with those it depends on.
    partitions
        One entry per partition, or per sketch of the whole.
    reasons
        Automatic choice → the reason in words.
    warnings
        What a user should know, a sentence each.
    versions
        Versions of partsketch and of the libraries that computed.
    data
        Description of the rows.
    partitions_left_out
        Partitions that could not be read or came too late; nothing of them is in the model or in any number here.
    asked
        Paths, columns and treatment of missing values as asked; None for fits to arrays in memory.
    """

    options: dict[str, Any]
    seed: int | None
    sketch_size: int | None
    row_count: int
    weight_sum: float
    rows_dropped: int
    rows_left_out: int
    rank: int
    condition: float | None
    tolerance: float
    aliased: tuple[tuple[str, tuple[str, ...]], ...]
    partitions: tuple[PartitionRecord, ...]
    reasons: dict[str, str]
    warnings: tuple[str, ...]
    versions: dict[str, str]
    data: str
    partitions_left_out: tuple[PartitionLeftOut, ...] = ()
    asked: dict[str, Any] | None = None

    @property
    def rows_in_words(self) -> str:
        """How many rows there are; of files with a promise noise is in the number."""
        return f"{'about ' if self.options.get('method') == NOISY else ''}{self.row_count:,}"

    def input_files(self) -> list[str]:
        """Return the files of this machine that the rows came from, as far as they are known and still there."""
        from partsketch.sources.files.paths import local_files

        paths = (self.asked or {}).get("paths")
        return local_files(paths) if isinstance(paths, list) else []
