"""A fit as it was asked for, the same from every front: a method that was left open is chosen first."""

from __future__ import annotations

from collections.abc import Mapping

from partsketch.engines.base import Engine
from partsketch.fitting.data_request import as_formula_says
from partsketch.fitting.extremes import within_doubles
from partsketch.fitting.fit import Fit, fit_source
from partsketch.fitting.keywords import AUTO
from partsketch.fitting.options import FitOptions
from partsketch.model.methods import METHODS
from partsketch.sketches.base import usual_size
from partsketch.sources.base import Source

#: Fewer operations than this take no machine ten minutes: nothing is looked up, let alone measured, for small fits.
MANY_OPERATIONS = 1e12
_MANY_SKETCHES = 100


def fit_as_asked(source: Source, options: FitOptions, engine: Engine) -> Fit:
    """Fit a model to the rows of a source; with method="auto" the plan says which."""
    options = as_formula_says(options, source)
    with within_doubles(source):
        if options.method != AUTO:
            return _fitted(source, options, engine, None)
        from partsketch.planner.auto import choose_options

        options, chosen = choose_options(source, options, engine.name)
        return _fitted(source, options, engine, chosen)


def _fitted(source: Source, options: FitOptions, engine: Engine, chosen: Mapping[str, str] | None) -> Fit:
    if options.absorb is None:
        if _may_take_long(source, options):
            from partsketch.planner.long_fits import warn_of_long_fit

            warn_of_long_fit(source, options, engine.name)
        return fit_source(source, options, engine, chosen)
    from partsketch.fitting.absorbed.fit import fit_absorbed

    return fit_absorbed(source, options, engine, chosen)


def _may_take_long(source: Source, options: FitOptions) -> bool:
    """Tell, without loading anything, whether a sketched fit is large enough to ask how long it will take."""
    method = METHODS[options.method]
    if not method.sketched:
        return False
    sketches = 1 if method.by_partition else int(options.n_partitions)
    if source.row_count is None:
        # Files of text tell about how many rows they have, which takes longer than small fits.
        return sketches >= _MANY_SKETCHES
    width = len(source.feature_names) + len(source.target_names) + 1
    size = options.sketch_size or usual_size(width)
    return 2.0 * source.row_count * sketches * size * width >= MANY_OPERATIONS
