"""What all settings together say: shares that the goals are about, and the table of docs/plan.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planner.checking import DRAWS, PLAUSIBLE

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "plan.md"
_FACTOR, _REGRET, _STANDARD_ERRORS = 2.0, 1.3, 3.0


def summary(checked: Sequence[dict[str, Any]], memory: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the numbers of the table."""
    settings = [setting for one in checked for setting in one["settings"]]
    answered = [setting for setting in settings if setting["recommended"] is not None]
    free = [setting for setting in answered if setting["loss_allowed"]]
    bound = [setting for setting in settings if setting["exact_expected"]]
    regrets = [setting["seconds"] / setting["quickest_seconds"] for setting in free]
    fits = [fit for one in checked for fit in one["fits"] if fit["predicted_seconds"]]
    ratios = [fit["predicted_seconds"] / fit["seconds"] for fit in fits]
    drawn = [entry for one in checked for entry in one["drawn"]]
    errors = [abs(entry["excess"] - entry["drawn_excess"]) / entry["drawn_standard_error"] for entry in drawn]
    return {
        "settings": len(settings),
        "recommendations": len(answered),
        "recommended_time_within_factor_two": _within([one["predicted_seconds"] / one["seconds"] for one in answered]),
        "loss_allowed": len(free),
        "sketches_recommended": sum("sketch" in setting["recommended"] for setting in free),
        "recommended_within_1.3": _share([regret <= _REGRET for regret in regrets]),
        "largest_regret": max(regrets, default=None),
        "exact_expected": len(bound),
        "exact_recommended": sum(setting["recommended"] == "exact" for setting in bound),
        "fits_timed": len(fits),
        "within_factor_two": _within(ratios),
        "ratio_quantiles": [float(value) for value in np.quantile(ratios, [0.05, 0.5, 0.95])],
        "processor_time_within_factor_two": _within(
            [fit["predicted_processor_seconds"] / fit["processor_seconds"] for fit in fits]
        ),
        "others_share": float(np.median([fit["others_share"] for fit in fits])),
        "excesses_drawn": len(errors),
        "excess_within_3_standard_errors": _share([error <= _STANDARD_ERRORS for error in errors]),
        "largest_excess_error": max(errors, default=None),
        "peaks_measured": len(memory),
        "peak_within_factor_two": _within([one["predicted_bytes"] / one["bytes"] for one in memory]),
    }


def _share(outcomes: Sequence[bool]) -> float | None:
    return float(np.mean(outcomes)) if outcomes else None


def _within(ratios: Sequence[float]) -> float | None:
    return _share([1 / _FACTOR <= ratio <= _FACTOR for ratio in ratios])


def report(result: dict[str, Any]) -> str:
    """Return the goals and what was measured as tables in Markdown."""
    low, middle, high = result["ratio_quantiles"]
    rows = [
        ("settings, of which with a recommendation", f"{result['settings']}, {result['recommendations']}"),
        (
            "time of the recommended within a factor of 2 (goal 90%)",
            _percent(result, "recommended_time_within_factor_two"),
        ),
        ("settings in which a loss is allowed", f"{result['loss_allowed']}"),
        ("of these with a sketch recommended", f"{result['sketches_recommended']}"),
        ("recommended within 1.3 times the truly quickest (goal 90%)", _percent(result, "recommended_within_1.3")),
        ("largest ratio to the quickest", f"{result['largest_regret']:.2f}"),
        ("exact recommended where no loss is allowed", f"{result['exact_recommended']} of {result['exact_expected']}"),
        ("fits timed", f"{result['fits_timed']}"),
        ("predicted time within a factor of 2 (goal 90%)", _percent(result, "within_factor_two")),
        ("predicted / measured: 5%, 50%, 95% quantile", f"{low:.2f}, {middle:.2f}, {high:.2f}"),
        (
            "the same for processor time, which other work disturbs less",
            _percent(result, "processor_time_within_factor_two"),
        ),
        ("share of the machine that others had meanwhile (median)", f"{result['others_share']:.0%}"),
        (f"losses called exact against {DRAWS:,} draws", f"{result['excesses_drawn']}"),
        ("of these within three standard errors", _percent(result, "excess_within_3_standard_errors")),
        ("largest difference in standard errors", f"{result['largest_excess_error']:.1f}"),
        ("peaks of memory measured", f"{result['peaks_measured']}"),
        ("of these within a factor of 2 of the prediction", _percent(result, "peak_within_factor_two")),
    ]
    table = ["| check | measured |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows)]
    peaks = ["| fit | peak predicted | measured |", "|---|---:|---:|"]
    peaks += [
        f"| {one['fit']} | {one['predicted_bytes'] / 1e6:.1f} MB | {one['bytes'] / 1e6:.1f} MB |"
        for one in result["memory"]
    ]
    note = f"Every candidate within the limits that is predicted to take at most {PLAUSIBLE:g} times as long as the "
    note += "quickest is timed; the quickest of these is taken to be the truly quickest."
    return "\n".join([*table, "", note, "", *peaks])


def _percent(result: dict[str, Any], name: str) -> str:
    return "none" if result[name] is None else f"{result[name]:.0%}"


def save(result: dict[str, Any], path: Path) -> None:
    """Write the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")


def write_page(result: dict[str, Any]) -> None:
    """Replace the table in docs/plan.md."""
    text = _PAGE.read_text()
    begin, end = "<!-- begin generated: planner -->\n", "<!-- end generated: planner -->"
    start, stop = text.index(begin) + len(begin), text.index(end)
    machine = result["machine"]
    where = f"{result['date'][:10]}, {machine['processor']}, {machine['cores']} cores, revision {result['revision']}."
    _PAGE.write_text(f"{text[:start]}\n{report(result)}\n\n{where}\n\n{text[stop:]}")
