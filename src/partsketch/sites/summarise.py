"""From rows and files to `Summaries`: `partsketch.summarise`, `read_summaries`, and rows that are added later."""

from __future__ import annotations

import warnings as python_warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from partsketch.common.errors import InputError, PartsketchWarning
from partsketch.common.linalg.blas import one_thread_each, triangular_factor
from partsketch.engines.base import using_engine
from partsketch.fitting.data_request import DataRequest
from partsketch.questions.summaries import Summaries
from partsketch.sites.agreement import Named, check_agreement, stay_at_home
from partsketch.sites.options import SketchOptions
from partsketch.sites.reading import read_summaries
from partsketch.sites.sketch import sketch_source
from partsketch.summaries.provenance import Part


def summarise_data(request: DataRequest, options: SketchOptions, engine: Any) -> tuple[Summaries, tuple[str, ...]]:
    """Summarise the rows of every partition exactly, in one pass; return sentences for the site beside them."""
    with using_engine(engine, request.data) as runner:
        source = request.open(options.partition_column, fit_intercept=True, engine=runner)
        if not (source.feature_names or source.target_names):
            raise InputError("There is nothing to summarise: name at least one column.")
        made = sketch_source(source, options, runner)
    return Summaries(made.summaries), made.warnings


def request_of(data: Any, columns: Sequence[str] | None, formula: str | None, **keywords: Any) -> DataRequest:
    """Return what is asked of data whose columns, or those of a formula, are to be summarised."""
    if formula is not None and columns is not None:
        raise InputError("Give columns or a formula, not both: the formula names its columns.")
    request = DataRequest(data, formula, columns, **keywords)
    return request if request.levels is None else replace(request, encode=True)


def read_all(files: Any) -> Summaries:
    """Read summaries from files, globs or lists of them, and refuse those that do not go together."""
    if isinstance(files, Summaries):
        return files
    named = read_summaries(files)
    _check(named)
    return Summaries(tuple(summary for _, summary in named))


def joined(parts: Sequence[Summaries]) -> Summaries:
    """Return the partitions of several summaries in one; the same rows must not be in two."""
    named = [(repr(name), factor) for part in parts for name, factor in zip(part.names, part.factors, strict=True)]
    _check(named)
    return Summaries(tuple(summary for _, summary in named))


def _check(named: Sequence[Named]) -> None:
    """Refuse summaries that do not go together: those of one cut at once, then one stand-in for each cut.

    Partitions of one cut share nothing, however many there are; only cuts have to be compared with one another.
    """
    cuts: dict[tuple[str, str, str], list[Named]] = defaultdict(list)
    for name, summary in named:
        part = summary.parts[0]
        key = (part.site, part.label, part.cut) if len(summary.parts) == 1 and part.cut else (name, "", "")
        cuts[key].append((name, summary))
    stand_ins = []
    for entries in cuts.values():
        _check_cut(entries)
        stand_ins.append(_stand_in(entries))
    with one_thread_each():
        check_agreement(stand_ins)
    for sentence in stay_at_home(stand_ins):
        python_warnings.warn(sentence, PartsketchWarning, stacklevel=4)


def _check_cut(entries: Sequence[Named]) -> None:
    """Refuse two partitions of one cut that share rows: by their numbers, or by their row numbers."""
    first_name, first = entries[0]
    for name, summary in entries:
        if (summary.columns, summary.kind) != (first.columns, first.kind):
            check_agreement([(first_name, first), (name, summary)])
    places = sorted((*_place(summary.parts[0]), name) for name, summary in entries)
    for one, other in pairwise(places):
        if one[1] > other[0]:
            raise InputError(
                f"{one[2]} and {other[2]} hold the same rows: leave one out, or if they do not, summarise each with a "
                "site or label of its own."
            )


def _place(part: Part) -> tuple[int, int]:
    """Return from where to where rows of a partition reach; its number where row numbers are shared out."""
    if part.contiguous and part.start is not None and part.stop is not None:
        return part.start, part.stop
    return part.stream, part.stream + 1


def _stand_in(entries: Sequence[Named]) -> Named:
    """Return one summary with the rows of all."""
    name, first = entries[0]
    if len(entries) == 1:
        return name, first
    factor = triangular_factor(np.vstack([summary.matrix for _, summary in entries]))
    rows = sum(summary.row_count for _, summary in entries)
    weight = sum(summary.weight_sum for _, summary in entries)
    part = first.parts[0]
    if part.contiguous and part.start is not None and part.stop is not None:
        spans = [summary.parts[0] for _, summary in entries]
        start, stop = min(span.start or 0 for span in spans), max(span.stop or 0 for span in spans)
        part = replace(part, start=start, stop=stop)
    return name, replace(first, matrix=factor, low=None, row_count=rows, weight_sum=weight, parts=(part,))


def add_rows(
    before: Summaries,
    data: Any,
    partition_by: str | None,
    n_partitions: int | None,
    weights: str | None,
    missing: Literal["error", "drop"],
    engine: Any,
    site: str,
    label: str,
) -> Summaries:
    """Summarise more rows and put them to what is there: partitions of the same name grow."""
    first = before.factors[0]
    encoding = first.about.encoding
    if weights is None and first.about.weighted:
        raise InputError("The summaries have sample weights: name the column of weights of these rows too.")
    if weights is not None and not first.about.weighted:
        raise InputError("The summaries have no sample weights: leave the weights of these rows out too.")
    levels: Mapping[str, Sequence[str]] | None = dict(encoding.levels) or None
    features = list(encoding.source_columns(before.columns))
    request = DataRequest(data, None, features, weights, bool(levels), missing, _as_lists(levels))
    if encoding.design is not None:
        targets = list(encoding.design.target_names) or None
        request = DataRequest(data, targets, None, weights, missing=missing, encoding=encoding)
    labels = {part.label for summary in before.factors for part in summary.parts}
    options = SketchOptions(
        sketch="triangular", seed=0, n_partitions=n_partitions, partition_by=partition_by,
        site=site or first.parts[0].site, label=label or f"batch {len(labels)}",
    )  # fmt: skip
    if options.label in labels:
        raise InputError(f"Rows of the label {options.label!r} are in already: give these another label.")
    more, _ = summarise_data(request, options, engine)
    factors = {summary.parts[0].partition: summary for summary in before.factors}
    if len(factors) < len(before):
        raise InputError("Partitions of several sites have the same names: add rows to the summaries of one site.")
    with one_thread_each():
        for summary in more.factors:
            place = summary.parts[0].partition
            # About rows: what was meant as a target stays so.
            new = replace(summary, about=replace(summary.about, targets=first.about.targets))
            factors[place] = factors[place].stack(new) if place in factors else new
    return Summaries(tuple(factors.values()))


def _as_lists(levels: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]] | None:
    return None if levels is None else {column: list(names) for column, names in levels.items()}
