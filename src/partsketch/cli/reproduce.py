"""`partsketch reproduce`: make the tables and figures of the paper again and check its claims."""

from __future__ import annotations

import time
from pathlib import Path

import click

from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import complain, print_json, say
from partsketch.common.errors import InputError


@click.command("reproduce", epilog="Example: partsketch reproduce --output study --quick")
@click.option(
    "--output",
    "-o",
    required=True,
    type=NamedPath(),
    help="Folder to write: index.html, figures, tables and raw results. An interrupted study goes on where it stopped.",
)
@click.option("--only", multiple=True, help="Only this table or figure, such as figure-1; repeat for several.")
@click.option("--quick", is_flag=True, help="Fewer values of k and fewer draws: under a minute.")
@click.option("--seed", type=int, help="Seed of everything random; default: always the same.")
@click.option(
    "--data-home",
    type=NamedPath(),
    help="Take House and Covertype from this folder of scikit-learn's data instead; what is missing is downloaded.",
)
@click.option("--fresh", is_flag=True, help="Run everything anew, whatever is stored in the folder.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    output: Path,
    only: tuple[str, ...],
    quick: bool,
    seed: int | None,
    data_home: Path | None,
    fresh: bool,
    as_json: bool,
) -> None:
    """Make every table and figure of the paper again, check its claims, and write a page about it."""
    from partsketch.paper.claims import UNKNOWN
    from partsketch.paper.reproduce import reproduce
    from partsketch.paper.settings import DEFAULT_SEED, Places, quick_study, whole_study

    if output.exists() and not output.is_dir():
        raise InputError(f"Cannot write to {output}: it is a file; name a folder.")
    if seed is not None and not 0 <= seed < 2**63:
        raise InputError(f"seed is {seed}: give a whole number from 0 to 2**63 - 1.")
    if data_home is not None and not data_home.is_dir():
        raise InputError(f"There is no folder {data_home}: --data-home names where scikit-learn keeps its data.")
    if data_home is not None and output.exists() and output.samefile(data_home):
        raise InputError(f"Cannot write to {output}: it is the folder of the data; name another one.")
    settings = (quick_study if quick else whole_study)(DEFAULT_SEED if seed is None else seed)
    started = time.perf_counter()
    study, claims = reproduce(settings, Places(output, data_home), only, report=complain, fresh=fresh)
    seconds = time.perf_counter() - started
    page = output / "index.html"
    if as_json:
        rows = [claim.to_row() for claim in claims]
        problems = list(study.problems)
        print_json({"page": str(page), "seconds": seconds, "claims": rows, "problems": problems})
        return
    measured = [claim for claim in claims if str(claim.verdict) != UNKNOWN]
    for claim in measured:
        say(f"{claim.name}: {claim.verdict}")
    if len(measured) < len(claims):
        say(f"{len(claims) - len(measured)} claims were not measured: they need other parts of the study.")
    say(f"{page} written in {seconds:.0f} s")
