"""`partsketch fit`: fit a model to files, with exact least squares beside it."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from partsketch.cli.column_names import column_names
from partsketch.cli.limit_options import limit_options, limits_given
from partsketch.cli.outputs import check_outputs
from partsketch.cli.printing import print_json, warn
from partsketch.cli.sketch_kinds import sketch_option

if TYPE_CHECKING:
    from partsketch.fitting.options import FitOptions


@click.command(
    "fit",
    epilog="Example: partsketch fit 'trips/*.parquet' --target fare --method stack --partitions 16 --model model.json",
)
@click.argument("data", nargs=-1, required=True)
@click.option("--target", "-t", "targets", required=True, multiple=True, help="Target column; repeat for several.")
@click.option("--features", "-f", multiple=True, help="Feature columns, comma-separated; default: all others.")
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "average", "partition", "stack", "whole"]),
    default="auto",
    show_default=True,
    help="Which estimator; auto: exact, or with limits the planner's choice within them.",
)
@click.option("--partitions", "-k", type=int, default=8, show_default=True, help="Number of partitions.")
@click.option(
    "--partition-by", default="order", show_default=True, help="order, shuffle, file, or the name of a column."
)
@click.option(
    "--remainder",
    type=click.Choice(["spread", "drop"]),
    default="spread",
    show_default=True,
    help="Spread rows that do not divide evenly, or leave them out.",
)
@sketch_option("gaussian, srht, sparse_sign, count_sketch, row_sample, leverage_sample, or a kind that was added.")
@click.option("--sketch-size", "-m", type=int, help="Rows of each sketch; default: by kind, four or more per column.")
@click.option("--sparsity", type=int, help="Sketch rows that each row goes to, for sparse_sign; default: 8.")
@click.option("--no-intercept", is_flag=True, help="Do not estimate an intercept.")
@click.option(
    "--averaging",
    type=click.Choice(["equal", "inverse_variance"]),
    default="equal",
    show_default=True,
    help="Weights of the partitions' fits.",
)
@click.option("--alpha", type=float, default=0.0, show_default=True, help="Ridge penalty on all rows together.")
@click.option("--weights", help="Column of sample weights.")
@click.option("--encode", is_flag=True, help="One-hot encode text columns.")
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Refuse missing values, or drop their rows.",
)
@click.option(
    "--route",
    type=click.Choice(["auto", "factor", "iterate"]),
    default="auto",
    show_default=True,
    help="Way of an exact fit: a factor of all rows, or several cheap passes.",
)
@click.option(
    "--engine",
    default="local",
    show_default=True,
    help="Where summaries are made: local, dask, ray, spark, or an address such as dask://host:8786.",
)
@click.option(
    "--on-partition-error",
    type=click.Choice(["raise", "drop"]),
    default="raise",
    show_default=True,
    help="Stop, or leave out partitions that cannot be read.",
)
@click.option("--deadline", type=float, help="Seconds after which late partitions are left out.")
@click.option("--min-partitions", type=int, help="Refuse to go on with fewer partitions; default: 1.")
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    help="Folder that keeps what is finished: started again after a crash, the fit does only the rest.",
)
@limit_options
@click.option("--seed", type=int, help="Seed of the sketches; default: fresh, and recorded.")
@click.option("--model", "model_path", type=click.Path(path_type=Path), help="Write the model to this JSON file.")
@click.option(
    "--report", "report_path", type=click.Path(path_type=Path), help="Write a page about the fit to this HTML file."
)
@click.option(
    "--compare/--no-compare", default=True, show_default=True, help="Fit exact least squares too and show the loss."
)
@click.option("--summary", "with_summary", is_flag=True, help="Print standard errors, tests and intervals too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: tuple[str, ...],
    targets: tuple[str, ...],
    features: tuple[str, ...],
    method: str,
    partitions: int,
    partition_by: str,
    remainder: str,
    sketch: str,
    sketch_size: int | None,
    sparsity: int | None,
    no_intercept: bool,
    averaging: str,
    alpha: float,
    weights: str | None,
    encode: bool,
    missing: Literal["error", "drop"],
    engine: str,
    on_partition_error: str,
    deadline: float | None,
    min_partitions: int | None,
    checkpoint: Path | None,
    max_excess: str | None,
    max_bytes_per_partition: str | None,
    rows_stay: bool,
    memory: str | None,
    seconds_limit: str | None,
    route: str,
    seed: int | None,
    model_path: Path | None,
    report_path: Path | None,
    compare: bool,
    with_summary: bool,
    as_json: bool,
) -> None:
    """Fit a linear model to DATA: files, folders or globs of Parquet, CSV, Feather or .npy."""
    from partsketch.engines.base import using_engine
    from partsketch.fitting.data_request import open_for_fit, with_origin
    from partsketch.fitting.fit import Fit
    from partsketch.fitting.options import FitOptions, seed_from
    from partsketch.planner.fit_request import fit_as_asked
    from partsketch.report.fit_table import comparison_values, print_fit
    from partsketch.sketches.base import get_sketch

    check_outputs({"--model": model_path, "--report": report_path}, data=data, checkpoint=checkpoint)
    if report_path is not None:
        from partsketch.report.page import environment, report_fit

        environment()
    options = FitOptions(
        method=method,
        n_partitions=partitions,
        partition_by=partition_by,
        remainder=remainder,
        sketch=sketch,
        sketch_size=sketch_size,
        sparsity=sparsity,
        fit_intercept=not no_intercept,
        seed=seed_from(seed, checkpoint),
        averaging=averaging,
        alpha=alpha,
        on_partition_error=on_partition_error,
        deadline=deadline,
        min_partitions=min_partitions,
        checkpoint=None if checkpoint is None else str(checkpoint),
        limits=limits_given(max_excess, max_bytes_per_partition, rows_stay, memory, seconds_limit),
        route=route,
    )
    chosen = column_names(features)

    def timed(asked: FitOptions) -> tuple[Fit, float]:
        started = time.perf_counter()
        result = fit_as_asked(source, asked, runner)
        return result, time.perf_counter() - started

    with using_engine(engine) as runner:
        source = open_for_fit(list(data), list(targets), chosen, options, weights, encode, missing, runner)
        # The clocks compare two fits; what is loaded once, for both or one of them, should not count.
        for kind in (sketch, "triangular"):
            get_sketch(kind).prepare()
        if source.replayable and on_partition_error == "raise":
            next(iter(source.read(0, 1)), None)
        fit, seconds = timed(options)
        fit = replace(fit, model=with_origin(fit.model, list(data), list(targets), chosen, weights, encode, missing))
        if model_path is not None:
            fit.model.save(model_path)
        exact = None
        # Of the rows that remain only summaries are left, and a second pass would miss the deadline.
        if compare and fit.model.method != "exact" and deadline is None and not fit.model.record.partitions_left_out:
            exact = timed(_exact_options(options))
    if report_path is not None:
        report_fit(fit.model, source, report_path, seconds, None if exact is None else exact[1])
    for sentence in fit.model.record.warnings:
        warn(sentence)
    if as_json:
        values = {"model": fit.model.to_dict(), "seconds": seconds, "comparison": comparison_values(fit, exact)}
        print_json(values)
    else:
        print_fit(fit, seconds, exact, model_path, with_summary)


def _exact_options(options: FitOptions) -> FitOptions:
    """Return the options of exact least squares on the same rows, with a checkpoint of its own."""
    return replace(
        options,
        method="exact",
        limits=None,
        averaging="equal",
        alpha=0.0,
        on_partition_error="raise",
        min_partitions=None,
        checkpoint=None if options.checkpoint is None else str(Path(options.checkpoint) / "exact"),
        route="factor",
    )
