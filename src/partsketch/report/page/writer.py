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
from partsketch.common.errors import InputError
from partsketch.common.files import check_output, write_atomically
from partsketch.common.units import bytes_text, count_text, p_value_text, seconds_text
from partsketch.model.assumptions import assumptions
from partsketch.model.model import Model
from partsketch.planner.calibration import Calibration, calibration
from partsketch.report.charts.scales import percent, short
from partsketch.report.page import facts
from partsketch.report.page.coefficients import coefficient_table, colour_of
from partsketch.report.page.costs import MethodCost, method_costs
from partsketch.report.page.entry import Entry, as_clause, entries_of
from partsketch.report.page.figures import Figure, divergence_figure, loss_figures, residual_figures
from partsketch.report.page.residual_sample import ResidualSample, sample_residuals
from partsketch.sources.base import Source
from partsketch.sources.files.paths import local_files

LEVEL = 0.95
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Section:
    """All that the page says of one model."""

    entry: Entry
    colour: int
    overview: list[tuple[str, str]]
    certificates: list[tuple[str, str, list[tuple[str, str]]]]
    divergence: Figure | None
    losses: list[tuple[str, list[Figure]]]
    residuals: list[tuple[str, list[Figure]]]
    costs: list[MethodCost]
    record: list[tuple[str, list[tuple[str, str]]]]
    command: str

    @property
    def measured(self) -> bool:
        """Whether any time was measured."""
        return any(cost.measured is not None for cost in self.costs)


def _section(entry: Entry, colour: int, speeds: Calibration) -> Section:
    targets = entry.model.target_names
    return Section(
        entry,
        colour,
        facts.overview(entry),
        facts.certificate_words(entry),
        divergence_figure(entry),
        [(target, loss_figures(entry, index)) for index, target in enumerate(targets)],
        [(target, residual_figures(entry, index)) for index, target in enumerate(targets)],
        method_costs(entry, speeds),
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
    made.filters.update(
        dict=dict,
        short=short,
        percent=percent,
        bytes=bytes_text,
        count=count_text,
        seconds=seconds_text,
        p_value=p_value_text,
    )
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
    speeds = calibration()
    sections = [_section(entry, colour_of(number), speeds) for number, entry in enumerate(entries)]
    shown = _shown(sections)
    exact = all(entry.model.method == "exact" for entry in entries)
    text: str = (
        environment()
        .get_template("report.html")
        .render(
            title="Least squares: " + ", ".join(dict.fromkeys(name for e in entries for name in e.model.target_names)),
            sections=sections,
            overview_names=list(dict.fromkeys(name for section in sections for name, _ in section.overview)),
            table=coefficient_table(entries, LEVEL),
            shown=shown,
            left_out=_left_out(sections, shown),
            verdict_title="What the fit loses" if len(sections) == 1 else "Models side by side",
            choice_title="What sketches would lose" if exact else "Other numbers of partitions and sketch rows",
            told=_told(entries),
            level=LEVEL,
            machine=speeds.sentence(),
            style=inline("page.css"),
            script=script,
            script_hash=script_hash(script),
        )
    )
    return text


def _told(entries: Sequence[Entry]) -> list[str]:
    """Say what errors take for granted, and of which models where it is not so of all."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        for sentence in assumptions(entry.model):
            found.setdefault(sentence, []).append(entry.name)
    return [
        sentence if len(names) == len(entries) else f"{', '.join(names)}: {sentence}"
        for sentence, names in found.items()
    ]


def _shown(sections: Sequence[Section]) -> dict[str, bool]:
    """Say which sections have something in them for at least one model; the others are left out."""
    return {
        "residuals": any(figures for section in sections for _, figures in section.residuals),
        "choice": any(figures for section in sections for _, figures in section.losses),
        "divergence": any(section.divergence is not None for section in sections),
    }


def _left_out(sections: Sequence[Section], shown: dict[str, bool]) -> list[str]:
    """Say why a section is not there, unless an exact fit has no use for it."""
    sentences = []
    for section in sections:
        model = section.entry.model
        if not shown["residuals"]:
            reason = section.entry.residuals_reason or "the features give the target, up to rounding"
            sentences.append(f"There are no residuals: {reason}.")
        if not shown["choice"] and model.outlook.reason:
            sentences.append(f"There are no curves of other sketches: {model.outlook.reason}.")
        elif not shown["choice"]:
            sentences.append("There are no curves of other sketches: no method loses anything here.")
        if not shown["divergence"] and model.method != "exact":
            sentences.append(f"There is no heat map of partitions: {model.outlook.divergences_reason}.")
    return list(dict.fromkeys(sentences))


def report_fit(model: Model, source: Source, path: Path, seconds: float, exact_seconds: float | None) -> None:
    """Write the report of a fit that has just been made from this source, with the times it took."""
    residuals: ResidualSample | None
    try:
        if model.record.partitions_left_out:
            raise InputError("Some partitions could not be read.")
        residuals, reason = sample_residuals(model, source), ""
    except InputError as error:
        residuals, reason = None, as_clause(str(error))
    entry = Entry(model, model.method, residuals, reason, seconds, exact_seconds)
    write_atomically(path, render([entry]).encode(), model.record.input_files())


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
    inputs = [*local_files(data), *(file for model in models for file in model.record.input_files())]
    check_output(path, inputs)
    write_atomically(Path(path), render(entries_of(models, names, data)).encode(), inputs)
