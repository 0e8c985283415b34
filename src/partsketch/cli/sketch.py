"""`partsketch sketch`: a site summarises its rows; only the file travels."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from partsketch.cli.options import data_options, keyword_option, sketch_option
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, warn
from partsketch.cli.site_options import disclosure_options, levels_option, read_levels
from partsketch.common.errors import InputError

if TYPE_CHECKING:
    from partsketch.fitting.data_request import DataRequest
    from partsketch.sites.options import SketchOptions


@click.command(
    "sketch",
    epilog="Example: partsketch sketch trips.parquet --target fare --private --site north --output north.psk",
)
@data_options("Target column; may also be chosen by combine.")
@click.option(
    "--output", "-o", help="File to write; with several partitions a pattern such as 'north-{partition}.psk'."
)
@click.option("--output-directory", type=NamedPath(), help="Folder to write SITE-PARTITION.psk to.")
@click.option(
    "--site",
    help="Name of this site; default: that of the output; with --epsilon there is none.",
)
@click.option("--label", default="", help="Name of these rows, such as a day, when a site sends several files.")
@keyword_option("n_partitions", "Cut the rows and write one file for each part.", default=None)
@keyword_option("partition_by", default=None)
@sketch_option("Kind of sketch, as in fit; triangular is exact.", exact=True)
@keyword_option("sketch_size", "Rows of the sketch, the same at all sites; default: 4 per column.")
@keyword_option("random_state", "Seed; sites may share one, their names make the numbers different.")
@click.option("--private", is_flag=True, help="Random numbers of the operating system; no seed, no row numbers stored.")
@click.option("--round-rows", type=int, default=1, help="With --private: round the row count to multiples of this.")
@keyword_option(
    "noise", "Tell the noise of the target, measured on the rows; auto: where that is cheap, unless private."
)
@click.option("--epsilon", type=float, help="Promise differential privacy: noise on the sums of products.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="With --epsilon: the δ of the promise.")
@click.option("--bounds", type=NamedPath(), help="With --epsilon: TOML file of public bounds: age = [18, 90].")
@click.option(
    "--ledger",
    type=NamedPath(),
    help="With --epsilon: file in which the release is entered.  [default: partsketch-ledger.jsonl]",
)
@click.option("--budget", type=float, help="With --epsilon: refuse when all releases of these rows exceed this ε.")
@disclosure_options
@keyword_option("fit_intercept", "Without a column of ones.")
@levels_option
@keyword_option("engine", "Where the sketch is made.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    request: DataRequest,
    output: str | None,
    output_directory: Path | None,
    site: str | None,
    levels_path: Path | None,
    engine: str,
    as_json: bool,
    **keywords: Any,
) -> None:
    """Summarise DATA in small sketch files (.psk) that can be combined without the rows."""
    from partsketch.engines.base import using_engine
    from partsketch.report.sketch_table import describe_sketch, print_sketches, row_sentences
    from partsketch.sites.options import SketchOptions
    from partsketch.sites.output import file_names, save_all, site_of
    from partsketch.sites.sketch import sketch_source
    from partsketch.sources.files.paths import local_files

    if site is None and keywords["epsilon"] is not None:
        raise InputError(
            "What is promised of rows adds up by site and label: name the site (--site), the same for every file of "
            "these rows."
        )
    site = site_of(output, output_directory) if site is None else site
    options = SketchOptions.made_of(site=site, **keywords)
    first = file_names(output, output_directory, site, ["0"] if options.cuts else None)[0]
    read = [path for path in (levels_path, keywords["bounds"]) if path is not None]
    check_outputs({"--output": first, **_ledger_files(options)}, request.data, read)
    if levels_path is not None:
        request = replace(request, levels=read_levels(levels_path))
    if options.epsilon is not None:
        _release(request, options, engine, first, [*read, *local_files(request.data)], as_json)
        return
    source = request.open(options.partition_column, options.fit_intercept)
    if options.private:
        request.check_private(source)
    with using_engine(engine) as runner:
        made = sketch_source(source, options, runner)
    names = [summary.parts[0].partition for summary in made.summaries] if options.cuts else None
    paths = file_names(output, output_directory, site, names)
    save_all(made.summaries, paths, [*read, *local_files(request.data)])
    for sentence in made.warnings:
        warn(sentence)
    written = [(str(path), summary) for path, summary in zip(paths, made.summaries, strict=True)]
    if as_json:
        leverages = made.leverages or (None,) * len(written)
        told = [
            {**describe_sketch(*one), "largest_leverage": known} for one, known in zip(written, leverages, strict=True)
        ]
        print_json({"files": told})
    else:
        print_sketches(written, row_sentences(written, made.leverages))


def _ledger_files(options: SketchOptions) -> dict[str, Path | None]:
    """Return what a release writes beside its file: the ledger, also where none is named, and its lock."""
    if options.epsilon is None:
        return {"--ledger": None if options.ledger is None else Path(options.ledger)}
    from partsketch.sites.noisy.ledger import USUAL_LEDGER, lock_of

    ledger = Path(options.ledger or USUAL_LEDGER)
    return {"--ledger": ledger, "the lock of the ledger": lock_of(ledger)}


def _release(
    request: DataRequest, options: SketchOptions, engine: str, path: Path, inputs: list[Any], as_json: bool
) -> None:
    """Write a file with a promise, after it was entered in the ledger."""
    from partsketch.common.files import write_atomically
    from partsketch.engines.base import using_engine
    from partsketch.report.noisy_table import describe_noisy, print_noisy
    from partsketch.sites.noisy.release import release

    with using_engine(engine) as runner:
        released = release(request, options, runner)
    write_atomically(path, released.summary.to_bytes(), inputs)
    for sentence in released.warnings:
        warn(sentence)
    if as_json:
        told = {**asdict(released.spent), "ledger": str(released.ledger)}
        print_json({"files": [describe_noisy(str(path), released.summary)], "spent": told})
    else:
        print_noisy([(str(path), released.summary)], [f"{released.spent.sentence} Entered in {released.ledger}."])
