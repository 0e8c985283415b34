"""`partsketch diagnose`: how unlike partitions are, why, what each method would lose, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from partsketch.cli.options import data_options, keyword_option
from partsketch.cli.printing import print_json

if TYPE_CHECKING:
    from partsketch.fitting.data_request import DataRequest


@click.command("diagnose", epilog="Example: partsketch diagnose houses.parquet --target MedHouseVal --partitions 5")
@data_options("Target column.", needs_target=True)
@keyword_option("n_partitions")
@keyword_option("partition_by")
@keyword_option("sketch_size", "Rows of each sketch; default: what a fit would choose.")
@keyword_option("fit_intercept")
@keyword_option("random_state", "Seed of the random partitions.", default=0)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(request: DataRequest, as_json: bool, **keywords: Any) -> None:
    """Read DATA once and say how unlike its partitions are, which rows make them so, and what to do about it."""
    from partsketch.fitting.keywords import FitKeywords
    from partsketch.planner.diagnosis.api import diagnose_data

    found = diagnose_data(request, FitKeywords("average", **keywords))
    if as_json:
        print_json(found.to_dict())
        return
    from partsketch.common.terminal import terminal_console
    from partsketch.planner.diagnosis.table import print_diagnosis

    print_diagnosis(found, terminal_console())
