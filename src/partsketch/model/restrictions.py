"""Linear restrictions in words: "distance = 2, night = 0", "2*a + b = c", "`unit price` = 0"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError

FloatArray = NDArray[np.float64]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
      | `(?P<ticked>[^`]*)` | '(?P<single>[^']*)' | "(?P<double>[^"]*)"
      | (?P<name>\(intercept\)|[^\W\d][\w.:\[\]]*)
      | (?P<sign>[-+*/=,−])
    )""",
    re.VERBOSE,
)


#: Names that are read as they stand although they hold a sign: indicators of levels, such as colour=red.
_INDICATOR = re.compile(r"[^\W\d][\w.:\[\]]*=[\w.:\[\]]+")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def read_restrictions(text: str, columns: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return R and q of the restrictions `R a = q` that a text states, one row per equation.

    Parameters
    ----------
    text
        Equations, separated by commas: names, numbers, `+`, `−`, `*`, `/` and `=`. Names with blanks or signs in them
        stand in backticks or quotes. An expression without `=` is set to zero.
    columns
        Names that may occur.
    """
    if not isinstance(text, str):
        raise InputError(
            f"Restrictions are a text such as 'a = 0, b = 2*c', or a model with fewer features: "
            f"not {type(text).__name__}."
        )
    rows, values = [], []
    for equation in _split(_tokens(text, columns), ","):
        sides = _split(equation, "=")
        stated = " ".join(token.text for token in equation)
        if len(sides) > 2 or not all(sides):
            raise InputError(f"The restriction {stated or text!r} is not an equation: write it as 'a = 0'.")
        row, constant = _linear(sides[0], columns, stated)
        if len(sides) == 2:
            other, other_constant = _linear(sides[1], columns, stated)
            row, constant = row - other, constant - other_constant
        if not row.any():
            raise InputError(f"The restriction {stated!r} has no coefficient in it: name one, such as 'a = 0'.")
        rows.append(row)
        values.append(-constant)
    return np.array(rows), np.array(values)


def _tokens(text: str, columns: Sequence[str]) -> list[_Token]:
    tokens, place = [], 0
    rest = text.rstrip()
    # Nothing else in a restriction has brackets, so terms of formulas are read as they stand, the longest first.
    terms = sorted((name for name in columns if "(" in name and name[0] != "("), key=len, reverse=True)
    while place < len(rest):
        start = place + len(rest[place:]) - len(rest[place:].lstrip())
        indicator = _INDICATOR.match(rest, start)
        known = next((name for name in terms if rest.startswith(name, start)), None)
        if known is None and indicator is not None and indicator.group() in columns:
            known = indicator.group()
            _refuse_two_readings(known, columns)
        if known is not None:
            tokens.append(_Token("name", known))
            place = start + len(known)
            continue
        found = _TOKEN.match(rest, place)
        if found is None:
            raise InputError(
                f"Cannot read the restriction from {rest[place:].strip()[:20]!r} on: write names, numbers, + - * / = "
                "and commas; put names with other signs in backticks."
            )
        place = found.end()
        kind = str(found.lastgroup)
        word = found.group(kind)
        if kind in ("ticked", "single", "double"):
            kind = "name"
        if kind == "name" and word not in columns:
            named = ", ".join(map(repr, columns[:20]))
            more = f" and {len(columns) - 20} more" if len(columns) > 20 else ""
            raise InputError(f"The model has no coefficient {word!r}: it has {named}{more}.")
        tokens.append(_Token(kind, word.replace("−", "-") if kind == "sign" else word))
    return tokens


def _refuse_two_readings(name: str, columns: Sequence[str]) -> None:
    """Refuse an indicator such as a=0 that may as well be an equation, because there is a column a too."""
    if name.partition("=")[0] in columns:
        raise InputError(
            f"{name!r} is the name of a coefficient, and an equation about {name.partition('=')[0]!r}: put the name in "
            "backticks, or write the equation with blanks around its sign."
        )


def _split(tokens: Sequence[_Token], sign: str) -> list[list[_Token]]:
    parts: list[list[_Token]] = [[]]
    for token in tokens:
        if token.kind == "sign" and token.text == sign:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _linear(tokens: Sequence[_Token], columns: Sequence[str], stated: str) -> tuple[FloatArray, float]:
    """Return the coefficients of a sum of terms, and its constant."""
    row, constant = np.zeros(len(columns)), 0.0
    place = 0
    while place < len(tokens):
        factor, signs = 1.0, 0
        while place < len(tokens) and tokens[place].text in ("+", "-") and tokens[place].kind == "sign":
            factor, signs, place = factor * (-1.0 if tokens[place].text == "-" else 1.0), signs + 1, place + 1
        if row.any() or constant or place - signs > 0:
            _require(signs > 0, stated, "has two terms without a sign between them")
        factor, name, place = _term(tokens, place, factor, stated)
        if name is None:
            constant += factor
        else:
            row[list(columns).index(name)] += factor
    return row, constant


def _term(tokens: Sequence[_Token], place: int, factor: float, stated: str) -> tuple[float, str | None, int]:
    """Read a product of numbers and at most one name."""
    name: str | None = None
    divides = False
    while True:
        _require(place < len(tokens), stated, "ends with a sign")
        token = tokens[place]
        if token.kind == "number":
            value = float(token.text)
            _require(not divides or value != 0, stated, "divides by zero")
            factor = factor / value if divides else factor * value
        elif token.kind == "name":
            _require(name is None and not divides, stated, "is not linear: a term may hold one coefficient")
            name = token.text
        else:
            _require(False, stated, f"has {token.text!r} where a name or a number should be")
        place += 1
        if place == len(tokens) or tokens[place].text not in ("*", "/") or tokens[place].kind != "sign":
            _require(bool(np.isfinite(factor)), stated, "has a number beyond what a double holds")
            return factor, name, place
        divides = tokens[place].text == "/"
        place += 1


def _require(holds: bool, stated: str, fault: str) -> None:
    if not holds:
        raise InputError(f"The restriction {stated!r} {fault}: write it as 'a = 0' or 'a + 2*b = 1'.")
