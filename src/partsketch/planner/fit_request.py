"""A fit as it was asked for, the same from every front: a method that was left open is chosen first."""

from __future__ import annotations

from collections.abc import Mapping

from partsketch.engines.base import Engine
from partsketch.fitting.data_request import as_formula_says
from partsketch.fitting.extremes import within_doubles
from partsketch.fitting.fit import Fit, fit_source
from partsketch.fitting.keywords import AUTO
from partsketch.fitting.options import FitOptions
from partsketch.sources.base import Source


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
        return fit_source(source, options, engine, chosen)
    from partsketch.fitting.absorbed.fit import fit_absorbed

    return fit_absorbed(source, options, engine, chosen)
