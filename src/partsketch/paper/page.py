"""The page: one HTML file that needs nothing else, readable on a telephone and in print."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from partsketch.paper.claims import Claim
from partsketch.paper.claims_on_time import ESTIMATORS
from partsketch.paper.data_sets import TITLES
from partsketch.paper.figures import FIGURES, Picture
from partsketch.paper.machine import machine, versions
from partsketch.paper.page_style import STYLE
from partsketch.paper.results import Row, Value
from partsketch.paper.steps import STEPS
from partsketch.paper.study import Study

PAPER = "Distributed Sketching on Data Partitions for OLS Regression (Yang, Garner, Shafaei and Lan)"

_CLASSES = {"holds": "holds", "holds only when": "partly", "does not hold": "fails", "not measured": "unknown"}

_COUNTED = {
    "holds": "hold",
    "holds only when": "hold under a condition",
    "does not hold": "do not hold",
    "not measured": "were not measured",
}


def make_page(study: Study, pictures: Sequence[Picture], claims: Sequence[Claim], slopes: Sequence[Row]) -> bytes:
    """Return the whole page.

    Parameters
    ----------
    study : Study
        Results and problems.
    pictures : sequence of Picture
        Figures, put into the page.
    claims : sequence of Claim
        Judged claims.
    slopes : sequence of Row
        Fitted slopes of Figure 2; may be empty.

    Returns
    -------
    bytes
        UTF-8 text of an HTML document without any outside reference.
    """
    parts = [_head(study), _problems(study), _claims(claims)]
    table = study.rows("table-1", "data_sets")
    if table:
        parts.append(_section("table-1", STEPS["table-1"], _data_table(table)))
    for picture in pictures:
        extra = _slopes(slopes) if picture.name == "figure-2" and slopes else ""
        parts.append(_section(picture.name, STEPS[picture.name], _figure(picture) + extra))
    parts.append(_section("provenance", "Where these numbers come from", _provenance(study)))
    body = "\n".join(part for part in parts if part)
    title = "The paper's study, made again"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    ).encode()


def _head(study: Study) -> str:
    kind = "A quick look with few draws" if study.settings.quick else "The whole study"
    links = "".join(
        f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in STEPS.items() if name in study.chosen
    )
    return (
        f"<h1>The paper's study, made again</h1>\n<p>{escape(PAPER)}: its table and figures regenerated, its claims "
        f"checked. {kind}; seed {study.settings.seed}. β̄ averages fits on k Gaussian sketches of all rows, θ̄ fits on "
        "one sketch of each of k partitions, ᾱ exact fits of the partitions; excess loss is squared loss beyond that "
        "of exact least squares, ℓ.</p>\n"
        f'<nav aria-label="Contents"><ul><li><a href="#claims">The claims</a></li>{links}</ul></nav>'
    )


def _section(name: str, title: str, content: str) -> str:
    return f'<section id="{name}">\n<h2>{escape(title)}</h2>\n{content}\n</section>'


def _problems(study: Study) -> str:
    if not study.problems:
        return ""
    items = "".join(f"<li>{escape(problem)}</li>" for problem in study.problems)
    return f'<section class="problems" role="note"><h2>What is missing</h2><ul>{items}</ul></section>'


def _claims(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        cells = (
            ("Claim", f"<strong>{escape(claim.statement)}</strong><br><small>{escape(claim.place)}</small>"),
            ("Measured", escape(claim.measured)),
            ("Verdict", f'<span class="verdict">{escape(str(claim.verdict))}</span>'),
            ("Rule", f"<small>{escape(claim.rule)}</small>"),
            ("Why", escape(claim.why)),
        )
        body = "".join(f'<td data-label="{label}">{text}</td>' for label, text in cells)
        rows.append(f'<tr class="{_CLASSES[claim.verdict.word]}" id="claim-{claim.name}">{body}</tr>')
    header = "".join(f"<th>{name}</th>" for name in ("Claim", "Measured", "Verdict", "Rule", "Why"))
    counted = {words: sum(claim.verdict.word == word for claim in claims) for word, words in _COUNTED.items()}
    summary = ", ".join(f"{count} {words}" for words, count in counted.items() if count)
    table = f'<table class="claims"><thead><tr>{header}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return _section(
        "claims",
        "The claims",
        f"<p>Verdicts follow from the stated rules on the measured numbers of this run: {summary}.</p>{table}",
    )


def _figure(picture: Picture) -> str:
    kind = FIGURES[picture.name]
    wide, narrow = (base64.b64encode(data).decode() for data in (picture.wide_svg, picture.narrow_svg))
    return (
        f'<figure>\n<picture><source media="(max-width: 640px)" srcset="data:image/svg+xml;base64,{narrow}">'
        f'<img alt="{escape(kind.description)}" src="data:image/svg+xml;base64,{wide}"></picture>\n'
        f"<figcaption>{escape(kind.caption)} Files: <code>figures/{picture.name}.svg</code>, "
        f"<code>figures/{picture.name}.png</code>.</figcaption>\n</figure>"
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _data_table(rows: Sequence[Row]) -> str:
    cells = [
        (
            TITLES[str(row["data_set"])],
            *(f"{row[name]:,}" for name in ("instances", "features", "loaded_instances", "loaded_features")),
        )
        for row in rows
    ]
    header = ("Data set", "Instances", "Features", "Instances as loaded", "Features as loaded")
    return _table(header, cells) + "<p>Features that do not vary are removed; Cover is a fixed random sample.</p>"


def _slopes(rows: Sequence[Row]) -> str:
    def number(value: Value) -> str:
        text = f"{value:.2f}" if isinstance(value, float) else "" if value is None else str(value)
        return text.replace("-", "−")

    cells = [
        (
            TITLES[str(row["data_set"])],
            ESTIMATORS[str(row["estimator"])],
            str(row["complexity"]),
            str(row["variable"]),
            number(row["exponent"]),
            number(row["slope"]),
            number(row.get("r_squared")),
            number(row.get("sketching_slope")),
        )
        for row in rows
    ]
    header = ("Data set", "Estimator", "Time", "Against", "Exponent", "Fitted slope", "R²", "Sketching alone")
    return "<h3>Fitted slopes of log time against log k or log n</h3>" + _table(header, cells)


def _provenance(study: Study) -> str:
    facts = {**machine(), **versions(), "seed": study.settings.seed}
    cells = [(name.replace("_", " "), str(value)) for name, value in facts.items()]
    return (
        f"<p>{len(study.results)} units of work took {study.seconds:,.0f} seconds. Each is stored in <code>raw/</code> "
        "as JSON and CSV with its settings, seed, versions and machine; tables of each step are in "
        "<code>tables/</code>.</p>" + _table(("What", "Value"), cells)
    )
