"""From the rows of one site to summaries that can travel: `partsketch.sketch`."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from partsketch.common.counts import refuse_too_many
from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.engines.base import Engine
from partsketch.engines.gather import Gathered, gather, guided
from partsketch.fitting.options import RESERVED_PARTITIONS
from partsketch.fitting.sketch_size import choose_sketch_size, counted_if_needed
from partsketch.sketches.base import SketchSpecification, get_sketch
from partsketch.sources import open_source
from partsketch.sources.base import Source
from partsketch.sources.encoding import Encoding
from partsketch.summaries.file_header import name_fault
from partsketch.summaries.partitions import Partitioning, make_partitioning, single_partition
from partsketch.summaries.provenance import About, site_seed
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT, SummaryRequest

#: Part of a column's spread that rounding may take.
_LOST_DIGITS = 1e-9


@dataclass(frozen=True)
class SketchOptions:
    """What a site may ask; `seed` is None when the sketch is private, and only then.

    Attributes
    ----------
    kind, size
        Kind of sketch ("triangular" is exact) and its rows; None chooses four per column.
    seed
        Seed that sites may share: names and labels make their random numbers different.
    n_partitions, partition_by
        How the rows are cut, as in a fit; both None make one summary of all rows.
    fit_intercept
        Whether a column of ones comes first.
    site, label
        Who made it, and of which rows (a day, say).
    private
        Random numbers from the operating system; neither seed nor row numbers are told.
    round_rows
        Private row counts are rounded to multiples of this.
    """

    kind: str = "gaussian"
    size: int | None = None
    seed: int | None = None
    n_partitions: int | None = None
    partition_by: str | None = None
    fit_intercept: bool = True
    site: str = ""
    label: str = ""
    private: bool = False
    round_rows: int = 1

    def __post_init__(self) -> None:
        sketch = get_sketch(self.kind)
        if self.size is not None and (not sketch.is_random or not isinstance(self.size, int) or self.size < 1):
            wanted = "give a whole number, at least 1" if sketch.is_random else "an exact summary has no such size"
            raise InputError(f"sketch_size is {self.size!r}: {wanted}.")
        if self.n_partitions is not None and (not isinstance(self.n_partitions, int) or self.n_partitions < 1):
            raise InputError(f"n_partitions is {self.n_partitions!r}: give a whole number, at least 1.")
        if self.n_partitions is None and self.partition_by in ("order", "shuffle"):
            raise InputError(f"partition_by={self.partition_by!r} needs n_partitions, the number of partitions.")
        if self.n_partitions is not None and self.partition_by not in (None, "order", "shuffle"):
            raise InputError(
                f"partition_by={self.partition_by!r} tells the number of partitions: give no n_partitions."
            )
        for what, text in (("site", self.site), ("label", self.label)):
            fault = name_fault(text)
            if fault:
                raise InputError(f"The {what} {text[:50]!r} {fault}: choose another name.")
        refuse_too_many(n_partitions=self.n_partitions, sketch_size=self.size, round_rows=self.round_rows)
        if not isinstance(self.round_rows, int) or self.round_rows < 1:
            raise InputError(f"round_rows is {self.round_rows!r}: give a whole number, at least 1.")
        if self.private:
            # The specification refuses kinds that cannot be private, and seeds.
            SketchSpecification(self.kind, 1 if sketch.is_random else None, self.seed, private=True)
        elif self.round_rows > 1:
            raise InputError("round_rows goes with private sketches only: others tell their row numbers anyway.")
        elif self.seed is None:
            raise ValueError("a sketch that is not private needs a seed")

    @property
    def partition_column(self) -> str | None:
        """Name of the column that defines the partitions, if one does."""
        return None if self.partition_by in (None, *RESERVED_PARTITIONS) else self.partition_by


@dataclass(frozen=True)
class Sketched:
    """One summary for every partition of a source, and what its site should know of them, a sentence each."""

    summaries: tuple[Summary, ...]
    warnings: tuple[str, ...]


def sketch_source(source: Source, options: SketchOptions, engine: Engine) -> Sketched:
    """Summarise every partition of a source."""
    names = source.feature_names + source.target_names
    if options.fit_intercept and INTERCEPT in names:
        raise InputError(f"A column is called {INTERCEPT!r}, which names the intercept: rename it.")
    for name in names:
        fault = name_fault(name)
        if fault:
            raise InputError(f"The column {name[:50]!r} {fault}: rename it.")
    # Partitions of private sketches depend on a seed too, which nobody gets to know.
    seed = secrets.randbits(64) if options.seed is None else site_seed(options.seed, options.site, options.label)
    source, partitioning = _cut(source, options, seed)
    specification = (
        SketchSpecification(options.kind)
        if not get_sketch(options.kind).is_random
        else SketchSpecification(
            options.kind, _size(source, options), None if options.private else seed, private=options.private
        )
    )
    with one_thread_each():
        request = SummaryRequest(specification, partitioning, options.fit_intercept, row_count=source.row_count)
        gathered = gather(source, guided(source, request, engine), engine)
    _check_rows(gathered, partitioning)
    batch = secrets.token_hex(16) if options.private else _batch(options, seed, partitioning, names)
    about = About(
        targets=source.target_names,
        encoding=source.encoding,
        weighted=source.has_weights,
        private=options.private,
        rounded_to=options.round_rows,
        rows_dropped=None if options.private else gathered.rows_dropped,
    )
    summaries = tuple(
        _signed(
            summary,
            options,
            batch,
            about if number == 0 or options.private else replace(about, rows_dropped=0),
            _partition_name(options, partitioning, number),
        )
        for number, summary in enumerate(gathered.summaries)
    )
    # Rows are counted before the counts are rounded.
    return Sketched(summaries, tuple(_size_warnings(gathered, partitioning, options)))


def _size_warnings(gathered: Gathered, partitioning: Partitioning, options: SketchOptions) -> Iterator[str]:
    """Say which sketches have as many rows as the data they stand for."""
    if not get_sketch(options.kind).is_random:
        return
    for name, rows, summary in zip(partitioning.names, gathered.row_counts, gathered.summaries, strict=True):
        size = summary.matrix.shape[0]
        if size >= rows:
            what = "The sketch" if partitioning.count == 1 else f"The sketch of partition {name!r}"
            told = "no bound protects the rows" if options.private else "with the seed in the file rows can be computed"
            yield (
                f"{what} has {size:,} rows and the data have {rows:,}: nothing is compressed, and {told}; use a "
                "smaller sketch_size (--sketch-size)."
            )


def _cut(source: Source, options: SketchOptions, seed: int) -> tuple[Source, Partitioning]:
    if source.row_count == 0:
        raise InputError(f"There are no rows in {source.description}.")
    source = counted_if_needed(source, options.kind)
    if options.n_partitions is None and options.partition_by is None:
        return source, single_partition(source.row_count)
    by = options.partition_by or "order"
    if by in ("order", "file") and (source.row_count is None or any(part.stop is None for part in source.files)):
        source = source.counted()
    count = options.n_partitions or 1
    if by == "order" and source.row_count is not None and count > source.row_count:
        raise InputError(f"n_partitions={count} is larger than the number of rows, {source.row_count}: give fewer.")
    return source, make_partitioning(source, by, count, "spread", seed)


def _size(source: Source, options: SketchOptions) -> int:
    """Return the sketch rows: by default a function of the columns alone, so that sites agree without talking."""
    if options.size is not None:
        return options.size
    columns = int(options.fit_intercept) + len(source.feature_names)
    return choose_sketch_size(None, columns, None, kind=options.kind)[0]


def _check_rows(gathered: Gathered, partitioning: Partitioning) -> None:
    for name, rows, weight in zip(partitioning.names, gathered.row_counts, gathered.weight_sums, strict=True):
        where = "" if partitioning.count == 1 else f" in partition {name!r}"
        if rows == 0:
            dropped = f" after {gathered.rows_dropped} rows with missing values were dropped"
            raise InputError(f"There are no rows{where}{dropped if gathered.rows_dropped else ''}.")
        if weight <= 0:
            raise InputError(f"All sample weights{where} are zero: at least one must be positive.")


def _batch(options: SketchOptions, seed: int, partitioning: Partitioning, names: tuple[str, ...]) -> str:
    """Name the cut: the same for every file of one run, and for the same run again."""
    cut = [options.site, options.label, seed, options.kind, options.size, options.partition_by, partitioning.count]
    text = json.dumps([*cut, list(partitioning.bounds or ()), list(names)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _partition_name(options: SketchOptions, partitioning: Partitioning, number: int) -> str:
    if options.n_partitions is None and options.partition_by is None:
        return ""
    # The paths of a site's files are nobody else's business.
    by_file = options.private and options.partition_by == "file"
    return str(number) if by_file else partitioning.names[number]


def _signed(summary: Summary, options: SketchOptions, batch: str, about: About, partition: str) -> Summary:
    """Return a summary that says where it comes from, or, when private, no more than it must."""
    part = replace(summary.parts[0], origin=options.site, label=options.label, batch=batch, partition=partition)
    if not options.private:
        return replace(summary, parts=(part,), about=about)
    rows, multiple = summary.row_count, options.round_rows
    rounded = rows if multiple == 1 else max(1, (rows + multiple // 2) // multiple) * multiple
    weight = summary.weight_sum
    if multiple > 1:
        weight = float(f"{weight:.1e}") if about.weighted else float(rounded)
    part = replace(part, start=None, stop=None, contiguous=False)
    _check_digits(summary)
    # A centre is a value among the rows: nobody's business.
    private = replace(summary, parts=(part,), row_count=rounded, weight_sum=weight, about=about)
    return replace(private, low=None, centre=np.zeros(len(summary.columns)))


def _check_digits(summary: Summary) -> None:
    """Refuse columns of which a sketch in plain doubles, not measured from a centre, would lose the digits."""
    if summary.low is None:
        return
    spread = np.sqrt(np.mean(summary.rows.moved(-summary.centre).high ** 2, axis=0))
    lost = np.finfo(np.float64).eps * np.abs(summary.matrix).max(axis=0) > _LOST_DIGITS * spread
    for name in np.asarray(summary.columns)[lost & (spread > 0)]:
        raise InputError(
            f"Column {str(name)!r} lies far from zero beside its spread, and a private sketch would lose its digits: "
            "take a constant that all sites agree on off it first."
        )


def open_for_sketch(
    data: Any,
    target: str | Sequence[str] | None,
    features: Sequence[str] | None,
    options: SketchOptions,
    weights: str | None,
    encode: bool,
    levels: Mapping[str, Sequence[str]] | None,
    missing: Literal["error", "drop"],
) -> Source:
    """Open the data with the columns that a sketch with these options needs."""
    return open_source(
        data,
        target=target,
        features=features,
        weights=weights,
        partition_column=options.partition_column,
        encode=encode,
        missing=missing,
        fit_intercept=options.fit_intercept,
        encoding=None if levels is None else _encoding(levels, options.fit_intercept),
    )


def _encoding(levels: Mapping[str, Sequence[str]], fit_intercept: bool) -> Encoding:
    if not isinstance(levels, Mapping):
        raise InputError('levels is a mapping from columns to their levels, such as {"colour": ["blue", "red"]}.')
    for column, names in levels.items():
        texts = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
        if not texts or len(names) < 1 or len(set(names)) != len(names):
            raise InputError(f"The levels of column {column!r} must be a list of distinct texts.")
    return Encoding(tuple((column, tuple(names)) for column, names in levels.items()), drop_first=fit_intercept)
