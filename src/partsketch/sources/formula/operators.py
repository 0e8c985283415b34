"""What `*`, `:`, `/` and `**` make of terms: what formulaic makes of them, but never without bound.

`(a + b) ** 40` has three terms, and formulaic multiplies 2⁴⁰ times to find them; twenty columns joined by `*` have a
million. A formula that nobody could fit is refused, where it would otherwise take all memory or never end.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

#: Terms that a formula may have, as many as a sketch file may have columns, and products that are made for them.
MOST_TERMS = 65_536
_MOST_PRODUCTS = 2**19

_PRODUCTS = ("*", ":", "/", "%in%")
_POWERS = ("**", "^")


def bounded_parser(formulaic: Any, powers: list[str]) -> Any:
    """Return formulaic's parser with bounded operators; it adds to `powers` what it was told to take of one term."""
    from formulaic.parser.parser import DefaultOperatorResolver
    from formulaic.parser.types import Operator, OrderedSet

    def power(base: Any, exponent: Any) -> Any:
        times = _exponent(exponent)
        if times > 1 and len(base) == 1:
            powers.append(f"{next(iter(base))}**{times}")
        return _power(base, times, OrderedSet)

    class Bounded(DefaultOperatorResolver):  # type: ignore[misc]
        @property
        def operators(self) -> list[Any]:
            return [_bounded(operator, power, Operator) for operator in super().operators]

    return formulaic.parser.DefaultFormulaParser(operator_resolver=Bounded(), include_intercept=True)


def _bounded(operator: Any, power: Callable[[Any, Any], Any], kind: Any) -> Any:
    """Return an operator that refuses to make too many terms."""
    if operator.symbol not in (*_PRODUCTS, *_POWERS):
        return operator

    def to_terms(*sides: Any, context: Any) -> Any:
        _check(_size(sides[0]) * _size(sides[-1]), _MOST_PRODUCTS)
        terms = operator.to_terms(*sides, context=context)
        _check(_size(terms), MOST_TERMS)
        return terms

    return kind(
        operator.symbol,
        arity=operator.arity,
        precedence=operator.precedence,
        associativity=operator.associativity,
        fixity=operator.fixity,
        to_terms=power if operator.symbol in _POWERS else to_terms,
    )


def _size(terms: Any) -> int:
    return len(terms) if hasattr(terms, "__len__") else 1


def _check(count: int, most: int) -> None:
    if count > most:
        raise ValueError(f"it has more than {MOST_TERMS:,} terms: name fewer")


def _exponent(given: Any) -> int:
    """Return the number on the right of `**`."""
    (term, *others) = given
    text = term.factors[0].expr
    if others or len(term.factors) != 1 or not text.isdecimal() or ast.literal_eval(text) < 1:
        raise ValueError("the power after '**' must be a whole number, at least 1")
    return int(text)


def _power(base: Any, exponent: int, kind: Any) -> Any:
    """Multiply again and again, each product once, until none is new."""
    terms = base
    for _ in range(exponent - 1):
        _check(len(terms) * len(base), _MOST_PRODUCTS)
        more = kind(one * other for one in terms for other in base)
        _check(len(more), MOST_TERMS)
        if len(more) == len(terms):
            return more
        terms = more
    return terms
