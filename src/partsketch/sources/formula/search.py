"""The pass over the data that finds levels, knots, means and spreads, over no more columns than it needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.sources.arrow_values import BoolArray, as_numbers, as_texts, distinct_texts
from partsketch.sources.cluster.chunked import ChunkedRows
from partsketch.sources.faults import Fault, Missing, complete_rows, missing_fault, number_faults
from partsketch.sources.formula.assembly import RawColumns, made_faults
from partsketch.sources.formula.bases import basis_of
from partsketch.sources.formula.categories import category_values, level_text
from partsketch.sources.formula.design import CATEGORY, NUMBER, Factor
from partsketch.sources.formula.evaluation import Evaluator
from partsketch.sources.formula.expressions import Expression, constants
from partsketch.sources.formula.values import ExactSums, ValueTable
from partsketch.sources.keys import Keys
from partsketch.sources.levels import (
    MOST_LEVELS,
    PartitionColumn,
    add_keys,
    check_number,
    keys_of,
    label_columns,
    named,
)
from partsketch.sources.roles import Selection
from partsketch.sources.storage import RawBlock, Rows


@dataclass
class FoundState:
    """What some rows tell: levels by factor, sums and tables by call, and values of the columns of labels."""

    levels: dict[str, set[Any]]
    sums: dict[str, ExactSums]
    tables: dict[str, ValueTable]
    keys: dict[str, Keys] = field(default_factory=dict)

    def add(self, other: FoundState) -> None:
        """Take in what other rows tell, unless it becomes too much."""
        for name, levels in other.levels.items():
            self.levels[name] |= levels
            check_number(
                name, len(self.levels[name]), MOST_LEVELS, "for a category: use it as a number, or leave it out"
            )
        for text, sums in other.sums.items():
            self.sums[text].add(sums)
        for text, table in other.tables.items():
            self.tables[text].add(table)
        add_keys(self.keys, other.keys)


@dataclass(frozen=True)
class StateSearch:
    """What is looked for, in which columns; a value, so that it can be sent to where the rows are.

    Attributes
    ----------
    names, texts
        Columns that are read, and those of them that are text.
    factors
        All factors; rows in which one has no value do not count when such rows are dropped.
    wanted
        Numbers of the factors of which something is to be found.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    factors: tuple[Factor, ...]
    wanted: tuple[int, ...]
    selection: Selection
    missing: Missing

    def nothing(self) -> FoundState:
        """Return what no rows tell."""
        found = FoundState({}, {}, {}, {name: Keys() for name in self.selection.labels})
        for number in self.wanted:
            factor = self.factors[number]
            if factor.kind == CATEGORY and not factor.levels:
                found.levels[factor.expression] = set()
            for text, call in factor.whole.stateful:
                if text not in dict(factor.state):
                    (found.tables if is_basis(call) else found.sums)[text] = _empty(call)  # type: ignore[assignment]
        return found

    def __call__(self, rows: Rows) -> FoundState:
        """Read the columns of some rows once."""
        found = self.nothing()
        with np.errstate(all="ignore"):
            for raw in rows.choose(self.names, self.texts).raw_blocks(0, None, 65536):
                found.add(self._of_block(raw))
        return found

    def _of_block(self, raw: RawBlock) -> FoundState:
        values = dict(zip(self.names, raw.columns, strict=True))
        faults: list[Fault] = []
        columns = RawColumns(values, faults)
        evaluator = Evaluator(columns.converted, {})
        seen: list[tuple[dict[str, Any], str, Any]] = []
        found = self.nothing()
        for number in self.wanted:
            factor = self.factors[number]
            if factor.expression in found.levels and factor.level_type == "text":
                seen.append((found.levels, factor.expression, values[factor.inner.names[0]]))
                self._note_missing(factor.inner.names[0], values, faults)
            elif factor.expression in found.levels:
                seen.append((found.levels, factor.expression, category_values(factor, columns, evaluator)))
            for text, call in factor.whole.stateful:
                if text in found.sums or text in found.tables:
                    inner = factor.whole.of(call.args[0])
                    x = np.broadcast_to(evaluator.numbers(inner), (raw.length,))
                    faults.extend(made_faults(Factor(inner.text, False, NUMBER), x, columns))
                    seen.append((found.sums if text in found.sums else found.tables, text, x))
        kept = self._kept(raw, values, columns, evaluator, faults)
        weighing = self._weighing(values, kept)
        for where, text, column in seen:
            _see(where, text, column, weighing if _is_of_observations(where[text]) else kept)
        found.keys = {name: named(keys_of, name, values[name], kept) for name in self.selection.labels}
        return found

    def _weighing(self, values: Mapping[str, Any], kept: BoolArray | None) -> BoolArray | None:
        """Return which rows are observations; None for all. Rows of weight zero are none."""
        if self.selection.weights is None:
            return kept
        weights, absent = as_numbers(values[self.selection.weights])
        zero = np.asarray(weights == 0) if absent is None else np.asarray((weights == 0) & ~absent)
        if not zero.any():
            return kept
        return ~zero if kept is None else kept & ~zero

    def _note_missing(self, name: str, values: Mapping[str, Any], faults: list[Fault]) -> None:
        if self.missing == "drop":
            absent = as_texts(values[name])[0] < 0
            faults.extend([missing_fault(name, absent)] if absent.any() else [])

    def _kept(
        self,
        raw: RawBlock,
        values: Mapping[str, Any],
        columns: RawColumns,
        evaluator: Evaluator,
        faults: list[Fault],
    ) -> BoolArray | None:
        """Return which rows count; None for all."""
        if self.missing == "error":
            # What is wrong is told when the rows are read for the fit, in the same words; here it is only in the way.
            return complete_rows(raw, [fault for fault in faults if not fault.excused], "error")
        for factor in self.factors:
            if factor.kind == CATEGORY and factor.level_type == "text":
                self._note_missing(factor.inner.names[0], values, faults)
            elif not factor.state and not factor.whole.stateful:
                made = np.broadcast_to(evaluator.numbers(factor.inner), (raw.length,))
                faults.extend(made_faults(factor, made, columns))
        if self.selection.weights is not None:
            faults.extend(number_faults(self.selection.weights, *as_numbers(values[self.selection.weights])))
        for name in self.selection.only_labels:
            self._note_missing(name, values, faults)
        return complete_rows(raw, faults, "drop")


def _is_of_observations(found: Any) -> bool:
    """Tell whether rows of weight zero have no part in it; their levels and what lies beyond knots must be known."""
    return isinstance(found, ExactSums) or (isinstance(found, ValueTable) and not found.has_knots)


def _see(where: dict[str, Any], text: str, column: Any, kept: BoolArray | None) -> None:
    if isinstance(where[text], ExactSums | ValueTable):
        where[text].see(np.ascontiguousarray(column if kept is None else column[kept], dtype=np.float64))
    elif isinstance(column, np.ndarray) and column.dtype.kind in "iuf":
        counted = column if kept is None else column[kept]
        where[text] = set(np.unique(counted).tolist())
    else:
        where[text] = distinct_texts(column, kept)


def is_basis(call: ast.Call) -> bool:
    """Tell whether a call gives several columns."""
    return isinstance(call.func, ast.Name) and call.func.id in ("bs", "poly")


def _empty(call: ast.Call) -> ExactSums | ValueTable:
    if is_basis(call):
        return ValueTable(has_knots=isinstance(call.func, ast.Name) and call.func.id == "bs")
    return ExactSums(with_squares=not (isinstance(call.func, ast.Name) and call.func.id == "center"))


def find_state(
    rows: Rows, selection: Selection, factors: tuple[Factor, ...], missing: Missing, texts: Iterable[str]
) -> tuple[tuple[Factor, ...], tuple[PartitionColumn, ...], tuple[str, ...]]:
    """Return the factors with what was found of them, the columns of labels with their values, and notes."""
    wanted = tuple(number for number, factor in enumerate(factors) if _lacks(factor))
    if not wanted and not selection.labels:
        return factors, (), ()
    if not rows.replayable:
        raise InputError(
            f"The formula needs a pass over the data for {factors[wanted[0]].expression if wanted else 'partitions'} "
            "first, and this stream can be read only once: pass a table (reader.read_all()) or a file."
        )
    names = selection.used
    if missing == "error":
        needed = {name for number in wanted for name in factors[number].whole.names} | {*selection.labels}
        # Rows of weight zero have no part in means and spreads.
        needed |= set() if selection.weights is None else {selection.weights}
        names = tuple(name for name in names if name in needed)
    chosen = tuple(name for name in names if name in texts)
    search = StateSearch(names, chosen, factors, wanted, selection, missing)
    found = search.nothing()
    for part in rows.map(search) if isinstance(rows, ChunkedRows) else (search(rows),):
        found.add(part)
    made = tuple(_with_found(factor, found) if number in wanted else factor for number, factor in enumerate(factors))
    notes = tuple(
        f"{text} of the formula has more than {table.most:,} different values: its knots or polynomials are those of "
        f"values kept to {52 - table.shift} binary digits."
        for text, table in found.tables.items()
        if not table.is_exact
    )
    return made, label_columns(found.keys, selection.labels), notes


def _lacks(factor: Factor) -> bool:
    """Tell whether something is still to be found of a factor."""
    if factor.kind == CATEGORY and not factor.levels:
        return True
    return any(text not in dict(factor.state) for text, _ in factor.whole.stateful)


def _with_found(factor: Factor, found: FoundState) -> Factor:
    if factor.expression in found.levels:
        levels = sorted(found.levels[factor.expression])
        if not levels:
            raise InputError(f"{factor.expression} of the formula has no values in the rows that can be used.")
        texts = levels if factor.level_type == "text" else [level_text(level, factor.level_type) for level in levels]
        factor = replace(factor, levels=tuple(texts))
    state = dict(factor.state)
    for text, call in factor.whole.stateful:
        if text in found.tables:
            if found.tables[text].is_empty:
                raise InputError(f"{text} of the formula has no values in the rows that can be used.")
            state[text] = basis_of(call).state(found.tables[text], text)
        elif text in found.sums:
            state[text] = _centre_and_scale(call, found.sums[text], factor.whole)
    return replace(factor, state=tuple(state.items()))


def _centre_and_scale(call: ast.Call, sums: ExactSums, expression: Expression) -> tuple[float, float]:
    """Return what is taken off, and what it is divided by."""
    assert isinstance(call.func, ast.Name)
    told = expression.unparsed(call)
    if not sums.count:
        raise InputError(f"{told} of the formula has no values in the rows that can be used.")
    if call.func.id == "center":
        constants(call, ())
        return sums.mean, 1.0
    second = "rescale" if call.func.id == "standardize" else "scale"
    given = {
        "center": True,
        second: True,
        "ddof": int(second == "scale"),
        **constants(call, ("center", second, "ddof")),
    }
    centre = sums.mean if given["center"] is True else float(given["center"] or 0.0)
    if given[second] is not True:
        return centre, float(given[second] or 1.0)
    spread = sums.deviation(centre, given["ddof"]) if sums.count > given["ddof"] else 0.0
    if not spread > 0:
        raise InputError(f"{told} of the formula needs a column of different values: leave it out.")
    return centre, spread
