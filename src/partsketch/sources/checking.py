"""Missing and infinite values, unknown levels, negative weights: found cheaply, reported exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.errors import InputError
from partsketch.sources.rows import RawBatch
from partsketch.sources.values import BoolArray

Missing = Literal["error", "drop"]


@dataclass(frozen=True)
class Fault:
    """Rows of one column that cannot be used, and how to say so.

    Attributes
    ----------
    where
        True for the rows at fault.
    is_missing
        Whether the fault is a missing value, which may be dropped; every other fault is an error.
    sentence
        From the place of the first such row to the sentence that reports it.
    """

    where: BoolArray
    is_missing: bool
    sentence: Callable[[str], str]


def missing_fault(name: str, where: BoolArray) -> Fault:
    """Report missing values of a column."""
    advice = "remove it or use missing='drop' (--missing drop)"
    return Fault(where, True, lambda place: f"Column '{name}' has a missing value in {place}: {advice}.")


def number_faults(name: str, values: NDArray[np.generic], null: BoolArray | None) -> list[Fault]:
    """Return what is wrong with a numeric column: nulls and NaN, infinities."""
    faults = [] if null is None else [missing_fault(name, null)]
    # One sum tells whether all values are finite, unless it overflows, and then a closer look does.
    if values.dtype.kind != "f" or not values.size or np.isfinite(values.sum()):
        return faults
    not_a_number = np.isnan(values)
    if not_a_number.any():
        faults.append(missing_fault(name, not_a_number))
    infinite = np.isinf(values)
    if infinite.any():
        sentence = "Column '{}' has an infinite value in {}: remove or replace it.".format
        faults.append(Fault(infinite, False, lambda place: sentence(name, place)))
    return faults


def weight_faults(name: str, values: NDArray[np.generic]) -> list[Fault]:
    """Return where weights are negative."""
    if not values.size or values.min() >= 0:
        return []
    negative = values < 0  # type: ignore[operator]
    if not negative.any():
        return []
    first = values[np.argmax(negative)]
    return [
        Fault(
            negative,
            False,
            lambda place: f"Weight column '{name}' has the value {first} in {place}: weights must not be negative.",
        )
    ]


def level_fault(name: str, unknown: BoolArray, first_text: str) -> Fault:
    """Report a level that an encoding does not have."""
    advice = "correct the value or fit the model again with it"
    return Fault(
        unknown,
        False,
        lambda place: (
            f"Column '{name}' has the level '{first_text}' in {place}, which the encoding does not know: {advice}."
        ),
    )


def complete_rows(batch: RawBatch, faults: Sequence[Fault], missing: Missing) -> NDArray[np.bool_] | None:
    """Return which rows to keep (None: all), or raise for the first row that may not be left out.

    Among faults of the same row, the first one listed is reported.
    """
    fatal = [fault for fault in faults if not (fault.is_missing and missing == "drop")]
    if fatal:
        firsts = [int(np.argmax(fault.where)) for fault in fatal]
        worst = min(range(len(fatal)), key=firsts.__getitem__)
        raise InputError(fatal[worst].sentence(batch.place(firsts[worst])))
    if not faults:
        return None
    kept = ~faults[0].where
    for fault in faults[1:]:
        kept &= ~fault.where
    return kept
