"""`partsketch report`: one page about one or several saved models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from partsketch.cli.options import csv_options
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, say


@click.command("report", epilog="Example: partsketch report exact.json sketched.json --output report.html")
@click.argument("models", nargs=-1, required=True, type=NamedPath())
@click.option("--output", "-o", required=True, type=NamedPath(), help="HTML file to write.")
@click.option("--data", "-d", multiple=True, help="Rows of the fits, for residuals from a sample; repeat for several.")
@csv_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(models: tuple[Path, ...], output: Path, data: Any, as_json: bool) -> None:
    """Write a page about MODELS, side by side when there are several; it needs no network."""
    from partsketch.model.file import load
    from partsketch.report.page import write_report

    check_outputs({"--output": output}, data=data, files=models)
    write_report([load(path) for path in models], output, data, [path.stem for path in models])
    size = output.stat().st_size
    if as_json:
        print_json({"output": str(output), "bytes": size, "models": [str(path) for path in models]})
    else:
        say(f"{output} written: {len(models)} {'model' if len(models) == 1 else 'models'}, {size / 1000:,.0f} kB")
