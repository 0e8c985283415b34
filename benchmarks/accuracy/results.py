"""From saved digits to the tables of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks import coverage, coverage_whole
from benchmarks.accuracy.contestants import TOOLS
from benchmarks.accuracy.designs import DESIGNS

_VERSIONS = ("partsketch", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "statsmodels", "polars-ols")

#: Parts that are tables of certificates.
_COVERAGES = ("averaged", "shapes", "inverse-variance", "diamonds", "stacked", "whole", "samples", "hostile")

#: Fewer digits than this of a prediction are a wrong answer, and are set in bold.
_WRONG_DIGITS = 3.0


def parts(result: Mapping[str, Any]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    titles = {design.name: design.title for design in DESIGNS}
    tables: dict[str, Iterable[str]] = {
        "accuracy-nist": _digits("data set", result["nist"], {name: name for name in result["nist"]}),
        "accuracy-designs": _digits("columns", result["designs"], titles),
        "accuracy-intervals": _intervals(result["intervals"]),
        **{f"accuracy-{name}": [_coverages(result[name])] for name in _COVERAGES},
        "accuracy-stacked-intervals": [_rates(result["stacked-intervals"], ("90%", "95%", "99%"))],
        "accuracy-test": [_rates(result["test"], ("rejected at 5%",))],
    }
    # Parts that were measured alone say so.
    origins = {f"accuracy-{name}": origin for name, origin in result.get("origins", {}).items()}
    return {
        name: "\n".join(["", *lines, "", _origin(origins.get(name, result))]) + "\n\n" for name, lines in tables.items()
    }


def _origin(result: Mapping[str, Any]) -> str:
    versions = {name: number for name, number in result["versions"].items() if name in _VERSIONS}
    listed = ", ".join(f"{name} {number}" for name, number in versions.items())
    return f"{result['date'][:10]}, `{result['command']}`; revision {result['revision']}; {listed}."


def _coverages(rows: list[dict[str, Any]]) -> str:
    return coverage.table([coverage.Coverage(**row) for row in rows])


def _rates(rows: list[dict[str, Any]], headings: tuple[str, ...]) -> str:
    return coverage_whole.rate_table([coverage_whole.Rate(**row) for row in rows], headings)


def _digits(head: str, found: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str]) -> Iterator[str]:
    shown = [tool for tool in TOOLS if any(tool.name in row for row in found.values())]
    absent = {
        tool.label
        for tool in shown
        if all(str(row.get(tool.name, "")).startswith("not available") for row in found.values())
    }
    shown = [tool for tool in shown if tool.label not in absent]
    yield f"| {head} | " + " | ".join(tool.label for tool in shown) + " |"
    yield "|---|" + "---:|" * len(shown)
    for name, row in found.items():
        yield f"| {titles[name]} | " + " | ".join(_cell(row[tool.name]) for tool in shown) + " |"
    if absent:
        yield ""
        yield f"Not installed where this ran: {', '.join(sorted(absent))}."


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        # Ours refuse in a sentence that says what to do.
        return "refused" if "InputError" in value else f"fails: {value[:60]}"
    return f"**{value:.1f}**" if value < _WRONG_DIGITS else f"{value:.1f}"


def _intervals(found: list[Mapping[str, Any]]) -> Iterator[str]:
    settings = list(dict.fromkeys(entry["setting"] for entry in found))
    methods = list(dict.fromkeys(entry["method"] for entry in found))
    cells = {(entry["method"], entry["setting"]): entry for entry in found}
    yield "| method | " + " | ".join(settings) + " |"
    yield "|---|" + "---:|" * len(settings)
    for method in methods:
        row = [cells[method, setting] for setting in settings]
        yield f"| {method} | " + " | ".join(_interval_cell(entry) for entry in row) + " |"


def _interval_cell(entry: Mapping[str, Any]) -> str:
    withheld = f" ({entry['withheld']} withheld)" if entry["withheld"] else ""
    return f"{entry['covered']:.1%} ± {entry['standard_error']:.1%}{withheld}"
