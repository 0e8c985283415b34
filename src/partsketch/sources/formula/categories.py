"""Categories of a formula: the levels that rows have, and their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import coded
from partsketch.sources.base import IntArray
from partsketch.sources.faults import Fault, level_fault, missing_fault
from partsketch.sources.formula.design import Factor, level_values
from partsketch.sources.formula.evaluation import Evaluator
from partsketch.sources.formula.expressions import Values

if TYPE_CHECKING:
    from partsketch.sources.formula.assembly import RawColumns

#: Range of whole numbers, beyond which levels are looked up by bisection.
_WIDEST_TABLE = 1 << 16
#: From here on doubles round whole numbers.
_ROUNDED = 2.0**53


class Coder:
    """Turns the values of a category into the numbers of their levels."""

    def __init__(self, factor: Factor) -> None:
        self.factor = factor
        self.code_of = {level: code for code, level in enumerate(factor.levels)}
        values = level_values(factor)
        kind: type[np.generic] = np.int64 if factor.level_type in ("integer", "truth") else np.float64
        if kind is np.int64 and max(values) > np.iinfo(np.int64).max:
            kind = np.uint64
        self.levels = np.array(values, dtype=kind)
        self.order = np.argsort(self.levels, kind="stable")
        self.sorted = self.levels[self.order]
        self.table: IntArray | None = None
        if kind is np.int64 and len(self.levels) and int(self.sorted[-1]) - int(self.sorted[0]) < _WIDEST_TABLE:
            self.table = np.full(int(self.sorted[-1]) - int(self.sorted[0]) + 1, -1, dtype=np.int64)
            self.table[self.sorted - self.sorted[0]] = self.order

    def codes(self, columns: RawColumns, evaluator: Evaluator, faults: list[Fault]) -> IntArray:
        """Return the number of each row's level; faults where there is none."""
        inner = self.factor.inner
        if self.factor.level_type == "text":
            (name,) = inner.names
            codes, absent, unknown, texts = coded(columns.raw(name), self.code_of)
            faults.extend([missing_fault(name, absent)] if absent.any() else [])
            faults.extend([] if unknown is None else [level_fault(name, unknown, texts)])
            return codes
        values = category_values(self.factor, columns, evaluator)
        codes, known = self._looked_up(values)
        # What is missing has been noted where the column was read, and is not unknown as well.
        unknown = ~known & ~np.isnan(values) if values.dtype.kind == "f" else ~known
        if unknown.any():
            texts = [level_text(value, self.factor.level_type) for value in values[unknown].tolist()]
            faults.append(level_fault(self.factor.expression, unknown, texts))
        return np.where(known, codes, -1)

    def _looked_up(self, values: Values) -> tuple[IntArray, NDArray[np.bool_]]:
        if self.table is not None and values.dtype.kind in "iu":
            first, last = self.sorted[0], self.sorted[-1]
            inside = (values >= first) & (values <= last)
            codes = self.table[np.where(inside, values.astype(np.int64, copy=False) - first, 0)]
            return codes, inside & (codes >= 0)
        if values.dtype.kind in "iu" and self.sorted.dtype.kind in "iu":
            # Two integer types would be compared as doubles, which confuses large numbers.
            values = values.astype(self.sorted.dtype, copy=False)
        place = np.minimum(np.searchsorted(self.sorted, values), len(self.sorted) - 1)
        return self.order[place], self.sorted[place] == values


def category_values(factor: Factor, columns: RawColumns, evaluator: Evaluator) -> Values:
    """Return the numbers whose levels are counted: whole ones as such, for doubles confuse long identifiers."""
    inner = factor.inner
    if inner.text in inner.names or (len(inner.names) == 1 and inner.text == f"`{inner.names[0]}`"):
        values = columns.plain(inner.names[0], True)
        if values.dtype.kind in "iub" and factor.level_type != "number":
            return values.astype(np.int64) if values.dtype.kind == "b" else values
    numbers = evaluator.numbers(inner)
    if (np.isfinite(numbers) & (np.abs(numbers) >= _ROUNDED)).any():
        # Numbers of text files are read as doubles: neighbours among long identifiers would be one level, or another
        # one where a single row makes the column look different.
        raise InputError(
            f"{factor.expression!r} in the formula has whole numbers beyond 2**53, which doubles do not tell apart: "
            "write them as text (such as 'id 9007199254740993'), or number the levels anew."
        )
    if factor.level_type == "number":
        return numbers
    whole = np.isfinite(numbers) & (np.abs(numbers) < 2**63)
    rounded = np.where(whole, numbers, 0).astype(np.int64)
    return rounded if (rounded == numbers).all() else numbers


def level_text(value: Any, level_type: str) -> str:
    """Return a level as text."""
    if level_type == "truth":
        return str(bool(value))
    return str(int(value)) if level_type == "integer" and float(value).is_integer() else repr(value)
