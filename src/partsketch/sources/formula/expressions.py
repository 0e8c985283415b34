"""Expressions of formulas, read into a tree: which there are, and which functions they know.

A formula may come out of a model file that somebody sent. So nothing of it is ever run as Python: names are columns,
functions are those of the tables below, and everything else is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.formula.arguments import check_arguments, check_constant, rounded
from partsketch.sources.formula.dates import DATE_PARTS
from partsketch.sources.formula.dialects import instead_of

Values = NDArray[Any]

#: Functions of numbers, by the name that formulas use, alone or after `np.`.
FUNCTIONS: dict[str, Callable[..., Values]] = {
    name: getattr(np, name)
    for name in (
        *("log", "log10", "log2", "log1p", "exp", "exp2", "expm1", "sqrt", "cbrt", "square", "abs", "sign"),
        *("floor", "ceil", "round", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh"),
        *("minimum", "maximum", "clip", "where", "power", "hypot"),
    )
} | {"round": rounded}
#: Functions of all rows together: what they need is found in a pass over the data, and kept.
STATEFUL = ("center", "scale", "standardize")
#: Those that give several columns.
BASES = ("bs", "poly")

OPERATORS: dict[type[ast.AST], Callable[..., Values]] = {
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
#: Longest and deepest expression: more would be an attack, not a formula.
_LONGEST, _DEEPEST = 10_000, 100


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

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in it, in the order in which they occur."""
        found = sorted(
            (node.lineno, node.col_offset, self.columns[node.id])
            for node in walk(self.tree)
            if isinstance(node, ast.Name) and node.id in self.columns
        )
        return tuple(dict.fromkeys(name for _, _, name in found))

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it stands."""
        return isinstance(self.tree, ast.Name)

    @cached_property
    def stateful(self) -> tuple[tuple[str, ast.Call], ...]:
        """The calls whose state must be found, under the text that names their state."""
        return tuple(
            (self.unparsed(node), node)
            for node in walk(self.tree)
            if isinstance(node, ast.Call) and called_by(node) in (*STATEFUL, *BASES)
        )

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
    if _depth(tree) > _DEEPEST:
        raise InputError(f"The formula has a part that is nested more than {_DEEPEST} deep: make the column before.")
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


def _depth(tree: ast.AST) -> int:
    """Return how deep a tree is, without going down into it by calls."""
    level, depth = [tree], 0
    while level:
        level, depth = [child for node in level for child in ast.iter_child_nodes(node)], depth + 1
    return depth


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are values: not the names of functions and their modules, nor contrasts."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.Call):
            category = called_by(node) == "C"
            pending += node.args[:1] if category else node.args
            pending += [] if category else [keyword.value for keyword in node.keywords]
        elif isinstance(node, ast.Attribute):
            pending.append(node.value)
        else:
            pending += list(ast.iter_child_nodes(node))


def called_by(node: ast.AST) -> str:
    """Return the name of a function that is called, without `np.`; empty for everything else."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "np":
        return function.attr if function.attr in FUNCTIONS else f"np.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def called(expression: Expression) -> str:
    """Return the name of the function that makes the whole expression; empty if none does."""
    return called_by(expression.tree)


def _check(tree: ast.AST, expression: Expression, outermost: bool = True) -> None:
    """Refuse what cannot be evaluated."""
    told = f"{expression.unparsed(tree)!r} in the formula"
    if isinstance(tree, ast.Call):
        name = called_by(tree)
        known = name in FUNCTIONS or name in STATEFUL or name in DATE_PARTS or name == "I"
        if not known and not (name in (*BASES, "C") and outermost):
            if name in (*BASES, "C"):
                raise InputError(f"Cannot use {told}: {name}(…) gives several columns and must be a term of its own.")
            instead = instead_of(tree)
            if instead:
                raise InputError(f"There is no function for {told}: {instead}.")
            raise InputError(
                f"There is no function for {told}: use {', '.join(('C', *BASES, *STATEFUL, 'I'))}, parts of dates such "
                f"as hour(…), or {', '.join(list(FUNCTIONS)[:8])} and the like; or make the column before."
            )
        if not tree.args or any(isinstance(argument, ast.Starred) for argument in tree.args):
            raise InputError(f"Cannot read {told}: the function needs a column.")
        if name not in (*STATEFUL, *BASES, "C"):
            check_arguments(tree, name, FUNCTIONS, repr(expression.unparsed(tree)))
        # Lists are those of knots, and nothing is no number but where it stands for no bound.
        named = [keyword.value for keyword in tree.keywords if not _is_nothing(keyword.value)]
        inner = tree.args[:1] if name == "C" else [*tree.args, *named]
        if name in BASES:
            inner = [
                part for given in inner for part in (given.elts if isinstance(given, ast.List | ast.Tuple) else [given])
            ]
        if name in (*STATEFUL, *BASES) and any(called_by(node) in STATEFUL for part in inner for node in walk(part)):
            raise InputError(
                f"Cannot use {told}: what is found of all rows cannot depend on what is found of all rows: "
                "make the inner one a column before."
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
    allowed = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare)
    if not isinstance(tree, allowed):
        raise InputError(f"Cannot use {told}: write numbers, columns, signs and functions.")
    if isinstance(tree, ast.Constant):
        check_constant(tree.value)
    parts = (
        [tree.op] if isinstance(tree, ast.BinOp | ast.UnaryOp) else tree.ops if isinstance(tree, ast.Compare) else []
    )
    if any(type(operator) not in OPERATORS for operator in parts):
        raise InputError(f"Cannot use {told}: write + - * / // % ** < <= > >= == != & | or ~ (powers are **).")
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.expr):
            _check(child, expression, False)


def _is_nothing(tree: ast.AST) -> bool:
    return isinstance(tree, ast.Constant) and tree.value is None


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
