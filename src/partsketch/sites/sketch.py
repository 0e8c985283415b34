"""From the rows of one site to summaries that can travel: `partsketch.sketch`."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.engines.base import Engine
from partsketch.engines.gather import Gathered, gather, guided
from partsketch.fitting.data_request import as_formula_says
from partsketch.fitting.memory import Sizes, check_memory, gathering_bytes
from partsketch.fitting.sketch_size import choose_sketch_size, counted_if_needed
from partsketch.sites.disclosure.checks import Looked, check_disclosure
from partsketch.sites.options import SketchOptions
from partsketch.sketches.base import GROUPS, SketchSpecification, get_sketch
from partsketch.sketches.groups import group_segment_rows
from partsketch.sources.base import Source
from partsketch.sources.encoding import NOTHING_ENCODED
from partsketch.summaries.file import LARGEST_BODY
from partsketch.summaries.file_header import MOST_COLUMNS, MOST_SKETCH_ROWS, name_fault
from partsketch.summaries.group_summaries import GroupSummaries
from partsketch.summaries.measured import is_cheap_beside
from partsketch.summaries.partitions import Partitioning, make_partitioning, single_partition
from partsketch.summaries.provenance import About, Part, site_seed
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT, SummaryRequest

#: Part of a column's spread that rounding may take.
_LOST_DIGITS = 1e-9


@dataclass(frozen=True)
class Sketched:
    """One summary for every partition of a source, and what its site should know of them, a sentence each.

    `leverages` are the largest of a row in each, where rows were looked at again; they are for the site alone.
    """

    summaries: Sequence[Summary]
    warnings: tuple[str, ...]
    leverages: tuple[float | None, ...] = ()


def sketch_source(source: Source, options: SketchOptions, engine: Engine) -> Sketched:
    """Summarise every partition of a source."""
    options = as_formula_says(options, source)
    names = source.feature_names + source.target_names
    if not names:
        raise InputError("There is nothing to sketch: name at least one column.")
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
        SketchSpecification(options.sketch)
        if not get_sketch(options.sketch).is_random
        else SketchSpecification(
            options.sketch, _size(source, options), None if options.private else seed, private=options.private
        )
    )
    with one_thread_each():
        request = SummaryRequest(specification, partitioning, options.fit_intercept, row_count=source.row_count)
        request = replace(request, measures_noise=_measures_noise(source, options, specification))
        _check_sizes(source, request)
        if options.sketch == "triangular" and options.fit_intercept and partitioning.bounds is None:
            rows = group_segment_rows(len(names) + 1, partitioning.count)
            request = replace(request, specification=SketchSpecification(GROUPS), segment_rows=rows)
        gathered = gather(source, guided(source, request, engine), engine)
    _check_rows(gathered, partitioning)
    looked = Looked((), ())
    if options.allow is not None:
        with one_thread_each():
            looked = check_disclosure(source, partitioning, options, engine, gathered)
    cut = secrets.token_hex(16) if options.private else _cut_name(options, seed, partitioning, names)
    about = About(
        targets=source.target_names,
        encoding=source.encoding if source.encoding.levels or source.encoding.design else NOTHING_ENCODED,
        weighted=source.has_weights,
        private=options.private,
        rounded_to=options.round_rows,
        rows_dropped=None if options.private else gathered.rows_dropped,
    )
    summaries = _all_signed(gathered.summaries, options, partitioning, cut, about)
    # Rows are counted before the counts are rounded.
    warnings = (*source.notes, *_size_warnings(gathered, partitioning, options), *looked.warnings)
    return Sketched(summaries, warnings, looked.leverages)


def _check_sizes(source: Source, request: SummaryRequest) -> None:
    """Refuse before the work what no file can hold, or what there is no memory for."""
    width = int(request.fit_intercept) + len(source.feature_names) + len(source.target_names)
    size = request.specification.size or width
    numbers = 8 * size * width * (1 if request.specification.size else 2)
    if width > MOST_COLUMNS or size > MOST_SKETCH_ROWS or numbers > LARGEST_BODY:
        raise InputError(
            f"A sketch of {size:,} rows and {width:,} columns does not fit into a file, which has at most "
            f"{MOST_SKETCH_ROWS:,} rows, {MOST_COLUMNS:,} columns and {LARGEST_BODY:,} bytes: use a smaller "
            "sketch_size (--sketch-size) or fewer features."
        )
    sizes = Sizes("sketch", width, source.row_count, request.partitioning.count, request.specification.size)
    ways_out = "use a smaller sketch_size (--sketch-size), fewer partitions or fewer features"
    check_memory(sizes, gathering_bytes(source, request), ways_out)


def _size_warnings(gathered: Gathered, partitioning: Partitioning, options: SketchOptions) -> Iterator[str]:
    """Say which sketches have as many rows as the data they stand for."""
    if not get_sketch(options.sketch).is_random:
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
    source = counted_if_needed(source, options.sketch)
    if not options.cuts:
        return source, single_partition(source.row_count)
    by = options.partition_by or "order"
    if by in ("order", "file") and (source.row_count is None or any(part.stop is None for part in source.files)):
        source = source.counted()
    count = options.n_partitions or 1
    if by == "order" and source.row_count is not None and count > source.row_count:
        raise InputError(f"n_partitions={count} is larger than the number of rows, {source.row_count}: give fewer.")
    return source, make_partitioning(source, by, count, "spread", seed)


def _measures_noise(source: Source, options: SketchOptions, specification: SketchSpecification) -> bool:
    """Whether the file tells the noise of its targets; refuse to measure where there is none, or where it may not."""
    width = int(options.fit_intercept) + len(source.feature_names) + len(source.target_names)
    if options.noise != "measured":
        free = options.noise == "auto" and bool(source.target_names) and not options.private
        return free and is_cheap_beside(specification, width)
    if not source.target_names:
        raise InputError("noise='measured' is that of a target: name one (--target).")
    return True


def _size(source: Source, options: SketchOptions) -> int:
    """Return the sketch rows: by default a function of the columns alone, so that sites agree without talking."""
    if options.sketch_size is not None:
        return options.sketch_size
    columns = int(options.fit_intercept) + len(source.feature_names)
    return choose_sketch_size(None, columns, None, kind=options.sketch)[0]


def _check_rows(gathered: Gathered, partitioning: Partitioning) -> None:
    for name, rows in zip(partitioning.names, gathered.row_counts, strict=True):
        where = "" if partitioning.count == 1 else f" in partition {name!r}"
        if rows == 0:
            dropped = f" after {gathered.rows_dropped} rows with missing values or of weight zero were dropped"
            raise InputError(f"There are no rows{where}{dropped if gathered.rows_dropped else ''}.")


def _cut_name(options: SketchOptions, seed: int, partitioning: Partitioning, names: tuple[str, ...]) -> str:
    """Name the cut: the same for every file of one run, and for the same run again."""
    sketch = [options.site, options.label, seed, options.sketch, options.sketch_size]
    cut = [options.partition_by, partitioning.count]
    text = json.dumps([*sketch, *cut, list(partitioning.bounds or ()), list(names)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _partition_name(options: SketchOptions, partitioning: Partitioning, number: int) -> str:
    if not options.cuts:
        return ""
    # The paths of a site's files are nobody else's business.
    by_file = options.private and options.partition_by == "file"
    return str(number) if by_file else partitioning.names[number]


def _all_signed(
    summaries: Sequence[Summary], options: SketchOptions, partitioning: Partitioning, cut: str, about: About
) -> Sequence[Summary]:
    """Return summaries that say where they come from; the rows that were dropped are counted once."""
    others = about if options.private else replace(about, rows_dropped=0)

    def story(number: int, part: Part) -> tuple[Part, About]:
        name = _partition_name(options, partitioning, number)
        told = replace(part, site=options.site, label=options.label, cut=cut, partition=name)
        return told, about if number == 0 else others

    if isinstance(summaries, GroupSummaries):
        return summaries.told(story)
    signed = []
    for number, summary in enumerate(summaries):
        part, said = story(number, summary.parts[0])
        said = replace(said, noise=summary.about.noise)
        signed.append(_private(summary, options, part, said) if options.private else summary.told((part,), said))
    return tuple(signed)


def _private(summary: Summary, options: SketchOptions, part: Part, about: About) -> Summary:
    """Return a summary that tells no more than it must."""
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
