"""From saved results to the tables of README.md, and what they say: targets reached or not, and where others win."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import front_page
from benchmarks.accuracy import results as accuracy
from benchmarks.driver import results as driver
from benchmarks.estimators import results as estimators
from benchmarks.privacy import results as privacy
from benchmarks.questions import results as questions
from benchmarks.questions.headline import NAME as HEADLINE
from benchmarks.quiet import BUSY_SHARE
from benchmarks.series import growth_tables, plot_growth
from benchmarks.workloads import WORKLOADS

_HERE = Path(__file__).resolve().parent
_DOCS = _HERE.parent / "docs"
PAGES = (
    _HERE.parent / "README.md",
    _HERE / "README.md",
    _DOCS / "benchmarks.md",
    _DOCS / "accuracy.md",
    _DOCS / "estimators.md",
    _DOCS / "scale.md",
    _DOCS / "privacy.md",
)

#: Name of what is counted in digits instead of seconds.
ACCURACY = "accuracy"

#: Name of what is measured in lost squares instead of seconds.
ESTIMATORS = "estimators"

#: Name of summaries and what is asked of them.
QUESTIONS = "questions"

#: Name of what the driver bears, and what follows from it.
DRIVER = "driver"

#: Name of what files with a promise lose, and how often their intervals hold.
PRIVACY = "privacy"

#: Differences that mean nothing: of times, as a share, and of memory.
_SAME_TIME = 1.05
_SAME_BYTES = 64e6

#: Errors below this are the rounding of the last few of sixteen digits; a difference there means nothing.
_ROUNDING = 1e-12

#: Errors beyond this are another answer: a rival that is quicker with it is said to be, with the error beside it.
_WRONG = 1e-3


def write_pages(folder: Path) -> None:
    """Replace the generated parts of the pages that show results."""
    parts = generated_parts(folder)
    for page in PAGES:
        text = page.read_text()
        for name in re.findall(r"<!-- begin generated: (\S+) -->", text):
            pattern = rf"(<!-- begin generated: {name} -->\n).*?(<!-- end generated: {name} -->)"
            match = re.search(pattern, text, flags=re.DOTALL)
            if match is None:
                raise ValueError(f"{page.name} has no end of {name}")
            text = text[: match.start()] + match[1] + parts[name] + match[2] + text[match.end() :]
        page.write_text(text)
    if (folder / "growth.json").exists():
        plot_growth(folder, _DOCS / "figures" / "benchmarks-growth.svg")


def generated_parts(folder: Path) -> dict[str, str]:
    """Return the generated parts by name, from the results in a folder."""
    results = {
        name: json.loads((folder / f"{name}.json").read_text())
        for name in WORKLOADS
        if (folder / f"{name}.json").exists()
    }
    parts = {name: _workload(results[name]) if name in results else "\nNot run yet.\n\n" for name in WORKLOADS}
    if growth := results.get("growth"):
        parts["growth"] = "\n".join(["", *growth_tables(growth), "", *_origin(growth)]) + "\n"
    if (folder / f"{ACCURACY}.json").exists():
        parts |= accuracy.parts(json.loads((folder / f"{ACCURACY}.json").read_text()))
    if (folder / f"{ESTIMATORS}.json").exists():
        parts |= estimators.parts(json.loads((folder / f"{ESTIMATORS}.json").read_text()))
    path = folder / f"{DRIVER}.json"
    not_run = dict.fromkeys((DRIVER, "scale"), "\nNot run yet.\n\n")
    parts |= driver.parts(json.loads(path.read_text())) if path.exists() else not_run
    path = folder / f"{PRIVACY}.json"
    parts |= privacy.parts(json.loads(path.read_text())["parts"] if path.exists() else {})
    for name, made in ((QUESTIONS, questions.parts), (HEADLINE, questions.headline)):
        path = folder / f"{name}.json"
        parts |= made(json.loads(path.read_text())) if path.exists() else {name: "\nNot run yet.\n\n"}
    if all((folder / f"{name}.json").exists() for name in front_page.SOURCES):
        parts["numbers"] = front_page.numbers(folder)
    parts["targets"] = _targets(results)
    parts["others-win"] = _others_win(results)
    return parts


def _workload(result: Mapping[str, Any]) -> str:
    lines = [""]
    for case in result["cases"].values():
        lines += [f"**{case['title']}**", "", *_case_rows(case), ""]
        if "origin" in case:
            lines += _origin(case["origin"])
    together = any("origin" not in case for case in result["cases"].values())
    return "\n".join([*lines, *(_origin(result) if together else ())]) + "\n"


def _origin(result: Mapping[str, Any]) -> list[str]:
    """Say when, where and with what the results were made."""
    machine, versions = result["machine"], result["versions"]
    before, after = result["load_before_and_after"]
    listed = ", ".join(f"{name} {number}" for name, number in versions.items())
    return [
        f"{result['date'][:10]}, `{result['command']}`, {result['repeats']} repeats; {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_bytes'] / 1e9:.0f} GB, {machine['system']}; load of the machine "
        f"{before} before and {after} after; revision {result['revision']}; Python {machine['python']}, {listed}.",
        "",
    ]


def _case_rows(case: Mapping[str, Any]) -> Iterator[str]:
    contestants = case["contestants"]
    ours = contestants[case["main"]]
    judged = any("forward_error" in entry for entry in contestants.values())
    memory = "memory beyond the data" if case["in_memory"] else "peak memory"
    head = ["contestant", "best s", "median s", "best, ours = 1", "processor s", "others", memory]
    yield _row([*head, "relative error", "excess loss"] if judged else [*head, "squares kept"])
    yield "|---|" + "---:|" * (len(head) + (1 if judged else 0))
    columns = ("forward_error", "excess_loss") if judged else ("kept_squares",)
    for name, entry in contestants.items():
        label = f"**{entry['label']}**" if name == case["main"] else entry["label"]
        if problem := _problem(entry):
            yield _row([label, problem, *[""] * (len(head) - 2 + len(columns))])
            continue
        size = entry["extra_bytes"] if case["in_memory"] else entry["peak_bytes"]
        ratio = entry["best_seconds"] / ours["best_seconds"] if "best_seconds" in ours else float("nan")
        yield _row(
            [
                label,
                f"{entry['best_seconds']:.3f}",
                f"{entry['median_seconds']:.3f}",
                f"{ratio:.2f}",
                f"{entry['best_cpu_seconds']:.2f}",
                f"{entry['others_share_at_best']:.0%}",
                f"{size / 1e9:.2f} GB",
                *(_number(column, entry.get(column)) for column in columns),
            ]
        )


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _problem(entry: Mapping[str, Any]) -> str:
    if "not_applicable" in entry:
        return f"N/A: {entry['not_applicable']}"
    return f"failed: {entry['failed']}" if "failed" in entry else ""


def _number(column: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if column == "kept_squares" else f"{value:.1e}"


def _targets(results: Mapping[str, Any]) -> str:
    lines = [
        "",
        "Noise is how much longer the median of the runs of a contestant took than the best, the largest of its case.",
        "",
        "| target | measured | noise | |",
        "|---|---:|---:|---|",
    ]
    for name, workload in WORKLOADS.items():
        for target in workload.targets:
            if name not in results or target.case not in results[name]["cases"]:
                # Not run yet, a quick run, or one that was broken off.
                lines.append(_row([target.sentence, "", "", "not measured"]))
                continue
            figures = results[name]["cases"][target.case]["contestants"]
            try:
                measured = target.form.format(target.measured(figures))
                why = target.reason(figures)
                missed = f"**not reached**: {why}" if why else "**not reached**"
                verdict = "reached" if target.reached(figures) else missed
                if target.timed and _busy(figures):
                    verdict += ", but others were using the machine"
            except (KeyError, ValueError):
                measured, verdict = "", "not measured: a contestant failed"
            lines.append(_row([target.sentence, measured, _noise(figures) if target.timed else "", verdict]))
    return "\n".join([*lines, "", ""])


def _noise(figures: Mapping[str, Any]) -> str:
    """Return how far the median of the times of a contestant lies above the best, of the noisiest."""
    measured = [entry for entry in figures.values() if "best_seconds" in entry]
    found = [entry["median_seconds"] / entry["best_seconds"] - 1 for entry in measured]
    return f"{max(found):.0%}" if found else ""


def _busy(figures: Mapping[str, Any]) -> bool:
    """Tell whether a contestant never had the machine to itself, so that comparing times is doubtful."""
    return any(entry.get("others_share_at_best", 0.0) > 2 * BUSY_SHARE for entry in figures.values())


def _others_win(results: Mapping[str, Any]) -> str:
    lines = [
        sentence
        for result in results.values()
        for case in result["cases"].values()
        for sentence in _wins(WORKLOADS[result["workload"]].title, case)
    ]
    left_out = (
        f"Left out: differences below {_SAME_TIME - 1:.0%} of time, below {_SAME_BYTES / 1e6:.0f} MB of memory, and "
        f"errors of our own below {_ROUNDING:g}, which are rounding."
    )
    return "\n".join(["", left_out, "", *(lines or ["In no case."]), "", ""])


def _wins(title: str, case: Mapping[str, Any]) -> Iterator[str]:
    """Say where a rival is faster, more accurate or smaller than our main contestant."""
    ours = case["contestants"][case["main"]]
    if "best_seconds" not in ours:
        yield f"- {title}, {case['title']}: partsketch failed."
        return
    size = "extra_bytes" if case["in_memory"] else "peak_bytes"
    for entry in case["contestants"].values():
        if entry["role"] != "rival" or "best_seconds" not in entry:
            continue
        found = []
        if _SAME_TIME * entry["best_seconds"] < ours["best_seconds"]:
            times = ours["best_seconds"] / entry["best_seconds"]
            found.append(
                f"{times:.2f} times faster ({entry['best_seconds']:.3f} s against {ours['best_seconds']:.3f} s)"
            )
        error = ours.get("forward_error", 0.0)
        if error > _ROUNDING and _SAME_TIME * entry.get("forward_error", float("inf")) < error:
            found.append(f"more accurate ({entry['forward_error']:.1e} against {error:.1e})")
        if entry[size] + _SAME_BYTES < ours[size]:
            found.append(f"less memory ({entry[size] / 1e6:.0f} MB against {ours[size] / 1e6:.0f} MB)")
        if found:
            error = entry.get("forward_error", 0.0)
            wrong = f" Its answer is off by {error:.0%}." if error > _WRONG else ""
            yield f"- {title}, {case['title']}: {entry['label']} is better in this: {'; '.join(found)}.{wrong}"
