"""From the rows of a site to a noisy summary: what may not be told is refused, the release entered, the noise drawn."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from partsketch.common.errors import InputError
from partsketch.engines.base import Engine
from partsketch.fitting.data_request import DataRequest
from partsketch.sites.noisy.bounds import measures_of
from partsketch.sites.noisy.ledger import USUAL_LEDGER, Entry, Spent, enter, now
from partsketch.sites.noisy.mechanism import check_mechanism, noisy_products
from partsketch.sites.noisy.products import sum_products
from partsketch.sites.noisy.suspicions import suspicious
from partsketch.sites.options import SketchOptions
from partsketch.sources.base import Source
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding
from partsketch.sources.formula.design import CATEGORY, Factor
from partsketch.sources.formula.given import found_of_rows, levels_of_rows
from partsketch.summaries.file_header import name_fault
from partsketch.summaries.noisy_file import MOST_NOISY_COLUMNS
from partsketch.summaries.noisy_summary import NoisySummary, Promise, noise_of
from partsketch.summaries.provenance import About
from partsketch.summaries.tasks import INTERCEPT


@dataclass(frozen=True)
class Released:
    """A noisy summary, what is spent of its rows, and what the site alone should know."""

    summary: NoisySummary
    spent: Spent
    ledger: Path
    warnings: tuple[str, ...]


def release(request: DataRequest, options: SketchOptions, engine: Engine) -> Released:
    """Release sums of products of all rows of the data."""
    check_mechanism()
    _check_request(request)
    source = request.open(None, fit_intercept=True, engine=engine)
    _check_found(source, request)
    names = (*source.feature_names, *source.target_names)
    _check_names(names)
    measures = measures_of(source, options.bounds)
    products = sum_products(source, measures, engine)
    assert options.epsilon is not None
    promise = Promise(
        options.epsilon,
        options.delta,
        measures.clip,
        measures.norm,
        noise_of(options.epsilon, options.delta, measures.norm, len(names) + 1),
    )
    about = About(source.target_names, _public(source.encoding), private=True, rows_dropped=None)
    name, width = secrets.token_hex(16), len(names) + 1
    summary = NoisySummary(
        np.zeros((width, width)),
        (INTERCEPT, *names),
        measures.bounds,
        promise,
        options.site,
        options.label,
        name,
        about,
    )
    # What no file can hold is refused before it costs anything.
    summary.to_bytes()
    ledger = Path(USUAL_LEDGER if options.ledger is None else options.ledger)
    entry = Entry(options.site, options.label, promise.epsilon, promise.delta, names, name, now())
    # Entered first: whoever draws noise has released.
    spent = enter(ledger, entry, options.budget)
    summary = replace(summary, products=noisy_products(products.sums, measures.norm, promise.epsilon, promise.delta))
    return Released(summary, spent, ledger, tuple(suspicious(names, measures, products)))


def _check_request(request: DataRequest) -> None:
    if request.weights is not None:
        raise InputError(
            "A promise (epsilon, delta) is made for rows that count once: leave the weights out (--weights)."
        )
    if request.encode and request.levels is None:
        raise InputError(
            "Levels that are found among the rows tell of them: with epsilon give the levels that are publicly known "
            "(--levels)."
        )


def _check_found(source: Source, request: DataRequest) -> None:
    """Refuse what was found of the rows and not given: levels, knots, centres."""
    design, given = source.encoding.design, request.levels or {}
    if design is None:
        return
    found = [*levels_of_rows(design.factors, given), *found_of_rows(design.factors, given)]
    if found:
        raise InputError(
            f"What the formula needs for {found[0]!r} was found of the rows, and a file would tell it: give levels, "
            "knots and other numbers that are publicly known (--levels), or write levels=, knots=, lower_bound= and "
            "upper_bound= in it."
        )
    if not design.intercept:
        raise InputError("A file with a promise holds the ones: leave '- 1' out, and combine without an intercept.")


def _check_names(names: tuple[str, ...]) -> None:
    for name in names:
        fault = name_fault(name)
        if fault:
            raise InputError(f"The column {name[:50]!r} {fault}: rename it.")
        if name == INTERCEPT:
            raise InputError(f"A column is called {INTERCEPT!r}, which names the intercept: rename it.")
    if len(names) >= MOST_NOISY_COLUMNS:
        raise InputError(
            f"{len(names)} columns are too many for a promise, whose noise would drown them: name at most "
            f"{MOST_NOISY_COLUMNS - 1} (--features)."
        )


def _public(encoding: Encoding) -> Encoding:
    """Return the encoding as far as it follows from what was given, and not from the rows."""
    design = encoding.design
    if design is None:
        return encoding if encoding.levels else NOTHING_ENCODED
    return replace(encoding, design=replace(design, notes=(), factors=tuple(map(_of_levels, design.factors))))


def _of_levels(factor: Factor) -> Factor:
    """Say by the levels whether they are whole numbers: in a CSV file a single '2.0' makes all of them doubles."""
    if factor.kind != CATEGORY or factor.level_type not in ("integer", "number"):
        return factor
    whole = all(level.lstrip("+-").isdecimal() for level in factor.levels)
    return replace(factor, level_type="integer" if whole else "number")
