"""Putting a report together: sections, template, and one file with everything in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from partsketch._version import __version__
from partsketch.errors import InputError
from partsketch.files import write_atomically
from partsketch.model import Model
from partsketch.report.charts.scales import percent, short
from partsketch.report.page import facts
from partsketch.report.page.coefficients import coefficient_table
from partsketch.report.page.costs import MethodCost, method_costs, with_unit
from partsketch.report.page.entry import Entry, entries_of
from partsketch.report.page.figures import Figure, divergence_figure, loss_figures, residual_figures

LEVEL = 0.95
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """All that the page says of one model."""

    entry: Entry
    number: int
    overview: list[tuple[str, str]]
    certificates: list[tuple[str, str, list[tuple[str, str]]]]
    divergence: Figure | None
    losses: list[tuple[str, list[Figure]]]
    residuals: list[tuple[str, list[Figure]]]
    costs: list[MethodCost]
    record: list[tuple[str, list[tuple[str, str]]]]
    command: str


def _section(entry: Entry, number: int) -> Section:
    targets = entry.model.target_names
    return Section(
        entry,
        number,
        facts.overview(entry),
        facts.certificate_words(entry),
        divergence_figure(entry),
        [(target, loss_figures(entry, index)) for index, target in enumerate(targets)],
        [(target, residual_figures(entry, index)) for index, target in enumerate(targets)],
        method_costs(entry),
        facts.record_rows(entry.model),
        facts.repeat_command(entry.model),
    )


@cache
def environment() -> Any:
    """Return the template engine; every value that comes from data is escaped."""
    try:
        import jinja2
    except ImportError as error:
        raise InputError("Reports need jinja2: pip install 'partsketch[report]'.") from error
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    made.filters.update(dict=dict, short=short, percent=percent, unit=with_unit)
    made.globals.update(version=__version__)
    return made


def inline(name: str) -> str:
    """Return the text of a style sheet or script that goes into the page."""
    return (_FOLDER / "templates" / name).read_text(encoding="utf-8")


def script_hash(text: str) -> str:
    """Return the name by which a content security policy allows this script and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render(entries: Sequence[Entry]) -> str:
    """Return the report as one HTML text."""
    script = inline("report.js")
    sections = [_section(entry, number) for number, entry in enumerate(entries, start=1)]
    text: str = environment().get_template("report.html").render(
        title="Least squares: " + ", ".join(dict.fromkeys(name for e in entries for name in e.model.target_names)),
        sections=sections,
        overview_names=list(dict.fromkeys(name for section in sections for name, _ in section.overview)),
        table=coefficient_table(entries, LEVEL),
        level=LEVEL,
        style=inline("page.css"),
        script=script,
        script_hash=script_hash(script),
    )
    return text


def write_entries(entries: Sequence[Entry], path: str | Path) -> None:
    """Write the report of these entries, whole or not at all."""
    write_atomically(Path(path), render(entries).encode())


def write_report(
    models: Sequence[Model], path: str | Path, data: Any = None, names: Sequence[str] | None = None
) -> None:
    """Write a report of one or several models: one HTML file that needs nothing else.

    Parameters
    ----------
    models
        The models, side by side when there are several.
    path
        The file to write.
    data
        The rows of the fits, for diagnostics of residuals from a sample of them; None leaves these out.
    names
        What the report calls the models; by default their methods.
    """
    write_entries(entries_of(models, names, data), path)
