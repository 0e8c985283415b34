"""What of a formula is known before rows are read: agreed on by sites, or written in the formula itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.formula.bases import Spline, basis_of
from partsketch.sources.formula.contrasts import written_levels
from partsketch.sources.formula.design import CATEGORY, Factor, level_values
from partsketch.sources.formula.search import is_basis
from partsketch.sources.formula.values import ValueTable

Given = Mapping[str, Sequence[Any]]


def with_given(factors: tuple[Factor, ...], given: Given | None) -> tuple[Factor, ...]:
    """Return the factors with levels and state that were agreed on, or written in the formula itself."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError('levels is a mapping from columns to their levels, such as {"colour": ["blue", "red"]}.')
    return tuple(_with_given(factor, given or {}) for factor in factors)


def _check_given(factor: Factor) -> None:
    """Refuse levels that the column, as it was read, cannot have."""
    try:
        level_values(factor)
    except InputError as error:
        held = {"truth": "True and False", "integer": "whole numbers"}.get(factor.level_type, "numbers")
        raise InputError(
            f"The levels of {factor.expression!r} were given as {', '.join(map(repr, factor.levels[:3]))}, and the "
            f"column holds {held}: write the levels so, or the column as text."
        ) from error


def written_knots(factor: Factor) -> dict[str, tuple[float, ...]]:
    """Return the knots of splines whose knots and ends the formula has: nothing of them is found of rows."""
    calls = [(text, basis_of(call)) for text, call in factor.whole.stateful if is_basis(call)]
    return {
        text: basis.state(ValueTable(), text) for text, basis in calls if isinstance(basis, Spline) and basis.is_written
    }


def found_of_rows(factors: Sequence[Factor], given: Given | None) -> list[str]:
    """Return the calls whose knots, ends, centres or spreads neither the sites nor the formula gave."""
    return [
        text
        for factor in factors
        for text, _ in factor.state
        if text not in (given or {}) and text not in written_knots(factor)
    ]


def levels_of_rows(factors: Sequence[Factor], given: Given | None) -> list[str]:
    """Return the categories whose levels neither the sites gave, by expression or column, nor the formula has."""
    known = given or {}
    return [
        factor.expression
        for factor in factors
        if factor.kind == CATEGORY
        and factor.expression not in known
        and not (len(factor.inner.names) == 1 and factor.inner.names[0] in known)
        and written_levels(factor) is None
    ]


def _with_given(factor: Factor, given: Given) -> Factor:
    levels = given.get(factor.expression) or written_levels(factor)
    single = factor.inner.names
    if levels is None and factor.kind == CATEGORY and len(single) == 1:
        levels = given.get(single[0])
    if factor.kind == CATEGORY and levels is not None:
        # A text would be taken apart into its letters.
        texts = tuple(str(level) for level in levels) if isinstance(levels, list | tuple) else ()
        if len(set(texts)) != len(texts) or not texts:
            raise InputError(f"The levels of {factor.expression!r} must be a list of distinct texts.")
        factor = replace(factor, levels=texts)
        _check_given(factor)
    state: dict[str, Sequence[float]] = dict(written_knots(factor))
    for text, call in factor.whole.stateful:
        if text not in given:
            continue
        numbers = given[text]
        if not isinstance(numbers, list | tuple) or not all(isinstance(number, int | float) for number in numbers):
            raise InputError(f"What is given for {text!r} must be a list of numbers, as another site found it.")
        needed = basis_of(call).state_length if is_basis(call) else 2
        if len(numbers) != needed:
            raise InputError(
                f"What is given for {text!r} has {len(numbers)} numbers and needs {needed}, as another site has them. "
                "Knots and ends can be written in the formula too: bs(x, knots=[5], lower_bound=0, upper_bound=9)."
            )
        state[text] = numbers
    found = tuple((text, tuple(float(number) for number in numbers)) for text, numbers in state.items())
    return replace(factor, state=found)
