"""`partsketch summarise`: one pass leaves a small file that answers every regression among its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from partsketch.cli.options import column_names, csv_options, keyword_option
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, warn
from partsketch.cli.site_options import disclosure_options, levels_option, read_levels


@click.command(
    "summarise",
    epilog="Example: partsketch summarise trips.parquet --partition-by city --output trips.psk",
)
@click.argument("data", nargs=-1, required=True)
@csv_options
@click.option("--output", "-o", required=True, type=NamedPath(), help="File to write (.psk).")
@click.option("--columns", "-c", multiple=True, help="Columns to summarise, comma-separated; default: all.")
@click.option("--formula", help="In place of columns: 'y ~ a + b'; y is the target where ask names none.")
@keyword_option("partition_by", "A column, file, order or shuffle: the partitions, clusters and folds.", default=None)
@keyword_option("n_partitions", "With order and shuffle: how many.", default=None)
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
    "--site", default="", help="Name of this site: the file leaves it, and is refused if it shows single rows."
)
@click.option("--label", default="", help="Name of these rows, such as a day.")
@disclosure_options
@levels_option
@keyword_option("random_state", "Seed of shuffle.", default=0)
@keyword_option("engine", "Where the summaries are made.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: Any,
    output: Path,
    columns: tuple[str, ...],
    formula: str | None,
    weights: str | None,
    encode: bool,
    missing: Literal["error", "drop"],
    allow: tuple[str, ...],
    levels_path: Path | None,
    engine: str,
    as_json: bool,
    **keywords: Any,
) -> None:
    """Summarise DATA exactly in one small file for `partsketch ask`, and look for single rows that it shows."""
    from partsketch.report.summaries_table import describe_summaries, print_summaries
    from partsketch.sites.options import SketchOptions
    from partsketch.sites.summarise import request_of, summarise_data

    read = [] if levels_path is None else [levels_path]
    check_outputs({"--output": output}, data, read)
    levels = None if levels_path is None else read_levels(levels_path)
    request = request_of(
        data, column_names(columns), formula, weights=weights, encode=encode, missing=missing, levels=levels
    )
    # Whoever names a site means a file that is read beside those of others.
    options = SketchOptions.made_of(sketch="triangular", allow=allow, stays=not keywords["site"], **keywords)
    summaries, sentences = summarise_data(request, options, engine)
    summaries.save(output)
    for sentence in sentences:
        warn(sentence)
    if as_json:
        print_json({**describe_summaries(str(output), summaries), "warnings": list(sentences)})
        return
    print_summaries(str(output), summaries)
