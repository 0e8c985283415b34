"""From the text of a formula to a design: formulaic says what the terms are, and what their columns are called."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from partsketch.common.errors import InputError
from partsketch.sources.formula.contrasts import load_formulaic, with_contrasts
from partsketch.sources.formula.design import BASIS, CATEGORY, NUMBER, Design, Factor, Term
from partsketch.sources.formula.dialects import unread
from partsketch.sources.formula.expressions import BASES, called, read_expression
from partsketch.sources.formula.operators import bounded_parser
from partsketch.sources.roles import check_names, left_out_note
from partsketch.sources.storage import DATES, Column, in_words, parts_of_dates

#: Formulas that are kept after they were read.
_KEPT = 32


@dataclass(frozen=True)
class ParsedTerm:
    """A term as it is written: factors by their text, and a constant."""

    text: str
    factors: tuple[str, ...]
    scale: float


@dataclass(frozen=True)
class ParsedFormula:
    """A formula whose factors are known and their levels are not; notes say what may not be what was meant."""

    text: str
    intercept: bool
    factors: tuple[Factor, ...]
    terms: tuple[ParsedTerm, ...]
    targets: tuple[int, ...]
    notes: tuple[str, ...]


def parse_formula(text: str, columns: Sequence[Column], used: Sequence[str | None] = ()) -> ParsedFormula:
    """Read a formula for data with these columns; `used` are columns that "." does not stand for."""
    return _parsed(text, tuple(columns), tuple(used))


# A formula that is fitted again, to other rows or with other errors, need not be read again: for formulaic that is as
# much work as a fit of a hundred thousand rows.
@lru_cache(_KEPT)
def _parsed(text: str, columns: tuple[Column, ...], used: tuple[str | None, ...]) -> ParsedFormula:
    powers: list[str] = []
    left, right = _sides(text, columns, used, powers)
    names: dict[tuple[str, bool], None] = {}
    terms = []
    intercept = False
    for term in right:
        literals = [factor for factor in term.factors if factor.eval_method.value == "literal"]
        others = [factor for factor in term.factors if factor.eval_method.value != "literal"]
        scale = 1.0
        for factor in literals:
            scale *= float(ast.literal_eval(factor.expr))
        if not others:
            intercept = intercept or scale != 0
            continue
        names.update(dict.fromkeys(_key(factor) for factor in others))
        terms.append(ParsedTerm(_term_text(others), tuple(factor.expr for factor in others), scale))
    targets = [_key(factor) for term in left for factor in _single(term, text)]
    names.update(dict.fromkeys(targets))
    kinds = {column.name: column for column in columns}
    factors = tuple(_factor(*key, kinds) for key in names)
    by_text = {factor.expression: number for number, factor in enumerate(factors)}
    numbers = tuple(by_text[key[0]] for key in targets)
    for number in numbers:
        if factors[number].kind != NUMBER:
            raise InputError(f"The target {factors[number].expression!r} of the formula must be one column of numbers.")
    if not terms and not intercept:
        raise InputError(f"The formula {text!r} has no features and no intercept: add some after '~'.")
    return ParsedFormula(text, intercept, factors, tuple(terms), numbers, tuple(map(_of_one_term, powers)))


def _of_one_term(power: str) -> str:
    """Say what R, and formulaic, make of x**2; fixest makes the square of it."""
    term = power.rpartition("**")[0]
    return f"{power} in the formula is {term} itself, for products have a term once: write I({power}) for the power."


def _sides(
    text: str, columns: Sequence[Column], used: Sequence[str | None], powers: list[str]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the terms on the left and on the right, and add powers of one term to `powers`."""
    formulaic = load_formulaic()
    usable = [
        column.name for column in columns if column.kind != "other" and column.by_default and column.name not in used
    ]
    try:
        read = bounded_parser(formulaic, powers).get_terms(text, context={"__formulaic_variables_available__": usable})
        formula = formulaic.Formula(read)
    except Exception as error:  # formulaic raises errors of many kinds, those of Python's parser among them.
        reason = re.sub(r"\x1b?\[[0-9;]*m|[⧛⧚\x1b]", "", str(error)).strip().splitlines() or ["it is not a formula"]
        told = unread(text) or reason[0].rstrip(".")
        raise InputError(f"Cannot read the formula {text!r}: {told}{_quoting(text, columns)}.") from error
    left = getattr(formula, "lhs", None) if hasattr(formula, "rhs") else ()
    right = formula.rhs if hasattr(formula, "rhs") else formula
    if (
        (isinstance(left, tuple) and left)
        or isinstance(right, tuple)
        or not _is_plain(right)
        or not _is_plain(left or ())
    ):
        raise InputError(
            f"The formula {text!r} has several parts separated by '|': write 'target ~ features'. A fit absorbs one "
            "column behind '|'; nothing else does."
        )
    return list(left or ()), list(right)


def _quoting(text: str, columns: Sequence[Column]) -> str:
    """Say how a column whose name has blanks or signs is written, if the text has such a name outside of quotes."""
    plain = re.sub(r"""`[^`]*`|"[^"]*"|'[^']*'""", " ", text)
    for column in sorted(columns, key=lambda column: -len(column.name)):
        if not column.name.isidentifier() and re.search(rf"(?<!\w){re.escape(column.name)}(?!\w)", plain):
            return f"; write the column as `{column.name}`, in backticks"
    return ""


def left_out_of_all(text: str, columns: Sequence[Column], used: Sequence[str | None]) -> tuple[str, ...]:
    """Return a note for every column that "." in a formula does not stand for, such as those of dates."""
    plain = re.sub(r"""`[^`]*`|"[^"]*"|'[^']*'""", " ", text)
    if not re.search(r"(?<![\w.)\]])\.(?![\w.])", plain):
        return ()
    named = set(re.findall(r"\w+", plain))
    left_out = [column for column in columns if not column.by_default and column.name not in (*used, *named)]
    return tuple(map(left_out_note, left_out))


def _is_plain(side: Any) -> bool:
    return all(hasattr(term, "factors") for term in side)


def _key(factor: Any) -> tuple[str, bool]:
    # formulaic takes x.hour for a name, as it may be one; parts of dates are written so too.
    return factor.expr, factor.eval_method.value == "lookup" and ".dt." not in factor.expr


def _single(term: Any, text: str) -> Sequence[Any]:
    if len(term.factors) != 1 or term.factors[0].eval_method.value == "literal":
        raise InputError(f"The target {str(term)!r} of the formula {text!r} must be one column: use I(…) for products.")
    return list(term.factors)


def term_texts(text: str) -> tuple[list[str], list[str], bool]:
    """Return the targets and the terms of a formula by their text, and whether it has an intercept."""
    left, right = _sides(text, (), (), [])
    terms = [[factor for factor in term.factors if factor.eval_method.value != "literal"] for term in right]
    return [str(term) for term in left], [_term_text(term) for term in terms if term], any(not term for term in terms)


def _term_text(factors: Sequence[Any]) -> str:
    return ":".join(factor.expr for factor in factors)


def _factor(text: str, is_name: bool, columns: Mapping[str, Column]) -> Factor:
    """Return a factor of the kind that the types of its columns make it."""
    expression = read_expression(text, is_name)
    check_names(tuple(columns), expression.names)
    function = called(expression)
    if function in BASES:
        return Factor(text, is_name, BASIS)
    factor = Factor(text, is_name, CATEGORY if function == "C" else NUMBER)
    inner = factor.inner
    if not inner.names:
        raise InputError(f"{text!r} in the formula names no column.")
    single = columns[inner.names[0]] if isinstance(inner.tree, ast.Name) else None
    if is_name and single is not None and single.kind != "number":
        if single.kind == "other":
            raise InputError(_refused_type(single))
        return replace(factor, kind=CATEGORY)
    if factor.kind != CATEGORY:
        return factor
    if single is None:
        if any(columns[name].kind == "text" for name in inner.names) and not _compares(inner.tree):
            raise InputError(f"{text!r} in the formula makes categories of text: write C(column).")
        return replace(factor, level_type="truth" if _compares(inner.tree) else "integer")
    if single.kind == "other":
        raise InputError(_refused_type(single))
    if single.kind == "text":
        return factor
    if single.type_name == "bool":
        return replace(factor, level_type="truth")
    return replace(factor, level_type="integer" if "int" in single.type_name else "number")


def _compares(tree: ast.AST) -> bool:
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "I":
        return _compares(tree.args[0])
    if isinstance(tree, ast.BinOp):
        return isinstance(tree.op, ast.BitAnd | ast.BitOr)
    return isinstance(tree, ast.Compare)


def _refused_type(column: Column) -> str:
    if column.type_name in DATES and parts_of_dates(column):
        what = f"Column '{column.name}' holds {in_words(column)}"
        return f"{what}: say what to take of them, such as {parts_of_dates(column)}."
    return f"Column '{column.name}' is of type {column.type_name}, which formulas cannot use: leave it out."


@lru_cache(_KEPT)
def make_design(parsed: ParsedFormula, factors: tuple[Factor, ...], notes: tuple[str, ...] = ()) -> Design:
    """Return the design of a formula whose factors have their levels and state."""
    import pandas as pd

    formulaic = load_formulaic()
    coded = [with_contrasts(factor) for factor in factors]
    context = {factor.expression: _stand_in(factor, contrasts) for factor, contrasts in coded}
    factors = tuple(factor for factor, _ in coded)
    kinds = formulaic.parser.types
    ones = [kinds.Term([kinds.Factor("1", eval_method="literal")])] if parsed.intercept else []
    terms = [kinds.Term([kinds.Factor(text, eval_method="lookup") for text in term.factors]) for term in parsed.terms]
    formula = formulaic.formula.SimpleFormula(ones + terms, _ordering="none")
    matrix = formula.get_model_matrix(pd.DataFrame(index=range(1)), context=context, na_action="ignore")
    by_text = {factor.expression: number for number, factor in enumerate(factors)}
    made: list[Term] = []
    for written, structure in zip(parsed.terms, matrix.model_spec.structure[len(ones) :], strict=True):
        names = list(structure.columns)
        for scoped in structure.scoped_terms:
            parts = tuple((by_text[part.factor.expr], bool(part.reduced)) for part in scoped.factors)
            width = 1
            for number, reduced in parts:
                width *= factors[number].width(reduced)
            made.append(Term(written.text, parts, written.scale, tuple(str(name) for name in names[:width])))
            names = names[width:]
        assert not names, f"{written.text} has columns that belong to no part of it"
    design = Design(parsed.text, parsed.intercept, factors, tuple(made), parsed.targets, notes)
    design.check()
    return design


def _stand_in(factor: Factor, contrasts: Any) -> Any:
    """Return one row of a factor, from which formulaic tells which columns there are and what they are called."""
    import pandas as pd
    from formulaic.materializers.types import FactorValues
    from formulaic.transforms.contrasts import C

    if factor.kind == CATEGORY:
        levels = list(factor.levels)
        return C(pd.Series(pd.Categorical(levels[:1], categories=levels)), contrasts)
    if factor.kind == BASIS:
        basis = factor.basis
        columns = {field: pd.Series([1.0]) for field in basis.fields}
        spans = basis.drops is not None
        return FactorValues(
            columns,
            kind="numerical",
            spans_intercept=spans,
            drop_field=basis.drops,
            format="{name}[{field}]",
            encoded=False,
        )
    return pd.Series([1.0])
