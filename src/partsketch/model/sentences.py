"""Sentences about a fit, for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solution import Alias, Solution
from partsketch.model.coordinates import TINY_WEIGHT
from partsketch.sources.base import PartitionLeftOut
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.model.certificate import Certificate

#: From here on not every whole number is a double.
_FIRST_GAP = 2.0**53
#: Steps between doubles that are a smaller part of a column's spread are not felt: predictions are held to this.
_NOT_FELT = 1e-9


def listed(names: Sequence[str], most: int = 6) -> str:
    """Join names with commas, the tail counted when there are many."""
    shown = [("the intercept" if name == INTERCEPT else repr(name)) for name in names[:most]]
    if len(names) > most:
        return ", ".join(shown) + f" and {len(names) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def dropped_rows(count: int) -> str:
    """Say how many rows were dropped."""
    rows = (
        "1 row with missing values or of weight zero was"
        if count == 1
        else (f"{count} rows with missing values or of weight zero were")
    )
    return f"{rows} dropped."


def size_warnings(size: int, columns: int, stacked: int = 1) -> list[str]:
    """Warn of sketch sizes at which the loss has infinite variance; of stacked sketches all rows count."""
    if size * stacked > columns + 3:
        return []
    if stacked > 1:
        return [
            f"The stacked sketches have {size * stacked} rows, at most {columns} columns + 3: the loss of such a fit "
            f"has infinite variance, single fits can be arbitrarily far off; use at least {columns + 4} in all."
        ]
    return [
        f"sketch_size={size} is at most {columns} columns + 3: the loss of such a fit has infinite variance, single "
        f"fits can be arbitrarily far off; use at least {columns + 4}."
    ]


def _alias_sentence(alias: Alias, mean_weight: float, sketched: bool) -> str:
    if not alias.others:
        # Roots of tiny weights take columns of 1e-300 to zero.
        product = ", or so small that it is zero times the root of the weight" if mean_weight < TINY_WEIGHT else ""
        counts = " of the sketch" if sketched else " that counts" if mean_weight != 1 else ""
        return f"Column {alias.column!r} is zero in every row{counts}{product}; its coefficient is set to 0."
    return (
        f"Column {alias.column!r} is aliased with {listed(alias.others)}: it adds nothing to what they say, "
        "and the solution of least norm was taken, in units of the columns' spreads."
    )


def alias_warnings(solutions: Sequence[Solution], columns: int, mean_weight: float, sketched: bool) -> list[str]:
    """Name dependent columns: each one when there is a single fit, a summary over partitions otherwise."""
    if len(solutions) == 1:
        return [_alias_sentence(alias, mean_weight, sketched) for alias in solutions[0].aliased]
    singular = [solution for solution in solutions if solution.rank < columns]
    if not singular:
        return []
    ranks = sorted(solution.rank for solution in singular)
    spread = f"{ranks[0]}" if ranks[0] == ranks[-1] else f"{ranks[0]} to {ranks[-1]}"
    dependent = list(dict.fromkeys(alias.column for solution in singular for alias in solution.aliased))
    return [
        f"{len(singular)} of {len(solutions)} fits have dependent columns (rank {spread} of {columns}): "
        f"{listed(dependent)}; the solution of least norm was taken in each."
    ]


def hidden_loss(solution: Solution) -> str:
    """Say that a column may differ from a sum of others by less than its digits: nobody knows."""
    doubtful = any(other != INTERCEPT for alias in solution.aliased for other in alias.others)
    return " beyond what rounding hides of aliased columns" if doubtful else ""


def left_out_warnings(left_out: Sequence[PartitionLeftOut], kept: int, most: int = 3) -> list[str]:
    """Name the partitions that a model does not know, and say why."""
    if not left_out:
        return []
    named = "; ".join(f"{part.name!r} ({part.reason.rstrip('.')})" for part in left_out[:most])
    more = f"; and {len(left_out) - most} more, which the record names" if len(left_out) > most else ""
    verb = "was" if len(left_out) == 1 else "were"
    return [
        f"{len(left_out)} of {len(left_out) + kept} partitions {verb} left out: {named}{more}. The model, its "
        "certificate and its intervals are of the others alone."
    ]


def unknown_loss_warnings(certificates: Sequence[Certificate], penalty: float) -> list[str]:
    """Say why it is not known what a fit loses; a ridge fit is meant to lose."""
    if penalty > 0:
        return []
    reasons = [certificate.reason for certificate in certificates if certificate.kind == "unavailable"]
    return [
        f"What the fit loses against exact least squares is unknown: {reason}." for reason in dict.fromkeys(reasons)
    ]


def rounding_warnings(
    names: Sequence[str], places: NDArray[np.float64], spreads: NDArray[np.float64], kind: str = "Column"
) -> list[str]:
    """Name columns so far from zero that not every whole number there is a double, if that is felt in their spread.

    Of a column without any spread nobody knows whether it is constant, or became so.
    """
    steps = np.spacing(np.abs(places))
    felt = (np.abs(places) >= _FIRST_GAP) & (steps > _NOT_FELT * spreads)
    return [
        f"{kind} {name!r} lies near {place:.3g}, where doubles are {step:g} apart: {_what_rounding_did(step, spread)}. "
        "Take a constant off it before, such as its smallest value."
        for name, place, step, spread, told in zip(names, places, steps, spreads, felt, strict=True)
        if told
    ]


def _what_rounding_did(step: float, spread: float) -> str:
    if spread == 0:
        return "numbers that differ by less, if there were any, became the same when they became doubles"
    return (
        f"numbers between them, if there were any, were rounded when they became doubles, by up to "
        f"{step / 2 / spread:.1g} of its spread"
    )


def target_warnings(target_range: NDArray[np.float64], names: Sequence[str]) -> list[str]:
    """Say which targets were rounded before they came, and which have one value only."""
    low, high = target_range
    constant = [
        # A zero has no sign.
        f"Target {name!r} is constant ({value + 0.0:g} in every row): there is nothing to explain."
        for name, value, is_constant in zip(names, low, low == high, strict=True)
        if is_constant
    ]
    return rounding_warnings(names, np.maximum(-low, high), (high - low) / 4, "Target") + constant


#: What an estimate of a loss that is not above zero says.
LESS_THAN_SHOWN = "less than the sketches can show"


def share_lost(share: float, kind: str, shown: Callable[[float], str]) -> str:
    """Return a share of the minimal loss as it is shown, with the kind of its certificate."""
    known = share > 0 or kind == "exact"
    return f"{shown(share) if known else LESS_THAN_SHOWN} ({kind})"
