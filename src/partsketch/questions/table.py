"""Several models side by side: on the terminal, in LaTeX, HTML, CSV, or as a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.common.markup import html_table, latex_table
from partsketch.common.text import plain
from partsketch.common.units import STARS, estimate_text, stars
from partsketch.model.explained import explained_of
from partsketch.model.inference import Inference
from partsketch.model.model import Model
from partsketch.model.sentences import listed
from partsketch.summaries.tasks import INTERCEPT

#: What files say of every coefficient.
_STATISTICS = ("coefficient", "standard_error", "p_value")


@dataclass(frozen=True)
class Cell:
    """A coefficient of one model; None where nothing can be said."""

    coefficient: float
    standard_error: float | None
    p_value: float | None


@dataclass(frozen=True)
class TableColumn:
    """One column of a table.

    Attributes
    ----------
    target
        What is explained.
    coefficients
        By name.
    facts
        What is said below, by name.
    """

    target: str
    coefficients: Mapping[str, Cell]
    facts: Mapping[str, str]


class HasTableColumn(Protocol):
    """What is no `Model` and says itself how it is shown in a table."""

    @property
    def table_column(self) -> TableColumn:
        """The column."""


@dataclass(frozen=True, repr=False)
class Table:
    """Coefficients of several models, one column each, with standard errors in brackets below.

    Attributes
    ----------
    headings
        One per model.
    coefficients
        Name of each coefficient, and what every model says of it; None where it has none.
    facts
        Name of each fact below the coefficients, and what every model says.
    digits
        How many significant digits of standard errors are shown; coefficients are rounded to the same place.
    stars
        Whether coefficients are marked by their p-values.
    """

    headings: tuple[str, ...]
    coefficients: tuple[tuple[str, tuple[Cell | None, ...]], ...]
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    digits: int = 3
    stars: bool = False

    def lines(self) -> list[list[str]]:
        """Return the cells of all lines below the headings: two for each coefficient, then the facts."""
        cells = []
        for name, values in self.coefficients:
            cells.append([name, *("" if value is None else self._estimate(value) for value in values)])
            errors = ["" if value is None else self._error(value) for value in values]
            if any(errors):
                cells.append(["", *errors])
        return cells + self._foot()

    def _estimate(self, cell: Cell) -> str:
        shown = estimate_text(cell.coefficient, cell.standard_error, self.digits)
        return shown + stars(cell.p_value) if self.stars else shown

    def _error(self, cell: Cell) -> str:
        error = cell.standard_error
        return "" if error is None else f"({estimate_text(error, error, self.digits)})"

    def _foot(self) -> list[list[str]]:
        facts = [[name, *values] for name, values in self.facts]
        return [*facts, [STARS, *[""] * len(self.headings)]] if self.stars else facts

    def __str__(self) -> str:
        rows = [[plain(cell) for cell in row] for row in [["", *self.headings], *self.lines()]]
        # What stars mean is longer than any name: it stands by itself below the others.
        columns = list(zip(*(rows[:-1] if self.stars else rows), strict=True))
        widths = [max(map(len, column)) for column in columns]
        text = [
            "  ".join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            ).rstrip()
            for row in rows
        ]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        middle = len(text) - len(self._foot())
        return "\n".join([rule, text[0], rule, *text[1:middle], rule, *text[middle:], rule])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_latex(self) -> str:
        """Return a tabular environment with the rules of the package booktabs."""
        lines, foot = self.lines(), self._foot()
        return latex_table(["", *self.headings], lines[: len(lines) - len(foot)], foot)

    def to_html(self) -> str:
        """Return a table element."""
        return html_table(["", *self.headings], self.lines())

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Return comma-separated values with all digits, errors in lines of their own, or write them to a file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["name", "statistic", *self.headings])
        for name, values in self.coefficients:
            for statistic in _STATISTICS:
                cells = [None if value is None else getattr(value, statistic) for value in values]
                writer.writerow([name, statistic, *("" if cell is None else repr(float(cell)) for cell in cells)])
        writer.writerows([name, "fact", *values] for name, values in self.facts)
        if path is None:
            return text.getvalue()
        write_atomically(Path(path), text.getvalue().encode())
        return None

    def to_frame(self) -> Any:
        """Return a pandas data frame: coefficients and standard errors, a column for each model."""
        try:
            import pandas as pd
        except ImportError as error:
            raise InputError("to_frame needs pandas: install it, or use to_csv.") from error
        index, rows = [], []
        for name, values in self.coefficients:
            for statistic in _STATISTICS:
                index.append((name, statistic))
                cells = [None if value is None else getattr(value, statistic) for value in values]
                rows.append([np.nan if cell is None else cell for cell in cells])
        return pd.DataFrame(
            rows, index=pd.MultiIndex.from_tuples(index, names=["name", "statistic"]), columns=self.headings
        )


def table(
    models: Sequence[Model | HasTableColumn],
    headings: Sequence[str] | None = None,
    *,
    keep: Sequence[str] | None = None,
    digits: int = 3,
    stars: bool = False,
) -> Table:
    """Put models side by side.

    Parameters
    ----------
    models
        Fitted models; one with several targets takes a column for each.
    headings
        One per column; by default a number and the target.
    keep
        Names of the coefficients to show, in this order; by default all, the intercept last.
    digits
        Significant digits of standard errors; coefficients are rounded to the same place. Files have all digits.
    stars
        Whether coefficients are marked by their p-values: one star below 0.05, two below 0.01, three below 0.001.

    Returns
    -------
    Table
        Print it, or take `to_latex`, `to_html`, `to_csv` or `to_frame`.

    Examples
    --------
    >>> import partsketch as ps, pyarrow as pa
    >>> rows = pa.table({"x": range(100), "y": [2.0 * x + x % 3 for x in range(100)], "g": [0, 1, 2, 3] * 25})
    >>> summaries = ps.summarise(rows, partition_by="g")
    >>> text = ps.table([summaries.fit("y", ["x"]), summaries.fit("y", ["x"], vcov="CRV1")])
    """
    given = [models] if isinstance(models, Model) or hasattr(models, "table_column") else models
    if not isinstance(given, Sequence) or not all(isinstance(m, Model) or hasattr(m, "table_column") for m in given):
        raise InputError("table takes a model, or a list of models; what stands above them goes to headings=[…].")
    columns = [column for model in given for column in _columns_of(model)]
    if not columns:
        raise InputError("There is no model to show: give at least one.")
    if not isinstance(digits, int) or not 1 <= digits <= 17:
        raise InputError(f"digits is {digits!r}: give a whole number from 1 to 17.")
    names = list(dict.fromkeys(name for column in columns for name in column.coefficients if name != INTERCEPT))
    if any(INTERCEPT in column.coefficients for column in columns):
        names.append(INTERCEPT)
    if keep is not None:
        names = _kept(names, keep)
    shown = [f"({place}) {column.target}" for place, column in enumerate(columns, 1)]
    if headings is not None and len(headings) != len(columns):
        raise InputError(f"headings has {len(headings)} entries: give one for each of the {len(columns)} columns.")
    return Table(
        headings=tuple(shown if headings is None else map(str, headings)),
        coefficients=tuple((name, tuple(column.coefficients.get(name) for column in columns)) for name in names),
        facts=_facts(columns),
        digits=digits,
        stars=stars,
    )


def _kept(names: Sequence[str], keep: Sequence[str]) -> list[str]:
    """Return the coefficients that were asked for, each once."""
    if isinstance(keep, str):
        raise InputError(f"keep is {keep!r}: give a list of names, such as keep=[{keep!r}].")
    for name in keep:
        if name not in names:
            raise InputError(f"No model has a coefficient {name!r} to keep: they have {listed(names, 20)}.")
    return list(dict.fromkeys(keep))


def _columns_of(model: Model | HasTableColumn) -> list[TableColumn]:
    if not isinstance(model, Model):
        return [model.table_column]
    return [_column_of(model, number) for number in range(len(model.target_names))]


def _column_of(model: Model, number: int) -> TableColumn:
    inference, options = model.inferences[number], model.record.options
    errors, _, p_values, *_ = model.inference_table(number)
    values = model.column_coefficients[:, number].tolist()
    nothing = [None] * len(values)
    told = (values, nothing if errors is None else errors.tolist(), nothing if p_values is None else p_values.tolist())
    intercept = options.get("intercept", "common" if options["fit_intercept"] else False)
    alpha = float(options.get("alpha") or 0.0)
    absorbed = options.get("absorb")
    told_of = {"common": "common", "partition": "by partition", False: "none"}[intercept]
    cluster = str(options.get("vcov", "")).partition(":")[2]
    return TableColumn(
        model.target_names[number],
        dict(zip(model.column_names, map(Cell, *told), strict=True)),
        {
            "rows": f"{model.record.row_count:,}",
            "R²": "" if inference.r_squared is None else f"{inference.r_squared:.4f}{explained_of(options)}",
            "intercept": f"by {absorbed}" if absorbed else told_of,
            "errors": _errors(inference, cluster),
            "penalty": f"{alpha:.4g}" if alpha else "",
            "method": model.method,
        },
    )


def _errors(inference: Inference, cluster: str) -> str:
    """Name the errors, and the column of their clusters."""
    if inference.standard_errors is None:
        return "none"
    return f"{inference.vcov} {cluster}" if cluster else inference.vcov


def _facts(columns: Sequence[TableColumn]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return what is said of any column; of penalties and methods only where there are others than the plain ones."""
    plain = {"penalty": {""}, "method": {"exact", ""}}
    facts = []
    for name in dict.fromkeys(name for column in columns for name in column.facts):
        said = tuple(column.facts.get(name, "") for column in columns)
        if not set(said) <= plain.get(name, set()):
            facts.append((name, said))
    return tuple(facts)
