"""All files of a run checked for what they show of single rows, before any is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partsketch.engines.base import Engine
from partsketch.sites.disclosure.concerns import Facts, concerns_of, refuse
from partsketch.sites.disclosure.leverages import Shown, look_at_rows
from partsketch.sites.options import SketchOptions
from partsketch.sketches.base import get_sketch
from partsketch.sources.base import Source
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.summary import Summary


@dataclass(frozen=True)
class Looked:
    """What was found: the largest leverage behind each file (None where nobody looked), and what was not checked."""

    leverages: tuple[float | None, ...]
    warnings: tuple[str, ...]


def check_disclosure(
    source: Source, partitioning: Partitioning, options: SketchOptions, engine: Engine, summaries: Sequence[Summary]
) -> Looked:
    """Refuse files that show single rows, unless that is allowed; say what could not be checked."""
    assert options.allow is not None
    random = get_sketch(options.sketch).is_random
    shown: list[Shown | None] = [None] * len(summaries)
    warnings: list[str] = []
    if source.replayable:
        factors = None if random else tuple(summaries)
        shown = look_at_rows(source, partitioning, options.fit_intercept, engine, factors)
    else:
        warnings.append(
            f"Single rows of high leverage and rare levels were not looked for: a {source.description} can be read "
            "only once; pass a table or a file to have them checked."
        )
    names = source.feature_names + source.target_names
    for number, (summary, found) in enumerate(zip(summaries, shown, strict=True)):
        where = "" if partitioning.count == 1 else f" of partition {partitioning.names[number]!r}"
        facts = Facts(
            what=f"The file{where}",
            rows=summary.row_count,
            columns=len(summary.columns),
            parameters=int(options.fit_intercept) + len(source.feature_names),
            sketch_rows=summary.matrix.shape[0] if random else None,
            leverage=None if found is None else found.leverage,
            row=None if found is None else found.row,
            nonzero=() if found is None else tuple(zip(names, found.nonzero, strict=True)),
        )
        refuse(list(concerns_of(facts, source.encoding, options.least_level_rows)), options.allow)
    return Looked(tuple(None if found is None else found.leverage for found in shown), tuple(warnings))
