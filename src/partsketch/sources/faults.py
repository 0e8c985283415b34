"""Missing and infinite values, unknown levels, negative weights: found cheaply, reported exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import BoolArray
from partsketch.sources.base import FloatArray
from partsketch.sources.storage import RawBlock

Missing = Literal["error", "drop"]

#: What to do about a level that a model does not know.
FIT_AGAIN = "correct it or fit the model again"


@dataclass(frozen=True)
class Fault:
    """Rows of one column that cannot be used, and how to say so.

    Attributes
    ----------
    where
        True for the rows at fault.
    sentence
        From the place of a row, in words, and its position to the sentence that reports it.
    is_missing
        Whether the fault is a missing value, which may be dropped; every other fault is an error.
    excused
        Whether it does not matter in rows that are dropped for a missing value.
    is_level
        Whether it is an unknown level: what to do about it depends on what the rows are for, and follows the sentence.
    """

    where: BoolArray
    sentence: Callable[[str, int], str]
    is_missing: bool = False
    excused: bool = False
    is_level: bool = False


def missing_fault(name: str, where: BoolArray) -> Fault:
    """Report missing values of a column."""
    advice = "remove it or use missing='drop' (--missing drop)"
    return Fault(where, lambda place, _: f"Column '{name}' has a missing value in {place}: {advice}.", is_missing=True)


def number_faults(name: str, values: NDArray[np.generic], null: BoolArray | None) -> list[Fault]:
    """Return what is wrong with a numeric column: nulls and NaN, infinities."""
    faults = [] if null is None else [missing_fault(name, null)]
    # One sum tells whether all values are finite, unless it overflows, and then a closer look does.
    if values.dtype.kind != "f" or math.isfinite(np.add.reduce(values)):
        return faults
    not_a_number = np.isnan(values)
    if not_a_number.any():
        faults.append(missing_fault(name, not_a_number))
    infinite = np.isinf(values)
    if infinite.any():
        faults.append(infinity_fault(name, infinite))
    return faults


def infinity_fault(name: str, where: BoolArray) -> Fault:
    """Report infinite values of a column."""
    return Fault(where, lambda place, _: f"Column '{name}' has an infinite value in {place}: remove or replace it.")


def weight_faults(name: str, values: FloatArray) -> list[Fault]:
    """Return where weights are negative."""
    negative = values < 0
    if not negative.any():
        return []

    def sentence(place: str, row: int) -> str:
        return f"Weight column '{name}' has the value {values[row]} in {place}: weights must not be negative."

    return [Fault(negative, sentence)]


def level_fault(name: str, unknown: BoolArray, texts: Sequence[str]) -> Fault:
    """Report levels that an encoding does not have; `texts` holds them in the order of their rows."""

    def sentence(place: str, row: int) -> str:
        level = texts[int(np.count_nonzero(unknown[:row]))]
        return f"Column '{name}' has the level '{level}' in {place}, which the encoding does not know: "

    return Fault(unknown, sentence, excused=True, is_level=True)


def complete_rows(
    raw: RawBlock, faults: Sequence[Fault], missing: Missing, remedy: str = FIT_AGAIN
) -> NDArray[np.bool_] | None:
    """Return which rows to keep (None: all), or raise for the first row that may not be left out.

    Among faults of the same row, the first one listed is reported. `remedy` says what to do about unknown levels.
    """
    if not faults:
        return None
    kept = np.ones(raw.length, dtype=bool)
    if missing == "drop":
        for fault in faults:
            if fault.is_missing:
                kept &= ~fault.where
        faults = [fault for fault in faults if not fault.is_missing]
    found = [(np.flatnonzero(fault.where & kept if fault.excused else fault.where), fault) for fault in faults]
    fatal = [(int(rows[0]), fault) for rows, fault in found if rows.size]
    if fatal:
        row, fault = min(fatal, key=lambda pair: pair[0])
        sentence = fault.sentence(raw.place(row), row)
        raise InputError(f"{sentence}{remedy}." if fault.is_level else sentence)
    return kept
