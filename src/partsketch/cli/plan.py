"""`partsketch plan`: which method, sketch, size and number of partitions, before any work is done."""

from __future__ import annotations

from typing import Literal

import click

from partsketch.cli.column_names import column_names
from partsketch.cli.limit_options import limit_options, limits_given
from partsketch.cli.printing import print_json


@click.command("plan", epilog="Example: partsketch plan --rows 1e7 --columns 50 --partitions 8 --max-excess 1%")
@click.argument("data", nargs=-1)
@click.option("--target", "-t", "targets", multiple=True, help="Target column of DATA; repeat for several.")
@click.option("--features", "-f", multiple=True, help="Feature columns, comma-separated; default: all others.")
@click.option("--rows", type=float, help="Number of rows, instead of DATA.")
@click.option("--columns", type=float, help="Number of feature columns, instead of DATA.")
@click.option("--partitions", "-k", type=int, help="Number of partitions; default: several are tried.")
@click.option(
    "--partition-by", default="order", show_default=True, help="order, shuffle, file, or the name of a column."
)
@click.option("--sketch-size", "-m", type=int, help="Rows of each sketch; default: several are tried.")
@click.option("--no-intercept", is_flag=True, help="Do not estimate an intercept.")
@limit_options
@click.option("--certified", is_flag=True, help="Count whole summaries as sent, so that a fit can state its own loss.")
@click.option("--delta", type=float, help="Ask from which m on the bound B'_θ holds with probability 1 − delta.")
@click.option("--engine", default="local", show_default=True, help="Where it will run: local, dask, ray, spark.")
@click.option("--weights", help="Column of sample weights.")
@click.option("--encode", is_flag=True, help="One-hot encode text columns.")
@click.option("--missing", type=click.Choice(["error", "drop"]), default="error", show_default=True)
@click.option("--recalibrate", is_flag=True, help="Measure the speed of this machine again (about two seconds).")
@click.option("--all", "show_all", is_flag=True, help="Show every candidate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: tuple[str, ...],
    targets: tuple[str, ...],
    features: tuple[str, ...],
    rows: float | None,
    columns: float | None,
    partitions: int | None,
    partition_by: str,
    sketch_size: int | None,
    no_intercept: bool,
    max_excess: str | None,
    max_bytes_per_partition: str | None,
    rows_stay: bool,
    memory: str | None,
    seconds_limit: str | None,
    certified: bool,
    delta: float | None,
    engine: str,
    weights: str | None,
    encode: bool,
    missing: Literal["error", "drop"],
    recalibrate: bool,
    show_all: bool,
    as_json: bool,
) -> None:
    """Compare every way to fit a model to DATA (or to so many rows and columns), and recommend one."""
    from dataclasses import replace

    from partsketch.fitting.limits import Limits
    from partsketch.planner.api import plan

    limits = limits_given(max_excess, max_bytes_per_partition, rows_stay, memory, seconds_limit) or Limits()
    chosen = column_names(features)
    made = plan(
        list(data) or None,
        list(targets) or None,
        chosen,
        rows=_whole(rows),
        columns=_whole(columns),
        limits=replace(limits, certified=certified),
        n_partitions=partitions,
        partition_by=partition_by,
        sketch_size=sketch_size,
        fit_intercept=not no_intercept,
        engine=engine,
        delta=delta,
        weights=weights,
        encode=encode,
        missing=missing,
        recalibrate=recalibrate,
    )
    if as_json:
        print_json(made.to_dict())
        return
    from partsketch.common.terminal import terminal_console
    from partsketch.planner.plan_table import print_plan

    print_plan(made, terminal_console(), show_all)


def _whole(value: float | None) -> int | None:
    """Return a count that may have been written as 1e7; fractions stay what they are, to be refused."""
    return int(value) if value is not None and value.is_integer() else value  # type: ignore[return-value]
