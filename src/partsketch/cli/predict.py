"""`partsketch predict`: predictions of a saved model for the rows of files, streamed to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from partsketch.cli.options import csv_options
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, say
from partsketch.common.errors import InputError


@click.command("predict", epilog="Example: partsketch predict model.json new.parquet --output predictions.parquet")
@click.argument("model", type=NamedPath())
@click.argument("data", nargs=-1, required=True)
@csv_options
@click.option(
    "--output",
    "-o",
    required=True,
    type=NamedPath(),
    help="File to write: .parquet, .csv or .feather by its ending.",
)
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Refuse missing values, or leave their rows out (a column 'row' then says which are there).",
)
@click.option(
    "--interval",
    type=click.Choice(["confidence", "prediction"]),
    help="Add columns lower and upper, of the mean of such rows or of a new row, and standard_error of that mean.",
)
@click.option("--level", type=float, help="Nominal coverage of the intervals.  [default: 0.95]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    model: Path,
    data: Any,
    output: Path,
    missing: Literal["error", "drop"],
    interval: str | None,
    level: float | None,
    as_json: bool,
) -> None:
    """Predict with MODEL for the rows of DATA."""
    from partsketch.model.file import load
    from partsketch.model.predict import write_predictions

    if level is not None and interval is None:
        raise InputError("--level is of intervals: give --interval confidence or --interval prediction with it.")
    check_outputs({"--output": output}, data=data, files=[model])
    rows = write_predictions(load(model), data, output, missing, interval, 0.95 if level is None else level)
    if as_json:
        print_json({"rows": rows, "output": str(output)})
    else:
        say(f"{rows:,} predictions written to {output}")
