"""The design of a formula: which columns of a model are made of which columns of the data, and how.

A design is plain data. It holds the levels, knots and other numbers that were found of all rows, so that it makes the
same columns of other rows: in a prediction, on a worker, at another site.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from partsketch.common.errors import InputError
from partsketch.sources.formula.bases import Basis, basis_of
from partsketch.sources.formula.expressions import Expression, called, read_expression

#: Kinds of factors, and what levels may be besides text.
NUMBER, CATEGORY, BASIS = "number", "category", "basis"
LEVEL_TYPES = ("text", "integer", "number", "truth")


@dataclass(frozen=True)
class Factor:
    """What a term of a formula is a product of.

    Attributes
    ----------
    expression
        Its text, which names its columns.
    is_name
        Whether the text is the name of a column, whatever signs it has.
    kind
        "number": one column; "category": one per level; "basis": several, of `bs` or `poly`.
    levels, level_type
        Of a category, in order; as text, and what the text stands for.
    reference
        Of a category: the level that has no column where the columns would add up to the intercept otherwise.
    coding
        Of a category with other contrasts: what stands in the columns for each level in place of one indicator each.
    state
        What was found of all rows, by the text of the call that needs it.
    """

    expression: str
    is_name: bool
    kind: str
    levels: tuple[str, ...] = ()
    level_type: str = "text"
    reference: int = 0
    coding: tuple[tuple[float, ...], ...] = ()
    state: tuple[tuple[str, tuple[float, ...]], ...] = ()

    @cached_property
    def whole(self) -> Expression:
        """The expression, read."""
        return read_expression(self.expression, self.is_name)

    @cached_property
    def inner(self) -> Expression:
        """What is evaluated: the expression, or what it makes a category or a basis of."""
        if self.kind == NUMBER or called(self.whole) not in ("C", "bs", "poly"):
            return self.whole
        assert isinstance(self.whole.tree, ast.Call)
        return self.whole.of(self.whole.tree.args[0])

    @cached_property
    def basis(self) -> Basis:
        """What gives the columns of a basis."""
        assert isinstance(self.whole.tree, ast.Call)
        return basis_of(self.whole.tree)

    @cached_property
    def basis_state(self) -> tuple[float, ...]:
        """What was found for the basis."""
        return dict(self.state)[self.whole.unparsed(self.whole.tree)]

    def width(self, reduced: bool) -> int:
        """Return the number of columns; reduced: without those that would add up to the intercept."""
        if self.kind == NUMBER:
            return 1
        if self.kind == BASIS:
            return self.basis.width - int(reduced and self.basis.drops is not None)
        if not reduced:
            return len(self.levels)
        return len(self.coding[0]) if self.coding else len(self.levels) - 1


@dataclass(frozen=True)
class Term:
    """Columns that are products of factors; the first factor's columns follow one another fastest.

    Attributes
    ----------
    text
        The term of the formula.
    factors
        Numbers of the factors, and whether each is reduced.
    scale
        A number that all columns are multiplied with.
    names
        Names of the columns.
    chosen
        Which of the columns are wanted; None for all.
    """

    text: str
    factors: tuple[tuple[int, bool], ...]
    scale: float
    names: tuple[str, ...]
    chosen: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Design:
    """A formula, and everything that makes columns of it.

    Attributes
    ----------
    formula
        As it was written.
    intercept
        Whether there is one; it is no term.
    factors
        Without repetition.
    terms
        What the features are, in order.
    targets
        Numbers of the factors that are targets.
    notes
        What was found only nearly, in sentences.
    """

    formula: str
    intercept: bool
    factors: tuple[Factor, ...]
    terms: tuple[Term, ...]
    targets: tuple[int, ...]
    notes: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(name for term in self.terms for name in term.names)

    @property
    def codes(self) -> tuple[int, int]:
        """How many features are held as codes, and how many of them a row has that are not zero."""
        columns = entries = 0
        for term in self.terms:
            factors = [(self.factors[number], reduced) for number, reduced in term.factors]
            dense = [
                factor.width(reduced)
                for factor, reduced in factors
                if factor.kind != CATEGORY or (reduced and factor.coding)
            ]
            if len(dense) < len(factors):
                columns, entries = columns + len(term.names), entries + math.prod(dense)
        return columns, entries

    @cached_property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return tuple(self.factors[number].expression for number in self.targets)

    @cached_property
    def feature_columns(self) -> tuple[str, ...]:
        """Columns of the data that the features are made of."""
        numbers = dict.fromkeys(number for term in self.terms for number, _ in term.factors)
        return self._columns(tuple(numbers))

    @cached_property
    def target_columns(self) -> tuple[str, ...]:
        """Columns of the data that the targets are made of."""
        return self._columns(self.targets)

    def _columns(self, numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for number in numbers for name in self.factors[number].inner.names))

    @cached_property
    def text_columns(self) -> tuple[str, ...]:
        """Columns of the data whose texts are levels."""
        texts = [factor.inner for factor in self.factors if factor.kind == CATEGORY and factor.level_type == "text"]
        return tuple(dict.fromkeys(name for inner in texts for name in inner.names))

    @property
    def levels(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Levels of the categories, by their expression."""
        return tuple((factor.expression, factor.levels) for factor in self.factors if factor.kind == CATEGORY)

    @property
    def found(self) -> dict[str, list[str] | list[float]]:
        """What was found of all rows, by expression: what sites tell one another to make the same columns."""
        told: dict[str, list[str] | list[float]] = {name: list(levels) for name, levels in self.levels}
        for factor in self.factors:
            told |= {text: list(numbers) for text, numbers in factor.state}
        return told

    @property
    def needs_pass(self) -> bool:
        """Whether a pass over the data found something of it."""
        return any(factor.kind != NUMBER or factor.state for factor in self.factors)

    def columns_of(self, text: str) -> tuple[str, ...] | None:
        """Return the columns of a term or a factor by its text; None if there is none."""
        found = [name for term in self.terms if term.text == text for name in term.names]
        return tuple(found) or None

    def narrowed(self, names: Sequence[str]) -> Design:
        """Return the design of some of the features, in the order given."""
        own = [
            Term(name, ((number, False),), 1.0, (name,))
            for name, number in zip(self.target_names, self.targets, strict=True)
        ]
        place = {name: (term, i) for term in (*own, *self.terms) for i, name in enumerate(term.names)}
        runs: list[tuple[Term, list[int]]] = []
        for name in names:
            term, position = place[name]
            if runs and runs[-1][0] is term:
                runs[-1][1].append(position)
            else:
                runs.append((term, [position]))
        return replace(self, terms=tuple(_chosen(term, positions) for term, positions in runs))

    def with_targets(self, names: Sequence[str]) -> Design:
        """Return the design with these targets; those that are no factor of their own are left out."""
        numbers = {factor.expression: number for number, factor in enumerate(self.factors) if factor.kind == NUMBER}
        return replace(self, targets=tuple(numbers[name] for name in names if name in numbers))

    def check(self) -> None:
        """Refuse a design whose parts do not go together: it may come out of a file that anybody wrote."""
        for factor in self.factors:
            _check_factor(factor)
        if not all(0 <= number < len(self.factors) for number in self.targets):
            raise InputError("the design has a target that is none of its factors")
        for term in self.terms:
            if not term.factors or not all(0 <= number < len(self.factors) for number, _ in term.factors):
                raise InputError(f"the term {term.text!r} has a factor that there is not")
            width = math.prod(self.factors[number].width(reduced) for number, reduced in term.factors)
            chosen = range(width) if term.chosen is None else term.chosen
            if len(chosen) != len(term.names) or not all(0 <= column < width for column in chosen):
                raise InputError(f"the term {term.text!r} has other names than columns")


def _chosen(term: Term, positions: list[int]) -> Term:
    if positions == list(range(len(term.names))):
        return term
    before = range(len(term.names)) if term.chosen is None else term.chosen
    chosen = tuple(before[position] for position in positions)
    return replace(term, names=tuple(term.names[position] for position in positions), chosen=chosen)


def _check_factor(factor: Factor) -> None:
    if factor.kind not in (NUMBER, CATEGORY, BASIS) or factor.level_type not in LEVEL_TYPES:
        raise InputError(f"the factor {factor.expression!r} is of no known kind")
    found = dict(factor.state)
    for text, call in factor.whole.stateful:
        is_basis = factor.kind == BASIS and call is factor.whole.tree
        if len(found.get(text, ())) != (factor.basis.state_length if is_basis else 2):
            raise InputError(f"the factor {factor.expression!r} lacks what was found for {text!r}")
    if factor.kind == BASIS and called(factor.whole) not in ("bs", "poly"):
        raise InputError(f"the factor {factor.expression!r} gives no basis")
    if factor.kind != CATEGORY:
        return
    if not factor.levels or len(set(factor.levels)) != len(factor.levels):
        raise InputError(f"the levels of {factor.expression!r} are none, or not distinct")
    if not 0 <= factor.reference < len(factor.levels):
        raise InputError(f"the reference of {factor.expression!r} is none of its levels")
    if factor.coding and (len(factor.coding) != len(factor.levels) or len({len(row) for row in factor.coding}) != 1):
        raise InputError(f"the contrasts of {factor.expression!r} are not those of its levels")
    level_values(factor)


def level_values(factor: Factor) -> list[int] | list[float]:
    """Return what the levels of a category of numbers stand for."""
    try:
        if factor.level_type == "integer":
            return [int(level) for level in factor.levels]
        if factor.level_type == "truth":
            return [("False", "True").index(level) for level in factor.levels]
        return [float(level) for level in factor.levels] if factor.level_type == "number" else []
    except ValueError as error:
        raise InputError(f"the levels of {factor.expression!r} are not numbers") from error


def places(widths: Sequence[int]) -> list[tuple[int, ...]]:
    """Return which column of each factor stands in each column of their product: the first changes fastest."""
    return [tuple(reversed(entry)) for entry in product(*(range(width) for width in reversed(widths)))]
