"""`partsketch plan`: which method, sketch, size and number of partitions, before any work is done."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from partsketch.cli.options import data_options, keyword_option, limit_options
from partsketch.cli.printing import print_json

if TYPE_CHECKING:
    from partsketch.fitting.data_request import DataRequest
    from partsketch.fitting.limits import Limits


@click.command("plan", epilog="Example: partsketch plan --rows 1e7 --columns 50 --partitions 8 --max-excess 1%")
@data_options("Target column of DATA; repeat for several.", needs_data=False)
@click.option("--rows", type=float, help="Number of rows, instead of DATA.")
@click.option("--columns", type=float, help="Number of feature columns, instead of DATA.")
@keyword_option("n_partitions", "Number of partitions; default: several are tried.", default=None)
@keyword_option("partition_by")
@keyword_option("sketch_size", "Rows of each sketch; default: several are tried.")
@keyword_option("fit_intercept")
@keyword_option("weighting")
@limit_options
@click.option("--certified", is_flag=True, help="Count whole summaries as sent, so that a fit can state its own loss.")
@click.option("--delta", type=float, help="Ask from which m on the bound B'_θ holds with probability 1 − delta.")
@keyword_option("engine", "Where it will run: local, dask, ray, spark.")
@click.option("--recalibrate", is_flag=True, help="Measure the speed of this machine again (about two seconds).")
@click.option("--all", "show_all", is_flag=True, help="Show every candidate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    request: DataRequest,
    rows: float | None,
    columns: float | None,
    limits: Limits | None,
    certified: bool,
    show_all: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare every way to fit a model to DATA (or to so many rows and columns), and recommend one."""
    from partsketch.fitting.limits import Limits
    from partsketch.planner.api import PlanOptions, plan_for

    limits = replace(limits or Limits(), certified=certified)
    made = plan_for(request, _whole(rows), _whole(columns), PlanOptions(limits=limits, **options))
    if as_json:
        print_json(made.to_dict())
        return
    from partsketch.common.terminal import terminal_console
    from partsketch.planner.plan_table import print_plan

    print_plan(made, terminal_console(), show_all)


def _whole(value: float | None) -> int | None:
    """Return a count that may have been written as 1e7; fractions stay what they are, to be refused."""
    return int(value) if value is not None and value.is_integer() else value  # type: ignore[return-value]
