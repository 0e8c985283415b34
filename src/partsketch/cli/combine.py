"""`partsketch combine`: a model from sketch files alone."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from partsketch.cli.options import column_names, intervals_option, keyword_option
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, warn


@click.command(
    "combine", epilog="Example: partsketch combine north.psk south.psk west.psk --summary --model model.json"
)
@click.argument("files", nargs=-1, required=True)
@click.option("--target", "-t", "targets", multiple=True, help="Any column of the files; repeat for several.")
@click.option("--features", "-f", multiple=True, help="Any columns of the files, comma-separated; default: all others.")
@click.option(
    "--method",
    type=click.Choice(["stack", "partition", "exact", "average"]),
    help="stack: one fit on all sketches; partition: average of their fits; of exact files exact or average.  "
    "[default: stack; exact for exact files]",
)
@keyword_option("fit_intercept", default=None)
@keyword_option("averaging", "Weights of the files' fits.")
@keyword_option("weighting", "Weights of stacked files.")
@keyword_option("alpha")
@click.option("--model", "model_path", type=NamedPath(), help="Write the model to this JSON file.")
@click.option("--summary", "with_summary", is_flag=True, help="Print standard errors, tests and intervals too.")
@intervals_option
@click.option("--inspect", is_flag=True, help="Only show what the files hold.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    files: tuple[str, ...],
    targets: tuple[str, ...],
    features: tuple[str, ...],
    method: str | None,
    model_path: Path | None,
    with_summary: bool,
    intervals_of: str,
    inspect: bool,
    as_json: bool,
    **keywords: Any,
) -> None:
    """Make a model, its certificate and intervals from sketch FILES; no rows are read."""
    from partsketch.report.file_table import describe_file, print_files
    from partsketch.report.fit_table import print_fit
    from partsketch.sites.combine import combine_files
    from partsketch.sites.reading import read_files

    check_outputs({"--model": model_path}, data=files)
    started = time.perf_counter()
    named = read_files(files)
    if inspect:
        if as_json:
            print_json({"files": [describe_file(*entry) for entry in named]})
        else:
            print_files(named)
        return
    chosen = column_names(features)
    fit = combine_files(named, list(targets) or None, chosen, method, **keywords)
    seconds = time.perf_counter() - started
    if model_path is not None:
        fit.model.save(model_path)
    for sentence in fit.model.record.warnings:
        warn(sentence)
    if as_json:
        described = [describe_file(*entry) for entry in named]
        values = {"model": fit.model.to_dict(), "files": described, "seconds": seconds}
        if with_summary:
            values["summary"] = fit.model.summary(of=intervals_of).to_dict()
        print_json(values)
    else:
        print_fit(fit, seconds, None, model_path, intervals_of if with_summary else None)
