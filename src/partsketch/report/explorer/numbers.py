"""The numbers of a state: everything that the page shows, as plain data and small pieces of HTML."""

from __future__ import annotations

from typing import Any

from partsketch.common.errors import InputError
from partsketch.planner.calibration import Calibration
from partsketch.planner.costs import seconds, sent_bytes, summary_bytes
from partsketch.planner.work import Work
from partsketch.report.explorer.evaluation import QUANTITIES, TAILS, divergence, figure, minimal_loss, tails, told
from partsketch.report.explorer.state import State


def numbers(state: State, calibration: Calibration) -> dict[str, Any]:
    """Return what the formulas say of a state."""
    loss = minimal_loss(state)
    unlike, why_not = told(divergence, state)
    quantiles, moments = tails(state)
    rows = []
    for quantity in QUANTITIES:
        value, reason = told(quantity.value, state)
        work = work_of(state, quantity.method)
        rows.append(
            {
                "name": quantity.name,
                "symbol": quantity.symbol,
                "words": quantity.words,
                "excess_loss": value,
                "relative_excess_loss": None if value is None else value / loss,
                "reason": reason,
                "colour": quantity.colour,
                "bytes_per_partition": summary_bytes(work),
                "bytes_of_the_estimator": sent_bytes(work),
                "seconds": seconds(work, calibration),
            }
        )
    return {
        "query": state.to_query(),
        "minimal_loss": loss,
        "divergence": unlike,
        "divergence_reason": why_not,
        "quantities": rows,
        "tails": [{"probability": p, "relative_excess_loss": value} for p, value in quantiles],
        "tails_words": moments,
        "command": state.plan_command(),
        "figures": {axis: figure(state, axis) for axis in ("k", "m")},
    }


def work_of(state: State, method: str) -> Work:
    """Return the sizes that costs depend on, for rows in memory and a Gaussian sketch."""
    sketched = method in ("whole", "partition", "stack")
    return Work(
        rows=state.n,
        columns=state.d,
        targets=1,
        method=method,
        sketch="gaussian" if sketched else "triangular",
        partitions=state.k,
        sketch_size=state.m if sketched else None,
    )


def refused(error: InputError) -> dict[str, Any]:
    """Return the answer to a state that makes no sense."""
    return {"error": str(error)}


__all__ = ["TAILS", "numbers", "refused", "work_of"]
