"""All files of a run checked for what they show of single rows, before any is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from partsketch.engines.base import Engine
from partsketch.engines.gather import Gathered
from partsketch.sites.disclosure.concerns import OF_SINGLE_ROWS, Concern, Facts, concerns_of, refuse
from partsketch.sites.disclosure.leverages import Shown, look_at_rows
from partsketch.sites.options import SketchOptions
from partsketch.sketches.base import get_sketch
from partsketch.sources.base import Source
from partsketch.summaries.partitions import Partitioning

_UNSEEN = "Single rows of high leverage and rare levels were not looked for"


@dataclass(frozen=True)
class Looked:
    """What was found: the largest leverage behind each file (None where nobody looked), and what was not checked."""

    leverages: tuple[float | None, ...]
    warnings: tuple[str, ...]


def check_disclosure(
    source: Source, partitioning: Partitioning, options: SketchOptions, engine: Engine, gathered: Gathered
) -> Looked:
    """Refuse files that show single rows, unless that is allowed; say what could not be checked.

    A file of several partitions shows each of them: every one is looked at as if it were a file of its own. Of a file
    that stays with the rows what would be refused is said in a warning. Rows are read once more unless all that they
    could tell is allowed.
    """
    assert options.allow is not None
    random = get_sketch(options.sketch).is_random
    nothing: list[Shown | None] = [None] * partitioning.count
    unknown = tuple(None for _ in nothing)
    # What counts alone tell is refused before rows are read once more.
    told = refuse(_concerns(source, partitioning, options, gathered, nothing), options.allow, options.stays)
    # Of a secret sketch the largest leverage is told even where it is allowed.
    if told or (not random and set(options.allow) >= OF_SINGLE_ROWS):
        return Looked(unknown, (f"{told} {_UNSEEN} besides.",) if told else ())
    if not source.replayable:
        once = f"a {source.description} can be read only once; pass a table or a file to have them checked"
        return Looked(unknown, (f"{_UNSEEN}: {once}.",))
    factors = None if random else gathered.summaries
    shown = look_at_rows(source, partitioning, options.fit_intercept, engine, factors)
    told = refuse(_concerns(source, partitioning, options, gathered, shown), options.allow, options.stays)
    return Looked(tuple(None if found is None else found.leverage for found in shown), (told,) if told else ())


def _concerns(
    source: Source,
    partitioning: Partitioning,
    options: SketchOptions,
    gathered: Gathered,
    shown: Sequence[Shown | None],
) -> Iterator[Concern]:
    """Yield what is known so far to show single rows of a partition."""
    names = source.feature_names + source.target_names
    sketch = get_sketch(options.sketch)
    size = gathered.summaries[0].matrix.shape[0] if sketch.is_random else None
    for name, rows, found in zip(partitioning.names, gathered.row_counts, shown, strict=True):
        facts = Facts(
            what="The file" if partitioning.count == 1 else f"The file of partition {name!r}",
            rows=rows,
            columns=int(options.fit_intercept) + len(names),
            parameters=int(options.fit_intercept) + len(source.feature_names),
            sketch_rows=size,
            plain_rows=0.0 if size is None else sketch.plain_rows(size, rows),
            leverage=None if found is None else found.leverage,
            row=None if found is None else found.row,
            nonzero=() if found is None else tuple(zip(names, found.nonzero, strict=True)),
        )
        yield from concerns_of(facts, source.encoding, options.least_level_rows)
