"""Expressions of formulas: read into a tree, and evaluated on the columns of a block by functions that are listed here.

A formula may come out of a model file that somebody sent. So nothing of it is ever run as Python: names are columns,
functions are those of the tables below, and everything else is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.formula.dates import DATE_PARTS, Dates

Values = NDArray[Any]
IntArray = NDArray[np.int64]

#: Functions of numbers, by the name that formulas use, alone or after `np.`.
FUNCTIONS: dict[str, Callable[..., Values]] = {
    name: getattr(np, name)
    for name in (
        *("log", "log10", "log2", "log1p", "exp", "exp2", "expm1", "sqrt", "cbrt", "square", "abs", "sign"),
        *("floor", "ceil", "round", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
        *("minimum", "maximum", "clip", "where", "power", "hypot"),
    )
}
#: Functions of all rows together: what they need is found in a pass over the data, and kept.
STATEFUL = ("center", "scale", "standardize")
#: Those that give several columns.
BASES = ("bs", "poly")

_OPERATORS: dict[type[ast.AST], Callable[..., Values]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Invert: np.logical_not,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
#: Deepest and longest expression: more would be an attack, not a formula.
_LONGEST = 10_000


@dataclass(frozen=True, eq=False)
class Texts:
    """Values of a text column: the index of each row's text in a list, -1 where it is missing."""

    codes: IntArray
    texts: list[str]

    def equal(self, text: Any) -> Values:
        """Return where the value is this text."""
        if not isinstance(text, str):
            raise InputError(
                f"A text column is compared with {text!r} in the formula: compare it with a text in quotes."
            )
        return self.codes == (self.texts.index(text) if text in self.texts else -2)


@dataclass(frozen=True)
class Expression:
    """An expression of a formula.

    Attributes
    ----------
    text
        As the formula has it.
    tree
        What it says.
    columns
        The names of columns by the identifiers that stand for them in the tree.
    """

    text: str
    tree: ast.expr
    columns: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in it, in the order in which they occur."""
        found = sorted(
            (node.lineno, node.col_offset, self.columns[node.id])
            for node in walk(self.tree)
            if isinstance(node, ast.Name) and node.id in self.columns
        )
        return tuple(dict.fromkeys(name for _, _, name in found))

    def of(self, tree: ast.expr) -> Expression:
        """Return a part of it as an expression of its own."""
        return Expression(self.unparsed(tree), tree, self.columns)

    def unparsed(self, tree: ast.AST) -> str:
        """Return a part of it as text, names with blanks in backticks again."""
        text = ast.unparse(tree)
        for identifier, name in self.columns.items():
            if identifier != name:
                text = re.sub(rf"\b{identifier}\b", lambda _, name=name: f"`{name}`", text)  # type: ignore[misc]
        return text


@cache
def read_expression(text: str, is_name: bool = False) -> Expression:
    """Read an expression, or say what in it cannot be used.

    Parameters
    ----------
    is_name
        Whether it is the name of a column, whatever signs are in it.
    """
    if is_name:
        return Expression(text, ast.Name("column_0", ast.Load(), lineno=1, col_offset=0), {"column_0": text})
    if len(text) > _LONGEST:
        raise InputError(f"The formula has a part of {len(text)} characters: use at most {_LONGEST}.")
    columns: dict[str, str] = {}

    def identifier(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return match.group(0)
        columns[f"column_in_backticks_{len(columns)}"] = match.group(1)
        return f"column_in_backticks_{len(columns) - 1}"

    # Texts in quotes may hold backticks of their own.
    plain = re.sub(r"""`([^`]+)`|"[^"]*"|'[^']*'""", identifier, text)
    try:
        tree = ast.parse(plain.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InputError(
            f"Cannot read {text!r} in the formula: write an expression of columns and functions."
        ) from error
    tree = _Quoted(columns).visit(tree)
    expression = Expression(text, tree, columns)
    for node in walk(tree):
        if isinstance(node, ast.Name):
            columns.setdefault(node.id, node.id)
    _check(tree, expression)
    return expression


class _Quoted(ast.NodeTransformer):
    """Makes the name of a column of `Q('name')`, as patsy writes names with blanks."""

    def __init__(self, columns: dict[str, str]) -> None:
        self._columns = columns

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        named = len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and not node.keywords
        if not (isinstance(node.func, ast.Name) and node.func.id == "Q" and named):
            return node
        identifier = f"column_in_backticks_{len(self._columns)}"
        self._columns[identifier] = str(node.args[0].value)  # type: ignore[attr-defined]
        return ast.copy_location(ast.Name(identifier, ast.Load()), node)


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are values: not the names of functions and their modules, nor contrasts."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.Call):
            category = _called(node) == "C"
            pending += node.args[:1] if category else node.args
            pending += [] if category else [keyword.value for keyword in node.keywords]
        elif isinstance(node, ast.Attribute):
            pending.append(node.value)
        else:
            pending += list(ast.iter_child_nodes(node))


def _called(node: ast.AST) -> str:
    """Return the name of a function that is called, without `np.`; empty for everything else."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "np":
        return function.attr if function.attr in FUNCTIONS else f"np.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def called(expression: Expression) -> str:
    """Return the name of the function that makes the whole expression; empty if none does."""
    return _called(expression.tree)


def _check(tree: ast.AST, expression: Expression, outermost: bool = True) -> None:
    """Refuse what cannot be evaluated."""
    told = f"{expression.unparsed(tree)!r} in the formula"
    if isinstance(tree, ast.Call):
        name = _called(tree)
        known = name in FUNCTIONS or name in STATEFUL or name in DATE_PARTS or name == "I"
        if not known and not (name in (*BASES, "C") and outermost):
            if name in (*BASES, "C"):
                raise InputError(f"Cannot use {told}: {name}(…) gives several columns and must be a term of its own.")
            raise InputError(
                f"There is no function for {told}: use {', '.join(('C', *BASES, *STATEFUL, 'I'))}, parts of dates such "
                f"as hour(…), or {', '.join(list(FUNCTIONS)[:8])} and the like; or make the column before."
            )
        if not tree.args or any(isinstance(argument, ast.Starred) for argument in tree.args):
            raise InputError(f"Cannot read {told}: the function needs a column.")
        inner = tree.args[:1] if name == "C" else [*tree.args, *(keyword.value for keyword in tree.keywords)]
        if name in (*STATEFUL, *BASES) and any(_called(node) in STATEFUL for part in inner for node in walk(part)):
            raise InputError(
                f"Cannot use {told}: what is found of all rows cannot depend on what is found of all rows."
            )
        for part in inner:
            _check(part, expression, False)
        return
    if isinstance(tree, ast.Attribute):
        if not (isinstance(tree.value, ast.Attribute) and tree.value.attr == "dt" and tree.attr in DATE_PARTS):
            raise InputError(
                f"Cannot use {told}: of columns there are parts of dates, such as x.dt.hour, and no others."
            )
        return
    allowed = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.List, ast.Tuple)
    if not isinstance(tree, allowed):
        raise InputError(f"Cannot use {told}: write numbers, columns, signs and functions.")
    parts = (
        [tree.op] if isinstance(tree, ast.BinOp | ast.UnaryOp) else tree.ops if isinstance(tree, ast.Compare) else []
    )
    if any(type(operator) not in _OPERATORS for operator in parts):
        raise InputError(f"Cannot use {told}: write + - * / // % ** < <= > >= == != & | or ~.")
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr):
            _check(child, expression, False)


def stateful_calls(expression: Expression) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls whose state must be found, under the text that names their state."""
    for node in walk(expression.tree):
        if isinstance(node, ast.Call) and _called(node) in (*STATEFUL, *BASES):
            yield expression.unparsed(node), node


def constants(call: ast.Call, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a call after the first, by name; they must be constants."""
    if len(call.args) - 1 > len(names):
        raise InputError(f"{ast.unparse(call)!r} in the formula has too many arguments: the others are {names}.")
    given = dict(zip(names, call.args[1:], strict=False))
    for keyword in call.keywords:
        if keyword.arg not in names or keyword.arg in given:
            raise InputError(
                f"{ast.unparse(call)!r} in the formula has no argument {keyword.arg!r}: there are {names}."
            )
        given[keyword.arg] = keyword.value
    try:
        return {name: ast.literal_eval(value) for name, value in given.items()}
    except (ValueError, TypeError, SyntaxError) as error:
        raise InputError(f"Write numbers, not columns, after the first argument of {ast.unparse(call)!r}.") from error


class Evaluator:
    """Evaluates expressions on one block.

    Parameters
    ----------
    column
        Gives the values of a column by its name: numbers, `Texts` or `Dates`.
    state
        What was found of all rows, by the text of the call.
    """

    def __init__(self, column: Callable[[str], Values | Texts | Dates], state: Mapping[str, tuple[float, ...]]) -> None:
        self._column, self._state = column, state

    def numbers(self, expression: Expression) -> Values:
        """Return an expression as numbers; truth is 1."""
        values = self.value(expression.tree, expression)
        if isinstance(values, Texts | Dates) or isinstance(values, str):
            kind = "dates" if isinstance(values, Dates) else "text"
            remedy = "days(…), hour(…) or C(month(…))" if kind == "dates" else "C(…), or compare it with a text"
            raise InputError(f"{expression.text!r} in the formula is {kind}, not numbers: write {remedy}.")
        return np.asarray(values, dtype=np.float64)

    def value(self, tree: ast.AST, expression: Expression) -> Any:
        """Return the value of a part of an expression."""
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name):
            return self._column(expression.columns[tree.id])
        if isinstance(tree, ast.Attribute):
            assert isinstance(tree.value, ast.Attribute)
            return self._part(tree.attr, self.value(tree.value.value, expression), expression)
        if isinstance(tree, ast.Call):
            return self._call(tree, expression)
        if isinstance(tree, ast.Compare):
            sides = [self.value(side, expression) for side in (tree.left, *tree.comparators)]
            pairs = zip(sides[:-1], tree.ops, sides[1:], strict=True)
            return np.logical_and.reduce([self._compared(left, operator, right) for left, operator, right in pairs])
        operands = (tree.left, tree.right) if isinstance(tree, ast.BinOp) else (tree.operand,)  # type: ignore[attr-defined]
        found = [self.value(operand, expression) for operand in operands]
        return _OPERATORS[type(tree.op)](*[_number(value, expression) for value in found])  # type: ignore[attr-defined]

    def _compared(self, left: Any, operator: ast.cmpop, right: Any) -> Values:
        if isinstance(right, Texts):
            left, right = right, left
        if isinstance(left, Texts):
            if not isinstance(operator, ast.Eq | ast.NotEq):
                raise InputError("Text columns can be compared by == and != in a formula, not by < or >.")
            equal = left.equal(right)
            return equal if isinstance(operator, ast.Eq) else ~equal
        return _OPERATORS[type(operator)](left, right)

    def _call(self, call: ast.Call, expression: Expression) -> Any:
        name = _called(call)
        first = self.value(call.args[0], expression)
        if name == "I":
            return first
        if name in DATE_PARTS:
            return self._part(name, first, expression)
        first = _number(first, expression)
        if name in STATEFUL:
            centre, spread = self._state[expression.unparsed(call)]
            return (np.asarray(first, dtype=np.float64) - centre) / spread
        others = [_number(self.value(argument, expression), expression) for argument in call.args[1:]]
        named = {str(keyword.arg): self.value(keyword.value, expression) for keyword in call.keywords}
        try:
            return FUNCTIONS[name](first, *others, **named)
        except TypeError as error:
            raise InputError(
                f"Cannot evaluate {expression.text!r} in the formula: {name} takes other arguments."
            ) from error

    def _part(self, name: str, values: Any, expression: Expression) -> Values:
        if not isinstance(values, Dates):
            raise InputError(
                f"{expression.text!r} in the formula takes {name} of what is neither dates nor timestamps."
            )
        return values.part(name)


def _number(value: Any, expression: Expression) -> Any:
    if isinstance(value, Texts | Dates | str):
        kind = "dates" if isinstance(value, Dates) else "text"
        raise InputError(f"{expression.text!r} in the formula counts with {kind}: it takes numbers.")
    # Whole numbers would overflow without a word, and truth cannot be subtracted.
    return np.asarray(value, dtype=np.float64)
