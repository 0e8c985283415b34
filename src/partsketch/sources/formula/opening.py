"""A formula in place of target and features: the source that makes its columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.cluster.remote import ChunkedColumns
from partsketch.sources.column_source import ColumnSource
from partsketch.sources.encoding import Encoding
from partsketch.sources.faults import Missing
from partsketch.sources.formula.design import CATEGORY, NUMBER, Design
from partsketch.sources.formula.given import with_given
from partsketch.sources.formula.reading import ParsedFormula, left_out_of_all, make_design, parse_formula
from partsketch.sources.formula.search import find_state
from partsketch.sources.levels import PartitionColumn
from partsketch.sources.roles import Selection, check_names, refuse_other_decimals
from partsketch.sources.storage import Rows


def open_formula(
    rows: Rows,
    formula: str,
    weights: str | None,
    labels: tuple[str | None, str | None],
    missing: Missing,
    given: Mapping[str, Sequence[Any]] | None,
) -> ColumnSource:
    """Return the source of a formula; levels and state that are not given are found in one pass."""
    refuse_other_decimals(rows, _plain_texts(formula, rows))
    parsed = parse_formula(formula, rows.columns, (weights, *labels))
    factors = with_given(parsed.factors, given)
    selection = _selection(rows, _draft(parsed), weights, labels)
    texts = _texts(rows, selection)
    factors, found, notes = find_state(rows, selection, factors, missing, texts)
    notes += parsed.notes
    notes += tuple(
        f"{factor.expression} of the formula has one level, {factor.levels[0]!r}, and gives no column."
        for factor in factors
        if factor.kind == CATEGORY and len(factor.levels) == 1 and parsed.intercept
    )
    notes += left_out_of_all(formula, rows.columns, (weights, *labels))
    return _source(rows, make_design(parsed, factors, notes), selection, texts, found, missing)


def _plain_texts(formula: str, rows: Rows) -> list[str]:
    """Return columns of text that a formula names, but for those that it calls categories."""
    categories = set(re.findall(r"\bC\(\s*`?([^`,)]+)", formula))
    texts = [column.name for column in rows.columns if column.kind == "text" and column.name not in categories]
    if re.search(r"(?<![\w.)\]])\.(?![\w.])", formula):
        return texts
    return [name for name in texts if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", formula)]


def open_design(
    rows: Rows,
    design: Design,
    weights: str | None,
    labels: tuple[str | None, str | None],
    missing: Missing,
    with_targets: bool,
) -> ColumnSource:
    """Return the source of a design that is known."""
    design = design if with_targets else design.with_targets(())
    selection = _selection(rows, design, weights, labels)
    _check_numbers(rows, design)
    texts = tuple(dict.fromkeys((*_texts(rows, selection), *design.text_columns)))
    # Rows that are predicted need not have a target, and a row without one is not left out.
    used = {*design.targets, *(number for term in design.terms for number, _ in term.factors)}
    factors = tuple(design.factors[number] for number in sorted(used))
    _, found, _ = find_state(rows, selection, factors, missing, texts)
    return _source(rows, design, selection, texts, found, missing)


def _check_numbers(rows: Rows, design: Design) -> None:
    """Refuse columns that are text or dates here, and were numbers where the design was made."""
    kinds = {column.name: column for column in rows.columns}
    for factor in design.factors:
        plain = factor.kind == NUMBER and factor.is_name
        plain = plain or (factor.kind == CATEGORY and factor.level_type != "text" and factor.inner.is_column)
        column = kinds.get(factor.inner.names[0]) if plain else None
        # Categories may be of numbers, which only their rows tell.
        if column is not None and column.kind != "number" and column.type_name != "categorical":
            clue = rows.explain_text(column.name) if column.kind == "text" else ""
            told = f"'{column.name}' ({column.type_name})" + (f", {clue}," if clue else "")
            raise InputError(f"Column {told} held numbers where the formula was fitted: make numbers of it.")


def _draft(parsed: ParsedFormula) -> Design:
    """Return a design that knows its columns of the data only."""
    from partsketch.sources.formula.design import Term

    number = {factor.expression: index for index, factor in enumerate(parsed.factors)}
    terms = tuple(
        Term(term.text, tuple((number[text], False) for text in term.factors), 1.0, ()) for term in parsed.terms
    )
    return Design(parsed.text, parsed.intercept, parsed.factors, terms, parsed.targets)


def _selection(rows: Rows, design: Design, weights: str | None, labels: tuple[str | None, str | None]) -> Selection:
    names = tuple(column.name for column in rows.columns)
    check_names(names, (*dict.fromkeys((*design.feature_columns, *design.target_columns)),))
    for role, name in (("weights", weights), ("", labels[0]), ("", labels[1])):
        if name is not None:
            check_names(names, (name,), role)
    kinds = {column.name: column for column in rows.columns}
    if weights is not None and kinds[weights].kind != "number":
        raise InputError(f"Weight column '{weights}' ({kinds[weights].type_name}) is not numeric: name another one.")
    if rows.row_count == 0:
        raise InputError(f"The data ({rows.description}) has no rows.")
    return Selection(design.feature_columns, design.target_columns, weights, labels[0], clusters=labels[1])


def _texts(rows: Rows, selection: Selection) -> tuple[str, ...]:
    """Return the columns that are delivered as text."""
    texts = {column.name for column in rows.columns if column.kind == "text"}
    return tuple(name for name in selection.used if name in texts or name in selection.only_labels)


def _source(
    rows: Rows,
    design: Design,
    selection: Selection,
    texts: tuple[str, ...],
    labels: tuple[PartitionColumn, ...],
    missing: Missing,
) -> ColumnSource:
    make = ChunkedColumns if isinstance(rows, ChunkedRows) else ColumnSource
    encoding = Encoding((), drop_first=design.intercept, design=design)
    return make(rows.choose(selection.used, texts), selection, encoding, labels, missing)
