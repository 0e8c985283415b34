"""A fit as a table for the terminal, with exact least squares beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partsketch.common.text import plain
from partsketch.common.units import estimate_text
from partsketch.fitting.comparison import measured_excess_loss, minimal_loss
from partsketch.fitting.fit import Fit
from partsketch.model.assumptions import assumptions
from partsketch.model.intervals import SUBJECTS, TRUTH
from partsketch.model.methods import METHODS

#: More coefficients than this are cut in the middle; the model file has them all.
_MOST_ROWS = 60


def comparison_values(fit: Fit, exact: tuple[Fit, float] | None) -> dict[str, Any] | None:
    """Return the comparison with exact least squares as plain data."""
    if exact is None:
        return None
    excess, loss = measured_excess_loss(fit, exact[0]), minimal_loss(exact[0])
    return {
        "exact_coefficients": exact[0].model.coefficients.tolist(),
        "exact_intercept": exact[0].model.intercept.tolist(),
        "exact_seconds": exact[1],
        "excess_loss": excess.tolist(),
        "minimal_loss": loss.tolist(),
        "relative_excess_loss": [
            float(more / least) if least > 0 else None for more, least in zip(excess, loss, strict=True)
        ],
    }


def print_fit(
    fit: Fit,
    seconds: float,
    exact: tuple[Fit, float] | None,
    model_path: Path | None = None,
    intervals_of: str | None = None,
) -> None:
    """Print coefficients of the fit and of exact least squares, the loss, the time, and what was decided.

    With `intervals_of` ("truth" or "exact") the table of standard errors, tests and intervals for that is there too; it
    takes the place of the coefficients where these stand alone.
    """
    from partsketch.common.terminal import terminal_console

    console = terminal_console()
    summary = None if intervals_of is None else fit.model.summary(of=intervals_of)
    alone = summary is not None and exact is None
    if not alone:
        for target in range(len(fit.model.target_names)):
            console.print(_coefficient_table(fit, exact, target))
            console.print()
    else:
        console.print(summary, markup=False)
        console.print()
    for line in _facts(fit, seconds, exact, alone):
        console.print(plain(line), markup=False)
    if summary is not None and not alone:
        console.print()
        console.print(summary, markup=False)
    if model_path is not None:
        console.print(f"model written to {plain(str(model_path))}", markup=False)


def _coefficient_table(fit: Fit, exact: tuple[Fit, float] | None, target: int) -> Any:
    from rich import box
    from rich.table import Table

    model = fit.model
    table = Table(title=f"target: {plain(model.target_names[target])}", box=box.SIMPLE_HEAD, title_justify="left")
    table.add_column("coefficient", overflow="fold")
    # Alone a fit shows its errors and intervals; beside exact least squares, how far it is from it.
    heads = ("std err", "t", "P>|t|", "[0.025", "0.975]") if exact is None else ("exact", "difference")
    for heading in (model.method, *heads):
        table.add_column(heading, justify="right")
    every = [row for row in model.summary().rows if row.target == model.target_names[target]]
    for position, row in enumerate(every):
        if _MOST_ROWS // 2 <= position < len(every) - _MOST_ROWS // 2:
            if position == _MOST_ROWS // 2:
                table.add_row(f"… {len(every) - _MOST_ROWS} more")
            continue
        if exact is None:
            table.add_row(plain(row.name), *row.cells())
        else:
            reference = float(exact[0].model.column_coefficients[position, target])
            numbers = [estimate_text(value, row.standard_error) for value in (row.coefficient, reference)]
            table.add_row(plain(row.name), *numbers, f"{row.coefficient - reference:+.2g}")
    return table


def _facts(fit: Fit, seconds: float, exact: tuple[Fit, float] | None, below_summary: bool) -> list[str]:
    """Return what else is known of a fit; below its summary, what that does not say."""
    record = fit.model.record
    method = METHODS[fit.model.method]
    one, several = ("partition", "partitions") if method.by_partition else ("sketch", "sketches")
    parts = f", {len(record.partitions)} {one if len(record.partitions) == 1 else several}"
    seed = "" if record.seed is None else f", seed {record.seed}"
    size = f", {record.sketch_size} sketch rows each{seed}" if record.sketch_size else ""
    condition = "" if record.condition is None else f", condition {record.condition:.3g}"
    chosen, weighting = record.reasons.get("method", ""), record.reasons.get("weighting", "")
    # Without limits and sketches exact least squares is what everybody expects.
    limits = record.reasons.get("limits")
    limited = limits is not None and (limits != "none" or "sketch_size" in record.reasons)
    lines = [
        f"{fit.model.method}: {method.description}",
        *([chosen] if limited else []),
        f"{record.rows_in_words} rows{parts if method.by_partition or method.sketched else ''}{size}",
        *([f"weighting {weighting}"] if weighting and not weighting.endswith(": as asked") else []),
        f"rank {record.rank} of {len(fit.combination.coefficients)}{condition}",
    ]
    if below_summary:
        return [*lines[:-1], f"time {seconds:.3g} s"]
    lines += [
        certificate.sentence if len(fit.model.target_names) == 1 else f"{name}: {certificate.sentence}"
        for name, certificate in zip(fit.model.target_names, fit.model.certificates, strict=True)
    ]
    if exact is None:
        if any(known.standard_errors is not None or known.inverted is not None for known in fit.model.inferences):
            lines += [f"Standard errors, tests and intervals are for {SUBJECTS[TRUTH]}.", *assumptions(fit.model)]
        return [*lines, f"time {seconds:.3g} s"]
    excess, loss = measured_excess_loss(fit, exact[0]), minimal_loss(exact[0])
    for name, more, least in zip(fit.model.target_names, excess, loss, strict=True):
        relative = f" ({more / least:.3%} of it)" if least > 0 else ""
        lines.append(f"{name}: loss of the exact fit {least:.6g}, excess loss measured {more:.4g}{relative}")
    lines.append(f"time {seconds:.3g} s, exact least squares {exact[1]:.3g} s")
    if method.sketched and exact[1] <= seconds:
        lines.append(
            "Sketching did not save time here: exact least squares was quicker and has no excess loss. "
            "It pays when rows may not leave their partitions, or when one sketch serves many regressions."
        )
    return lines
