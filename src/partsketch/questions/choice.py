"""Which columns of summaries are regressed on which: names, encoded columns, formulas."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from partsketch.common.errors import InputError
from partsketch.sources.encoding import NOTHING_ENCODED, Encoding
from partsketch.sources.formula.design import Design
from partsketch.summaries.provenance import About
from partsketch.summaries.tasks import INTERCEPT

Names = str | Sequence[str]


class Choice(NamedTuple):
    """Targets and features by name; encoded columns are their indicators."""

    targets: tuple[str, ...]
    features: tuple[str, ...]


class Formula(NamedTuple):
    """What a formula such as "y ~ a + b" says; features None are all others, the intercept is None if not mentioned."""

    target: str
    features: tuple[str, ...] | None
    intercept: bool | None


def choose_columns(columns: Sequence[str], about: About, target: Names | None, features: Names | None) -> Choice:
    """Return the columns that are asked for, refusing what is not there or does not go together.

    Without a target those that were named when the summaries were made; without features all other columns.
    """
    targets = about.targets if target is None else as_names(target)
    if not targets:
        raise InputError(f"Name a target (--target): one of {shown(columns)}.")
    if features is None:
        left_out = {INTERCEPT, *targets, *about.targets}
        chosen = tuple(name for name in columns if name not in left_out)
    else:
        chosen = tuple(expanded(as_names(features), about.encoding))
    # Sets: a file may have 65,536 columns.
    there, explained = frozenset(columns) - {INTERCEPT}, frozenset(targets)
    for name in (*targets, *chosen):
        if name not in there:
            require_column(columns, name)
    for name in chosen:
        if name in explained:
            raise InputError(f"Column {name!r} is both the target and a feature: remove it from the features.")
    require_distinct(targets)
    require_distinct(chosen)
    return Choice(targets, chosen)


def as_names(names: Names, what: str = "column") -> tuple[str, ...]:
    """Return a name, or several, as a tuple."""
    if isinstance(names, str):
        return (names,)
    found = tuple(names) if isinstance(names, Iterable) else (names,)
    for name in found:
        if not isinstance(name, str):
            raise InputError(f"{name!r} is not the name of a {what}, which is a text: give a name, or a list of names.")
    return found


def require_column(columns: Sequence[str], name: str) -> None:
    """Refuse a column that the summaries do not have."""
    if name not in columns or name == INTERCEPT:
        raise InputError(f"The summaries have no column {name!r}: choose among {shown(columns)}.")


def require_distinct(names: Sequence[str]) -> None:
    """Refuse a column that is named twice."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InputError(f"Column {repeated[0]!r} is named twice: name it once.")


def shown(columns: Iterable[str]) -> str:
    """Return names for a message, not more than twenty."""
    names = [repr(name) for name in columns if name != INTERCEPT]
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def expanded(features: Sequence[str], encoding: Encoding) -> list[str]:
    """Replace encoded columns by their indicators."""
    names: list[str] = []
    for name in features:
        names += encoding.expanded(name)
    return names


_NAME = re.compile(r"`([^`]+)`|([^\s`~+]+(?:\s+[^\s`~+]+)*)")


def read_formula(text: str, encoding: Encoding = NOTHING_ENCODED) -> Formula:
    """Read "y ~ a + b": names of columns joined by +; `+ 0` leaves the intercept out, `.` stands for all others.

    Names with signs in them stand in backticks. Summaries hold sums of products of their columns: what is not a column
    of theirs cannot be made of them any more. Where they were made by a formula, its terms are columns of theirs.
    """
    if encoding.design is not None:
        return _terms_of(text, encoding.design)
    left, tilde, right = text.partition("~")
    if not tilde or "~" in right:
        raise InputError(f"The formula {text!r} is not of the form 'target ~ feature + feature'.")
    target = _one_name(left, text)
    features: list[str] = []
    intercept: bool | None = None
    every = False
    for term in re.split(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)", right.replace("- 1", "+ 0").replace("-1", "+ 0")):
        stripped = term.strip()
        if stripped in ("0", "1"):
            intercept = stripped == "1"
        elif stripped == ".":
            every = True
        else:
            features.append(_one_name(term, text))
    if every and features:
        raise InputError(f"The formula {text!r} has '.' beside names: '.' stands for all other columns.")
    return Formula(target, None if every else tuple(features), intercept)


def _terms_of(text: str, design: Design) -> Formula:
    from partsketch.sources.formula.reading import term_texts

    targets, terms, intercept = term_texts(text)
    if len(targets) != 1:
        raise InputError(f"The formula {text!r} must have one target, before '~'.")
    known = {*design.feature_names, *design.target_names, *(term.text for term in design.terms)}
    for name in (*targets, *terms):
        if name not in known:
            raise InputError(
                f"The formula {text!r} asks for {name!r}: the files know the terms of {design.formula!r} only; add it "
                "to that formula and summarise again."
            )
    return Formula(targets[0], tuple(terms), intercept)


def _one_name(term: str, text: str) -> str:
    stripped = term.strip()
    found = _NAME.fullmatch(stripped)
    if found is None:
        raise InputError(f"Cannot read {stripped!r} in the formula {text!r}: write names of columns joined by +.")
    name = found.group(1) or found.group(2)
    if found.group(1) is None and "|" in name:
        raise InputError(
            f"The formula {text!r} has '|', behind which a fit to rows absorbs a column: summarise with partition_by, "
            "and ask for intercept='partition' (--intercept partition)."
        )
    if found.group(1) is None and re.search(r"[*:()^/]", name):
        raise InputError(
            f"The formula {text!r} asks for {name!r}: summaries know their columns only; summarise again with a "
            "formula that has it (formula=, --formula), or put a name with signs in backticks. A column that was "
            "encoded is called by its name alone."
        )
    return name
