"""`partsketch inspect`: what any file of ours holds: a model, a sketch, summaries."""

from __future__ import annotations

from pathlib import Path

import click

from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, show
from partsketch.common.errors import InputError
from partsketch.common.reading import ordinary_file


@click.command("inspect", epilog="Example: partsketch inspect trips.psk")
@click.argument("file", type=NamedPath())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, as_json: bool) -> None:
    """Show what FILE holds: a model, a sketch, or summaries."""
    with ordinary_file(file) as (stream, _):
        start = stream.read(8)
    if start == b"PSKETCH\n":
        _inspect_summaries(file, as_json)
    elif start.lstrip()[:1] == b"{":
        _inspect_model(file, as_json)
    else:
        raise InputError(f"{file} is neither a model nor a sketch of partsketch.")


def _inspect_summaries(file: Path, as_json: bool) -> None:
    from partsketch.questions.summaries import Summaries
    from partsketch.report.sketch_table import describe_sketch, print_sketches
    from partsketch.report.summaries_table import describe_summaries, print_summaries
    from partsketch.sketches.base import get_sketch
    from partsketch.summaries.collection_file import load
    from partsketch.summaries.noisy_file import is_noisy

    with ordinary_file(file) as (stream, _):
        noisy = is_noisy(stream.read(16))
    if noisy:
        _inspect_noisy(file, as_json)
        return
    factors = load(file)
    if any(get_sketch(summary.kind).is_random for summary in factors):
        named = [(str(file), summary) for summary in factors]
        if as_json:
            print_json({"files": [describe_sketch(*entry) for entry in named]})
        else:
            print_sketches(named)
        return
    summaries = Summaries(factors)
    if as_json:
        print_json(describe_summaries(str(file), summaries))
    else:
        print_summaries(str(file), summaries)


def _inspect_noisy(file: Path, as_json: bool) -> None:
    from partsketch.report.noisy_table import describe_noisy, print_noisy
    from partsketch.summaries.noisy_file import load

    summary = load(file)
    if as_json:
        print_json({"files": [describe_noisy(str(file), summary)]})
    else:
        print_noisy([(str(file), summary)])


def _inspect_model(file: Path, as_json: bool) -> None:
    from partsketch.model.file import load

    model = load(file)
    if as_json:
        print_json(model.to_dict())
    else:
        show(str(model.summary()))
