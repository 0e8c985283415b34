"""`partsketch sketch`: a site summarises its rows; only the file travels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import click

from partsketch.cli.column_names import column_names
from partsketch.cli.outputs import check_outputs
from partsketch.cli.printing import print_json, warn
from partsketch.cli.sketch_kinds import sketch_option
from partsketch.common.errors import InputError


@click.command(
    "sketch",
    epilog="Example: partsketch sketch trips.parquet --target fare --site north --seed 1 --output north.psk",
)
@click.argument("data", nargs=-1, required=True)
@click.option("--target", "-t", "targets", multiple=True, help="Target column; may also be chosen by combine.")
@click.option("--features", "-f", multiple=True, help="Feature columns, comma-separated; default: all others.")
@click.option(
    "--output", "-o", help="File to write; with several partitions a pattern such as 'north-{partition}.psk'."
)
@click.option("--output-directory", type=click.Path(path_type=Path), help="Folder to write SITE-PARTITION.psk to.")
@click.option("--site", help="Name of this site; default: the name of the output, without its ending.")
@click.option("--label", default="", help="Name of these rows, such as a day, when a site sends several files.")
@click.option("--partitions", "-k", type=int, help="Cut the rows and write one file for each part.")
@click.option("--partition-by", help="order, shuffle, file, or the name of a column.")
@sketch_option("Kind of sketch, as in fit; triangular is exact.", exact=True)
@click.option("--sketch-size", "-m", type=int, help="Rows of the sketch, the same at all sites; default: 4 per column.")
@click.option("--seed", type=int, help="Seed; sites may share one, their names make the numbers different.")
@click.option("--private", is_flag=True, help="Random numbers of the operating system; no seed, no row numbers stored.")
@click.option("--round-rows", type=int, default=1, help="With --private: round the row count to multiples of this.")
@click.option("--no-intercept", is_flag=True, help="Without a column of ones.")
@click.option("--weights", help="Column of sample weights.")
@click.option("--encode", is_flag=True, help="One-hot encode text columns.")
@click.option(
    "--levels",
    "levels_path",
    type=click.Path(path_type=Path),
    help='JSON file of levels to encode that all sites agree on: {"colour": ["blue", "red"]}.',
)
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    default="error",
    show_default=True,
    help="Refuse missing values, or drop their rows.",
)
@click.option("--engine", default="local", show_default=True, help="Where the sketch is made.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    data: tuple[str, ...],
    targets: tuple[str, ...],
    features: tuple[str, ...],
    output: str | None,
    output_directory: Path | None,
    site: str | None,
    label: str,
    partitions: int | None,
    partition_by: str | None,
    sketch: str,
    sketch_size: int | None,
    seed: int | None,
    private: bool,
    round_rows: int,
    no_intercept: bool,
    weights: str | None,
    encode: bool,
    levels_path: Path | None,
    missing: Literal["error", "drop"],
    engine: str,
    as_json: bool,
) -> None:
    """Summarise DATA in small sketch files (.psk) that can be combined without the rows."""
    from partsketch.engines.base import using_engine
    from partsketch.fitting.options import seed_from
    from partsketch.report.sketch_table import describe_sketch, print_sketches
    from partsketch.sites.output import file_names, save_all, site_of
    from partsketch.sites.sketch import SketchOptions, open_for_sketch, sketch_source
    from partsketch.sources.files.paths import local_files

    if private and seed is not None:
        raise InputError("--private takes no --seed: its random numbers must not be drawn again.")
    options = SketchOptions(
        kind=sketch,
        size=sketch_size,
        seed=None if private else seed_from(seed),
        n_partitions=partitions,
        partition_by=partition_by,
        fit_intercept=not no_intercept,
        site=site_of(output, output_directory) if site is None else site,
        label=label,
        private=private,
        round_rows=round_rows,
    )
    several = partitions is not None or partition_by is not None
    first = file_names(output, output_directory, options.site, ["0"] if several else None)
    read = [] if levels_path is None else [levels_path]
    check_outputs({"--output": first[0]}, data, read)
    chosen = column_names(features)
    levels = None if levels_path is None else _read_levels(levels_path)
    source = open_for_sketch(list(data), list(targets) or None, chosen, options, weights, encode, levels, missing)
    with using_engine(engine) as runner:
        made = sketch_source(source, options, runner)
    summaries = made.summaries
    names = [summary.parts[0].partition for summary in summaries] if several else None
    paths = file_names(output, output_directory, options.site, names)
    save_all(summaries, paths, [*read, *local_files(list(data))])
    for sentence in made.warnings:
        warn(sentence)
    written = [(str(path), summary) for path, summary in zip(paths, summaries, strict=True)]
    if as_json:
        print_json({"files": [describe_sketch(*entry) for entry in written]})
    else:
        print_sketches(written)


def _read_levels(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: write levels such as {{'colour': ['blue', 'red']}}.") from error
