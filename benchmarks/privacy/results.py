"""From saved losses and coverages to the tables of docs/privacy.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.privacy.running import EPSILONS, OTHER_COLUMNS, OTHER_EPSILONS

#: Intervals of 95% may be off by so much.
_ROOM = 0.015
#: Share of intervals without ends above which nothing else is told of them.
_ENDLESS = 0.98
Line = Mapping[str, Any]


def parts(saved: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the generated parts of the page by name."""
    others = [line for name, part in saved.items() if name.startswith("other-") for line in part["lines"]]
    stated = [line for name, part in saved.items() if name.startswith("stated-") for line in part["lines"]]
    lost = saved["losses"]["lines"] if "losses" in saved else []
    tables = {
        "privacy-losses": (_losses(lost), "losses", lost),
        "privacy-stated": (_stated(stated), "stated-", stated),
        "privacy-others": (_others(others), "other-", others),
        "privacy-lucky": (_lucky([*stated, *others]), "", [*stated, *others]),
    }
    return {
        name: "\n".join(["", *lines, "", _origin(saved, begin)]) + "\n\n" if found else "\nNot run yet.\n\n"
        for name, (lines, begin, found) in tables.items()
    }


def _origin(saved: Mapping[str, Mapping[str, Any]], begin: str) -> str:
    dates = sorted({part["date"][:10] for name, part in saved.items() if name.startswith(begin)})
    return f"{' to '.join(dict.fromkeys((dates[0], dates[-1])))}, `python -m benchmarks run privacy`."


def _losses(lines: Sequence[Line]) -> Iterator[str]:
    yield "| rows | file with a promise | AdaSSP, same promise | secret sketch, m = 100, no promise |"
    yield "|---:|---:|---:|---:|"
    for line in lines:
        cells = [f"{100 * line[name]:.2g}%" for name in ("promise", "adassp", "sketch")]
        yield f"| {line['rows']:,} | " + " | ".join(cells) + " |"


def _stated(lines: Sequence[Line]) -> Iterator[str]:
    yield "| rows | columns | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |"
    yield "|---:|---:|" + "---|" * len(EPSILONS)
    for line in lines:
        cells = [_cell(line, epsilon) for epsilon in EPSILONS]
        yield f"| {line['rows']:,} | {line['columns']} | " + " | ".join(cells) + " |"


def _others(lines: Sequence[Line]) -> Iterator[str]:
    heads = [f"{columns} columns, ε = {epsilon:g}" for columns in OTHER_COLUMNS for epsilon in OTHER_EPSILONS]
    yield "| table | rows | " + " | ".join(heads) + " |"
    yield "|---|---:|" + "---|" * len(heads)
    keys = dict.fromkeys((line["design"], line["rows"]) for line in lines)
    for design, rows in keys:
        own = [line for line in lines if (line["design"], line["rows"]) == (design, rows)]
        cells = [_cell(line, epsilon) for line in own for epsilon in OTHER_EPSILONS]
        yield f"| {design} | {rows:,} | " + " | ".join(cells) + " |"


def _lucky(lines: Sequence[Line]) -> Iterator[str]:
    """Say what is known of files that state a cost where most state none, and of all files together."""
    cells = [(line, cell) for line in lines for cell in line["cells"].values() if cell["stated"]]
    wrong = max(cell["stated"] / line["files"] * (1 - cell["cost"]) for line, cell in cells)
    yield f"Of all files of a cell at most {100 * wrong:.1f}% state an interval of what privacy cost that misses."
    few = [(cell["cost"], cell, line) for line, cell in cells if 20 <= cell["stated"] <= line["files"] / 2]
    if few:
        worst, cell, line = min(few, key=lambda entry: entry[0])
        yield (
            f"But where most files do not state it, those that do were lucky, and it shows: at the worst "
            f"{cell['stated']:,} of {line['files']:,} files state it ({line['design']}, {line['rows']:,} rows, "
            f"{line['columns']} columns), and {100 * worst:.0f}% of their intervals hold what privacy cost, "
            f"{100 * cell.get('beside', cell['truth']):.0f}% the truth."
        )


def _cell(line: Line, epsilon: float) -> str:
    """Return both shares, in bold where they are further off than they may be, and how many files state less."""
    cell = line["cells"][f"{epsilon:g}"]
    without, endless = 1 - cell["stated"] / line["files"], cell.get("endless")
    if endless is None:
        # Measured before files that state no cost had intervals: of those nothing is known, others are the same.
        endless = 0.0
        if without > 0.5:
            return "– / none"
    # An interval from −∞ to ∞ always holds: where nearly all are such there is no share to be off.
    truth = "−∞ to ∞" if endless > _ENDLESS else _share(cell["truth"])
    if endless and endless <= _ENDLESS:
        truth += f" ({math.ceil(100 * endless)}% −∞ to ∞)"
    if without > 0.5:
        return f"{truth} / none"
    return f"{truth} / {_share(cell['cost'])}" + (f" ({math.ceil(100 * without)}% none)" if without else "")


def _share(value: float) -> str:
    return f"{100 * value:.1f}" if abs(value - 0.95) <= _ROOM else f"**{100 * value:.1f}**"
