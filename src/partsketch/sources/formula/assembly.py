"""Columns of a model from a raw block, by a design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.sources.arrow_values import as_numbers, as_texts
from partsketch.sources.base import FloatArray, IntArray
from partsketch.sources.blocks import Indicators, Placed
from partsketch.sources.faults import Fault, missing_fault, number_faults
from partsketch.sources.formula.categories import Coder
from partsketch.sources.formula.dates import Dates, is_dates
from partsketch.sources.formula.design import BASIS, CATEGORY, Design, Factor, Term
from partsketch.sources.formula.evaluation import Evaluator, Texts
from partsketch.sources.formula.expressions import Values
from partsketch.sources.storage import column_kind

BlockColumn = NDArray[np.generic] | Indicators | Placed


class RawColumns:
    """The raw columns of one block, converted when they are asked for, each once."""

    def __init__(self, values: Mapping[str, Any], faults: list[Fault]) -> None:
        self._values, self._faults = values, faults
        self._converted: dict[str, Values | Texts | Dates] = {}

    def raw(self, name: str) -> Any:
        """Return a column as it came."""
        return self._values[name]

    def plain(self, name: str, check: bool) -> NDArray[np.generic]:
        """Return a column of numbers in its own type, looking for what is not finite only if asked."""
        values, null = as_numbers(self._values[name])
        if check or null is not None:
            self._faults.extend(number_faults(name, values, null))
        return values

    def converted(self, name: str) -> Values | Texts | Dates:
        """Return a column for an expression, with what is wrong with it noted."""
        if name not in self._converted:
            self._converted[name] = self._convert(name)
        return self._converted[name]

    def _convert(self, name: str) -> Values | Texts | Dates:
        column = self._values[name]
        if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
            return self._numbers(name)
        import pyarrow as pa

        if isinstance(column, np.ndarray):
            column = pa.array(column.astype(str) if column.dtype.kind == "S" else column)
        if is_dates(column.type):
            absent = column.is_null().to_numpy(zero_copy_only=False)
            self._faults.extend([missing_fault(name, absent)] if absent.any() else [])
            return Dates(column)
        if column_kind(column.type) == "text":
            codes, texts = as_texts(column)
            self._faults.extend([missing_fault(name, codes < 0)] if (codes < 0).any() else [])
            return Texts(codes, texts)
        return self._numbers(name)

    def _numbers(self, name: str) -> Values:
        values, null = as_numbers(self._values[name])
        self._faults.extend(number_faults(name, values, null))
        # What is missing is no number, whatever an expression would make of what happens to lie there.
        return np.asarray(values, dtype=np.float64) if null is None else np.where(null, np.nan, values)


class Assembler:
    """Makes the columns of a design; made once per reading, for levels are numbered once."""

    def __init__(self, design: Design, leaves_finiteness: bool) -> None:
        self._design, self._leaves_finiteness = design, leaves_finiteness
        self._coders = {
            number: Coder(factor) for number, factor in enumerate(design.factors) if factor.kind == CATEGORY
        }

    def columns(self, values: Mapping[str, Any], length: int, faults: list[Fault]) -> list[BlockColumn]:
        """Return the features and targets of a block, and note what is wrong with it."""
        work = _BlockWork(self._design, self._coders, RawColumns(values, faults), length, faults)
        work.check_finite = not self._leaves_finiteness
        features = [column for term in self._design.terms for column in work.term(term)]
        return features + [work.numbers(number) for number in self._design.targets]


class _BlockWork:
    """What is made of one block: every factor once."""

    check_finite = True

    def __init__(
        self, design: Design, coders: Mapping[int, Coder], columns: RawColumns, length: int, faults: list[Fault]
    ) -> None:
        self._design, self._coders, self._columns, self._length, self._faults = design, coders, columns, length, faults
        state = {text: numbers for factor in design.factors for text, numbers in factor.state}
        self._evaluator = Evaluator(columns.converted, state)
        self._numbers: dict[int, NDArray[np.generic]] = {}
        self._codes: dict[int, IntArray] = {}
        self._bases: dict[int, FloatArray] = {}

    def numbers(self, number: int) -> NDArray[np.generic]:
        """Return a factor of one column."""
        if number not in self._numbers:
            factor = self._design.factors[number]
            if factor.is_name:
                self._numbers[number] = self._columns.plain(factor.expression, self.check_finite)
            else:
                self._numbers[number] = self._made(factor, self._evaluator.numbers(factor.whole))
        return self._numbers[number]

    def _made(self, factor: Factor, values: Values) -> Values:
        """Return what an expression gives, one number per row, with what is not a number noted."""
        values = np.broadcast_to(values, (*values.shape[:-1], self._length)) if values.ndim < 2 else values
        if self.check_finite:
            for row in values if values.ndim == 2 else (values,):
                self._faults.extend(made_faults(factor, row, self._columns))
        return values

    def _basis(self, number: int) -> FloatArray:
        if number not in self._bases:
            factor = self._design.factors[number]
            x = np.broadcast_to(self._evaluator.numbers(factor.inner), (self._length,))
            outside = factor.basis.refused(x, factor.basis_state)
            if outside is not None:
                self._faults.append(_outside(factor, outside, x))
            self._bases[number] = self._made(factor, factor.basis.columns(x, factor.basis_state))
        return self._bases[number]

    def _coded(self, number: int) -> IntArray:
        if number not in self._codes:
            self._codes[number] = self._coders[number].codes(self._columns, self._evaluator, self._faults)
        return self._codes[number]

    def term(self, term: Term) -> list[BlockColumn]:
        """Return the columns of a term."""
        factors = self._design.factors
        widths = [factors[number].width(reduced) for number, reduced in term.factors]
        steps = np.cumprod([1, *widths])[:-1]
        where: IntArray | None = None
        dense: list[tuple[int, Values]] = [(0, np.asarray(term.scale))] if term.scale != 1 else []
        bare: NDArray[np.generic] | None = None
        for (number, reduced), step in zip(term.factors, steps.tolist(), strict=True):
            factor = factors[number]
            if factor.kind == CATEGORY and not (reduced and factor.coding):
                position = _positions(self._coded(number), factor, reduced) * step
                where = position if where is None else np.where((where < 0) | (position < 0), -1, where + position)
                continue
            if factor.kind == CATEGORY:
                made = np.array(factor.coding).T[:, self._coded(number)]
            elif factor.kind == BASIS:
                made = self._basis(number)[int(reduced and factor.basis.drops is not None) :]
            else:
                bare = self.numbers(number)
                made = bare[None]
            columns = [(column * step, values) for column, values in enumerate(made)]
            dense = [(a + b, u * v) for b, v in columns for a, u in dense] if dense else columns
        return self._placed(where, dense, int(np.prod(widths)), term.chosen)

    def _placed(
        self, where: IntArray | None, dense: list[tuple[int, Values]], count: int, chosen: Sequence[int] | None
    ) -> list[BlockColumn]:
        if where is None:
            by_place = dict(dense)
            return [np.ascontiguousarray(by_place[place]) for place in (range(count) if chosen is None else chosen)]
        if chosen is not None:
            new = np.full(count, -1)
            new[list(chosen)] = np.arange(len(chosen))
        else:
            new = None
        if not dense and new is None:
            return [Indicators(where, 0, count)]
        values = tuple((offset, column) for offset, column in dense) or ((0, None),)
        return [Placed(where, count, values, new)]


def _positions(codes: IntArray, factor: Factor, reduced: bool) -> IntArray:
    """Return which column of a category each row stands in; -1 where it is none, at the reference level."""
    if not reduced:
        return codes
    # The last entry is for rows whose level is missing or unknown.
    table = np.arange(-1, len(factor.levels))
    table[: factor.reference] += 1
    table[factor.reference] = table[-1] = -1
    return np.take(table, codes)


def made_faults(factor: Factor, values: Values, columns: RawColumns) -> list[Fault]:
    """Return where an expression gives what is not a finite number, though its columns are."""
    if np.isfinite(np.add.reduce(values)):
        return []

    def sentence(place: str, row: int) -> str:
        told = [_shown(columns.converted(name), name, row) for name in factor.inner.names]
        what = "not a number" if np.isnan(values[row]) else "infinite"
        return (
            f"{factor.expression} of the formula is {what} in {place}, where {' and '.join(told)}: correct or remove "
            f"the row{', or use missing=' + repr('drop') + ' (--missing drop)' if np.isnan(values[row]) else ''}."
        )

    faults = [Fault(np.isnan(values), sentence, is_missing=True), Fault(np.isinf(values), sentence)]
    return [fault for fault in faults if fault.where.any()]


def _shown(values: Any, name: str, row: int) -> str:
    if isinstance(values, Dates):
        return f"{name} is {values.column[row].as_py()}"
    if isinstance(values, Texts):
        return f"{name} is {values.texts[values.codes[row]]!r}"
    return f"{name} is {values[row]:g}"


def _outside(factor: Factor, where: NDArray[np.bool_], x: FloatArray) -> Fault:
    low, high = factor.basis_state[0], factor.basis_state[-1]

    def sentence(place: str, row: int) -> str:
        return (
            f"{factor.inner.text} is {x[row]:g} in {place}, and {factor.expression} of the formula was made for values "
            f"from {low:g} to {high:g}: leave the row out, or fit with extrapolation='clip' or 'extend' in it."
        )

    return Fault(where, sentence, excused=True)
