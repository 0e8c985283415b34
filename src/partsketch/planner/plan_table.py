"""A plan as text for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partsketch.common.text import plain
from partsketch.common.units import bytes_text, count_text, percentage, seconds_text
from partsketch.planner.terminal_plot import terminal_plot

if TYPE_CHECKING:
    from rich.table import Table

    from partsketch.planner.plan import Candidate, Plan

#: Candidates shown unless all are asked for: enough within the limits to compare, and one rejected of each kind.
_MOST_WITHIN, _MOST_REJECTED = 10, 8
_KINDS = {"exact": "", "estimated": "~ ", "approximate": "≈ ", "unknown": ""}


def plan_text(plan: Plan, show_all: bool = False, width: int = 140) -> str:
    """Return the plan: a table of candidates, the recommendation, the answers, and what it all rests on."""
    from io import StringIO

    from partsketch.common.terminal import text_console

    file = StringIO()
    print_plan(plan, text_console(file, width), show_all)
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())


def print_plan(plan: Plan, console: object, show_all: bool = False) -> None:
    """Print the plan on a rich console."""
    from rich.console import Console

    assert isinstance(console, Console)
    rows = "an unknown number of" if plan.rows is None else f"{plan.rows:,}"
    console.print(f"{plain(plan.data or 'data')}: {rows} rows, {plan.columns:,} columns to estimate", markup=False)
    shown = list(plan.candidates) if show_all else _shown(plan)
    console.print(_table(plan, shown))
    if len(shown) < len(plan.candidates):
        console.print(
            f"{len(plan.candidates) - len(shown)} more candidates: --all or --json shows them, in Python `candidates`.",
            markup=False,
        )
    if plan.recommended is not None:
        console.print(f"Recommended: {plan.recommended.name}.", markup=False)
    console.print(plan.reason, markup=False)
    if plan.answers:
        console.print()
        for question in dict.fromkeys(answer.question for answer in plan.answers):
            console.print(f"{question[0].upper()}{question[1:]}:", markup=False)
            for answer in plan.answers:
                if answer.question == question:
                    console.print(f"  {answer.sentence}", markup=False)
    plot = _plot(plan)
    if plot:
        console.print()
        console.print(plot, markup=False)
    console.print()
    for note in plan.notes:
        console.print(note, markup=False)


def _plot(plan: Plan) -> str:
    if all(len(curve.points) < 3 for curve in plan.curves):
        return ""
    size = next(curve.sketch_size for curve in plan.curves if curve.sketch_size is not None)
    title = f"excess loss against k, Gaussian sketches, m = {size}"
    return terminal_plot({curve.method: curve.points for curve in plan.curves}, title=title, x_label="k")


def _shown(plan: Plan) -> list[Candidate]:
    within = [candidate for candidate in plan.candidates if not candidate.breaks]
    shown = within[:_MOST_WITHIN]
    rejected: dict[tuple[str, str | None], Candidate] = {}
    for candidate in plan.candidates:
        if candidate.breaks:
            rejected.setdefault((candidate.method, candidate.sketch), candidate)
    shown += list(rejected.values())[:_MOST_REJECTED]
    exact = next(candidate for candidate in plan.candidates if candidate.method == "exact")
    for wanted in (exact, plan.recommended):
        if wanted is not None and wanted not in shown:
            shown.insert(0, wanted)
    return shown


def _table(plan: Plan, candidates: list[Candidate]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in ("method", "sketch"):
        table.add_column(name, no_wrap=True)
    for name in ("m", "k", "excess", "sent each", "in all", "flop", "passes", "memory", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("breaks")
    for candidate in candidates:
        table.add_row(
            "→" if candidate == plan.recommended else "",
            candidate.method,
            candidate.sketch or "",
            "" if candidate.sketch_size is None else f"{candidate.sketch_size:,}",
            "" if candidate.method == "exact" else f"{candidate.partitions:,}",
            "unknown" if candidate.excess is None else _KINDS[candidate.excess_kind] + percentage(candidate.excess),
            bytes_text(candidate.bytes_per_partition),
            bytes_text(candidate.bytes_in_all),
            "" if candidate.flops is None else count_text(candidate.flops),
            str(candidate.passes),
            bytes_text(candidate.peak_bytes),
            "" if candidate.seconds is None else seconds_text(candidate.seconds),
            "; ".join(candidate.breaks),
        )
    return table
