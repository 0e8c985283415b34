"""The values of expressions on the columns of a block."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.formula.dates import DATE_PARTS, Dates
from partsketch.sources.formula.expressions import (
    FUNCTIONS,
    OPERATORS,
    STATEFUL,
    Expression,
    Values,
    called_by,
)

IntArray = NDArray[np.int64]

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
#: The same comparison with its sides exchanged.
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


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
        return np.equal(self.codes, self.texts.index(text) if text in self.texts else -2)


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
        if isinstance(values, Texts | Dates | str):
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
        return OPERATORS[type(tree.op)](*[_number(value, expression) for value in found])  # type: ignore[attr-defined]

    def _compared(self, left: Any, operator: ast.cmpop, right: Any) -> Values:
        if isinstance(right, Texts):
            left, right = right, left
        if isinstance(left, Texts):
            if not isinstance(operator, ast.Eq | ast.NotEq):
                raise InputError("Text columns can be compared by == and != in a formula, not by < or >.")
            equal = left.equal(right)
            return equal if isinstance(operator, ast.Eq) else ~equal
        sign = _SIGNS[type(operator)]
        if isinstance(left, Dates):
            return left.compared(sign, right)
        if isinstance(right, Dates):
            return right.compared(_TURNED.get(sign, sign), left)
        if isinstance(left, str) or isinstance(right, str):
            text = left if isinstance(left, str) else right
            raise InputError(f"Numbers are compared with the text {text!r} in the formula: compare them with a number.")
        return OPERATORS[type(operator)](left, right)

    def _call(self, call: ast.Call, expression: Expression) -> Any:
        name = called_by(call)
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
