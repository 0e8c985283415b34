"""From sketch files to a model, without the rows: `partsketch.combine`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.solve import RANK_TOLERANCE
from partsketch.fitting.fit import Fit
from partsketch.fitting.memory import Sizes, check_memory
from partsketch.fitting.options import FitOptions
from partsketch.model.build import Circumstances, build_model
from partsketch.model.certificate import Certificate
from partsketch.model.combine import combine_summaries
from partsketch.model.coordinates import standardise
from partsketch.model.methods import METHODS
from partsketch.model.regression import Regression, restored
from partsketch.questions.choice import choose_columns
from partsketch.sites.agreement import Named, check_agreement, stay_at_home
from partsketch.sites.noisy.combine import combine_noisy
from partsketch.sites.reading import NamedFile
from partsketch.sketches.base import get_sketch
from partsketch.summaries.noisy_summary import NoisySummary
from partsketch.summaries.summary import Summary, common_centre, joined_rows
from partsketch.summaries.tasks import INTERCEPT


def combine_files(
    files: Sequence[NamedFile],
    target: str | Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    method: str | None = None,
    fit_intercept: bool | None = None,
    averaging: str = "equal",
    alpha: float = 0.0,
    weighting: str = "rows",
) -> Fit:
    """Make a model from summaries that are at hand."""
    noisy = [(name, summary) for name, summary in files if isinstance(summary, NoisySummary)]
    named = [(name, summary) for name, summary in files if isinstance(summary, Summary)]
    if noisy:
        _check_plain(method, averaging, alpha, weighting)
        return combine_noisy(noisy, named, target, features, fit_intercept)
    check_agreement(named)
    summaries = [summary for _, summary in named]
    first = summaries[0]
    random = get_sketch(first.kind).is_random
    method = method or ("stack" if random else "exact")
    _check_method(method, first.kind, random)
    regression = _regression(first, target, features, fit_intercept)
    regression = replace(regression, averaging=averaging, penalty=float(alpha), weighting=weighting)
    # The options of a fit know what goes together.
    FitOptions(
        method=method, n_partitions=len(named), partition_by="order", remainder="spread", seed=0, averaging=averaging,
        sketch=first.kind if random else "gaussian", sketch_size=None, fit_intercept=True, alpha=alpha,
        weighting=weighting,
    )  # fmt: skip
    _check_sizes(named, regression, random, method)
    _check_memory(named, regression, method)
    names = tuple(summary.parts[0].name if len(summary.parts) == 1 else name for name, summary in named)
    try:
        with one_thread_each(), np.errstate(divide="raise", over="raise", invalid="raise"):
            if method == "exact":
                summaries, names = [reduce(Summary.stack, summaries)], ("all",)
            coordinates, standard = standardise(
                summaries, regression.features, regression.targets, regression.free_columns
            )
            regression = replace(regression, coordinates=coordinates)
            combination = combine_summaries(METHODS[method], standard, regression)
            circumstances = _circumstances(named, method, regression, names)
            model = build_model(method, standard, combination, regression, circumstances)
    except (ArithmeticError, np.linalg.LinAlgError) as error:
        # Anybody can write a valid file of numbers that no rows would give.
        raise InputError(f"The numbers in the files give no regression ({error}): look at each file alone.") from error
    multiple = max(summary.about.rounded_to for summary in summaries)
    if multiple > 1:
        certificates = tuple(_with_rounded_rows(certificate, multiple) for certificate in model.certificates)
        model = replace(model, certificates=certificates)
    return Fit(model, tuple(summaries), restored(combination, regression))


def _check_plain(method: str | None, averaging: str, alpha: float, weighting: str) -> None:
    """Refuse what files with a promise do not offer."""
    given = {
        "method": method not in (None, "exact"),
        "averaging": averaging != "equal",
        "weighting": weighting != "rows",
    }
    for name, asked in {**given, "alpha": alpha != 0}.items():
        if asked:
            raise InputError(
                f"Files with a promise (epsilon) are added up and solved once: leave {name} out (--{name})."
            )


def _check_method(method: str, kind: str, random: bool) -> None:
    possible = ("stack", "partition") if random else ("exact", "average")
    if method not in possible:
        raise InputError(
            f"method is {method!r}: from {kind} summaries choose {possible[0]!r} or {possible[1]!r}"
            + (" (exact methods need files made with --sketch triangular)." if random else ".")
        )


def _regression(
    summary: Summary,
    target: str | Sequence[str] | None,
    features: Sequence[str] | None,
    fit_intercept: bool | None,
) -> Regression:
    targets, chosen = choose_columns(summary.columns, summary.about, target, features)
    has_ones = INTERCEPT in summary.columns
    if fit_intercept and not has_ones:
        raise InputError("The files were made without an intercept: make them again, or combine without one.")
    with_ones = has_ones if fit_intercept is None else fit_intercept
    columns = ((INTERCEPT,) if with_ones else ()) + chosen
    if not columns:
        raise InputError("There is nothing to fit: no features and no intercept.")
    return Regression(columns, targets, int(with_ones))


def _check_sizes(named: Sequence[Named], regression: Regression, random: bool, method: str) -> None:
    columns, size = len(regression.features), named[0][1].matrix.shape[0]
    if not random or regression.penalty > 0:
        return
    if METHODS[method].combines_by == "stack" and size <= columns + 1:
        _check_stacked_sizes(named, columns, size * len(named))
        return
    if size <= columns + 1:
        raise InputError(
            f"The files hold sketches of {size} rows: {columns} columns to estimate (intercept included) need at least "
            f"{columns + 2} for a fit of each; use method 'stack', which takes all rows together (--method), choose "
            "fewer features (--features), or make larger sketches (--sketch-size)."
        )
    for name, summary in named:
        if summary.row_count < columns + 2:
            raise InputError(
                f"{name} stands for {summary.row_count} rows: {columns} columns to estimate need at least "
                f"{columns + 2} rows in every file; leave it out, or choose fewer features (--features)."
            )


def _check_stacked_sizes(named: Sequence[Named], columns: int, rows: int) -> None:
    """Refuse short sketches that do not determine the coefficients together either."""
    if rows <= columns + 1:
        raise InputError(
            f"The sketches of all files have {rows} rows together: {columns} columns to estimate (intercept included) "
            f"need at least {columns + 2}; choose fewer features (--features), or make larger sketches (--sketch-size)."
        )
    behind = sum(summary.row_count for _, summary in named)
    if behind < columns + 2:
        raise InputError(
            f"The files stand for {behind} rows together: {columns} columns to estimate need at least {columns + 2}."
        )


def _check_memory(named: Sequence[Named], regression: Regression, method: str) -> None:
    """Refuse files whose solution there is no memory for."""
    first = named[0][1]
    width = len(regression.features) + len(regression.targets)
    rows = sum(summary.row_count for _, summary in named)
    count = 1 if method == "exact" else len(named)
    size = first.matrix.shape[0] if get_sketch(first.kind).is_random else None
    check_memory(Sizes(method, width, rows, count, size), ways_out="choose fewer features (--features)")


def _circumstances(
    named: Sequence[Named], method: str, regression: Regression, names: tuple[str, ...]
) -> Circumstances:
    summaries = [summary for _, summary in named]
    first, count = summaries[0], len(named)
    encoding = first.about.encoding.narrowed(regression.features, regression.targets)
    warnings = [*_constant_targets(summaries, regression), *stay_at_home(named)]
    rounded = [name for name, summary in named if summary.about.rounded_to > 1]
    if rounded:
        warnings.append(
            f"The row counts of {len(rounded)} of {count} files are rounded: certificate, noise variance and intervals "
            "are approximate."
        )
    return Circumstances(
        options={
            "method": method,
            "fit_intercept": INTERCEPT in regression.features,
            "averaging": regression.averaging,
            "weighting": regression.weighting,
            "alpha": regression.penalty,
            "sketch": first.kind,
            "files": [describe(name, summary) for name, summary in named],
        },
        seed=None,
        names=names,
        row_count=sum(summary.row_count for summary in summaries),
        weight_sum=sum(summary.weight_sum for summary in summaries),
        rows_dropped=sum(summary.about.rows_dropped or 0 for summary in summaries),
        rows_left_out=0,
        reasons={
            "method": f"method={method!r}: {METHODS[method].description}",
            "rows": "the model was made from sketch files alone; no rows were read",
        },
        warnings=tuple(warnings),
        data=f"{count} sketch file{'' if count == 1 else 's'}",
        encoding=encoding,
    )


def describe(name: str, summary: Summary) -> dict[str, Any]:
    """Return what a file tells of itself, as plain data."""
    return {
        "file": name,
        "sites": [part.name for part in summary.parts],
        "sketch": summary.kind,
        "sketch_rows": int(summary.matrix.shape[0]),
        "rows": summary.row_count,
        "rounded_to": summary.about.rounded_to,
        "private": summary.about.private,
    }


def _constant_targets(summaries: Sequence[Summary], regression: Regression) -> list[str]:
    """Say which targets have one value only: they are a multiple of the column of ones, in every sketch."""
    if INTERCEPT not in summaries[0].columns:
        return []
    sentences = []
    for target in regression.targets:
        place = summaries[0].columns.index(target)
        centre = common_centre(summaries)
        ones, values = joined_rows(centre, *summaries).high[:, [summaries[0].columns.index(INTERCEPT), place]].T
        level = float(ones @ values) / float(ones @ ones) if ones.any() else 0.0
        rest = np.linalg.norm(values - level * ones)
        # A zero has no sign.
        level += float(centre[place]) + 0.0
        # Both columns were summed in the same order: what is left of a constant is rounding.
        if rest <= RANK_TOLERANCE * np.linalg.norm(ones) * abs(level):
            sentences.append(f"Target {target!r} is constant ({level:g} in every row): there is nothing to explain.")
    return sentences


def _with_rounded_rows(certificate: Certificate, multiple: int) -> Certificate:
    if certificate.kind not in ("estimated", "approximate"):
        return certificate
    reason = f"row counts are rounded to multiples of {multiple}, otherwise: {certificate.reason}"
    sentence = re.sub("expected to lose (?!about )", "expected to lose about ", certificate.sentence, count=1)
    return replace(certificate, kind="approximate", reason=reason, sentence=sentence)
