"""Sketched fits that take long say so before they begin: many sketches of all rows are as many times the work."""

from __future__ import annotations

import warnings

from partsketch.common.errors import PartsketchWarning
from partsketch.common.units import seconds_text
from partsketch.fitting.memory import Sizes, check_memory
from partsketch.fitting.options import FitOptions
from partsketch.model.methods import METHODS
from partsketch.planner.calibration import calibration
from partsketch.planner.costs import seconds
from partsketch.planner.survey import sizes_of
from partsketch.planner.work import Work
from partsketch.sketches.base import get_sketch
from partsketch.sources.base import Source

#: From here on a fit takes long enough to be told of.
_LONG_SECONDS = 600.0


def warn_of_long_fit(source: Source, options: FitOptions, engine: str) -> None:
    """Say how long a sketched fit will take on this machine, and what would take less, if that is long.

    Exact fits are not told of: they find out on their way whether they can do with less. Nobody knows the speed of the
    workers of a cluster before it has worked.
    """
    if engine != "local":
        return
    work = _work(source, options)
    # What is refused is not told to take long.
    check_memory(Sizes(work.method, work.width, work.rows, work.summaries, work.sketch_size))
    expected = seconds(work, calibration())
    if not expected >= _LONG_SECONDS:
        return
    dense, ways_out = get_sketch(work.sketch).cost.is_dense, []
    if work.accumulations > 1:
        ways_out.append("fewer sketches (n_partitions)")
    if dense:
        ways_out += ["a smaller sketch_size", "a kind that is not dense (sketch='count_sketch')"]
    of = f"{work.accumulations:,} sketches of all" if work.accumulations > 1 else "sketches of"
    less = f": {' or '.join(ways_out)} would take less" if ways_out else ""
    warnings.warn(
        f"This fit takes about {seconds_text(expected)} on this machine when nothing else runs, for {of} {work.rows:,} "
        f"rows{less}.",
        PartsketchWarning,
        stacklevel=2,
    )


def _work(source: Source, options: FitOptions) -> Work:
    """Return the sizes of a fit, with the default in place of a sketch size that is left open."""
    survey = sizes_of(source, options)
    size = options.sketch_size or get_sketch(options.sketch).default_size(survey.columns)[0]
    if options.sketch_size is None and METHODS[options.method].by_partition:
        size = min(size, max(survey.columns + 4, (survey.rows or 0) // int(options.n_partitions)))
    return Work(
        rows=survey.rows or 0,
        columns=survey.columns,
        targets=survey.targets,
        method=options.method,
        sketch=options.sketch,
        partitions=int(options.n_partitions),
        sketch_size=size,
        storage=survey.storage,
        extra_passes=survey.extra_passes,
        splittable=survey.splittable,
        group_rows=survey.group_rows,
        codes=survey.codes,
    )
