"""`partsketch diagnose`: how unlike partitions are, why, what each method would lose, and what to do."""

from __future__ import annotations

from typing import Literal

import click

from partsketch.cli.column_names import column_names
from partsketch.cli.printing import print_json


@click.command("diagnose", epilog="Example: partsketch diagnose houses.parquet --target MedHouseVal --partitions 5")
@click.argument("data", nargs=-1, required=True)
@click.option("--target", "-t", required=True, help="Target column.")
@click.option("--features", "-f", multiple=True, help="Feature columns, comma-separated; default: all others.")
@click.option("--partitions", "-k", type=int, default=8, show_default=True, help="Number of partitions.")
@click.option(
    "--partition-by", default="order", show_default=True, help="order, shuffle, file, or the name of a column."
)
@click.option("--sketch-size", "-m", type=int, help="Rows of each sketch; default: what a fit would choose.")
@click.option("--no-intercept", is_flag=True, help="Do not estimate an intercept.")
@click.option("--weights", help="Column of sample weights.")
@click.option("--encode", is_flag=True, help="One-hot encode text columns.")
@click.option("--missing", type=click.Choice(["error", "drop"]), default="error", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random partitions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: tuple[str, ...],
    target: str,
    features: tuple[str, ...],
    partitions: int,
    partition_by: str,
    sketch_size: int | None,
    no_intercept: bool,
    weights: str | None,
    encode: bool,
    missing: Literal["error", "drop"],
    seed: int,
    as_json: bool,
) -> None:
    """Read DATA once and say how unlike its partitions are, which rows make them so, and what to do about it."""
    from partsketch.fitting.options import seed_from
    from partsketch.planner.diagnosis.diagnosing import diagnose

    chosen = column_names(features)
    found = diagnose(
        list(data),
        target,
        chosen,
        n_partitions=partitions,
        partition_by=partition_by,
        sketch_size=sketch_size,
        fit_intercept=not no_intercept,
        weights=weights,
        encode=encode,
        missing=missing,
        seed=seed_from(seed),
    )
    if as_json:
        print_json(found.to_dict())
        return
    from partsketch.common.terminal import terminal_console
    from partsketch.planner.diagnosis.table import print_diagnosis

    print_diagnosis(found, terminal_console())
