"""`partsketch fit`: fit a model to files, with exact least squares beside it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from partsketch.cli.options import data_options, fit_options, intervals_option
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, warn

if TYPE_CHECKING:
    from partsketch.engines.base import Engine
    from partsketch.fitting.data_request import DataRequest
    from partsketch.fitting.fit import Fit
    from partsketch.fitting.keywords import FitKeywords
    from partsketch.fitting.options import FitOptions
    from partsketch.sources.base import Source


@click.command(
    "fit",
    epilog="Example: partsketch fit 'trips/*.parquet' --target fare --method stack --partitions 16 --model model.json",
)
@data_options("Target column; repeat for several.", needs_target=True)
@fit_options
@click.option("--model", "model_path", type=NamedPath(), help="Write the model to this JSON file.")
@click.option("--report", "report_path", type=NamedPath(), help="Write a page about the fit to this HTML file.")
@click.option(
    "--compare/--no-compare", default=True, show_default=True, help="Fit exact least squares too and show the loss."
)
@click.option("--summary", "with_summary", is_flag=True, help="Print the whole table: degrees of freedom, R², notes.")
@intervals_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    request: DataRequest,
    keywords: FitKeywords,
    model_path: Path | None,
    report_path: Path | None,
    compare: bool,
    with_summary: bool,
    intervals_of: str,
    as_json: bool,
) -> None:
    """Fit a linear model to DATA: files, folders or globs of Parquet, CSV, Feather or .npy."""
    from partsketch.engines.base import using_engine
    from partsketch.fitting.options import FitOptions
    from partsketch.report.fit_table import comparison_values, print_fit

    check_outputs({"--model": model_path, "--report": report_path}, data=request.data, checkpoint=keywords.checkpoint)
    if report_path is not None:
        from partsketch.report.page import environment, report_fit

        environment()
    request, keywords = request.absorbing(keywords)
    options = FitOptions.made_of(keywords)
    with using_engine(keywords.engine, request.data) as engine:
        source = request.open_for(options, engine)
        _warm_up(source, options)
        fit, seconds = _timed(source, options, engine)
        fit = replace(fit, model=request.noted_in(fit.model))
        if model_path is not None:
            fit.model.save(model_path)
        # Of the rows that remain only summaries are left, and a second pass would miss the deadline.
        whole = options.deadline is None and not fit.model.record.partitions_left_out
        comparable = compare and fit.model.method != "exact" and whole
        exact = _timed(source, _exact_options(options), engine) if comparable else None
    if report_path is not None:
        report_fit(fit.model, source, report_path, seconds, None if exact is None else exact.seconds)
    for sentence in fit.model.record.warnings:
        warn(sentence)
    if as_json:
        values = {"model": fit.model.to_dict(), "seconds": seconds, "comparison": comparison_values(fit, exact)}
        if with_summary:
            values["summary"] = fit.model.summary(of=intervals_of).to_dict()
        print_json(values)
    else:
        print_fit(fit, seconds, exact, model_path, intervals_of if with_summary else None)


class _Timed(NamedTuple):
    fit: Fit
    seconds: float


def _timed(source: Source, options: FitOptions, engine: Engine) -> _Timed:
    from partsketch.planner.fit_request import fit_as_asked

    started = time.perf_counter()
    fit = fit_as_asked(source, options, engine)
    return _Timed(fit, time.perf_counter() - started)


def _warm_up(source: Source, options: FitOptions) -> None:
    """Load what is loaded once: the clocks compare two fits, and it should count for neither.

    A fit that is exact is compared with nothing, and loads what it needs itself.
    """
    from partsketch.fitting.limits import limits_from
    from partsketch.sketches.base import get_sketch

    if options.method == "exact" or (options.method == "auto" and not limits_from(options.limits).any):
        return
    for kind in (options.sketch, "triangular"):
        get_sketch(kind).prepare()
    if source.replayable and options.on_partition_error == "raise":
        next(iter(source.read(0, 1)), None)


def _exact_options(options: FitOptions) -> FitOptions:
    """Return the options of exact least squares on the same rows, with a checkpoint of its own."""
    return replace(
        options,
        method="exact",
        limits=None,
        averaging="equal",
        weighting="rows",
        noise="auto",
        alpha=0.0,
        on_partition_error="raise",
        min_partitions=None,
        checkpoint=None if options.checkpoint is None else str(Path(options.checkpoint) / "exact"),
        route="factor",
    )
