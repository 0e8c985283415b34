"""The summary of a fit in the layout that users of statsmodels and R know."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.files import write_atomically
from partsketch.common.markup import html_table, html_text, latex_table
from partsketch.common.text import plain
from partsketch.common.units import STARS, estimate_text, p_value_text, stars
from partsketch.model.assumptions import assumptions, fits_without_residuals
from partsketch.model.explained import explained_of
from partsketch.model.inference import THIS_FIT
from partsketch.model.intervals import EXACT, SUBJECTS
from partsketch.model.methods import METHODS
from partsketch.model.sentences import share_lost

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

    from partsketch.model.model import Model

_WIDTH = 100
#: Lines of a model that is shown without being asked for its summary.
_MOST_LINES = 80


@dataclass(frozen=True)
class CoefficientRow:
    """One line of the table; values are None where nothing can be said."""

    target: str
    name: str
    coefficient: float
    standard_error: float | None
    t_value: float | None
    p_value: float | None
    lower: float | None
    upper: float | None

    def cells(self, with_stars: bool = False, finest: float = 0.0) -> tuple[str, ...]:
        """Return the values as they are shown, in the order of the columns, to the digits that the error leaves."""
        p_value = "" if self.p_value is None else p_value_text(self.p_value, finest)
        t_value = "" if self.t_value is None else f"{self.t_value:.2f}"
        estimates = (self.coefficient, self.standard_error, self.lower, self.upper)
        numbers = ["" if value is None else estimate_text(value, self.standard_error) for value in estimates]
        numbers[0] += stars(None if self.p_value is None else max(self.p_value, finest)) if with_stars else ""
        return (*numbers[:2], t_value, p_value, *numbers[2:])


@dataclass(frozen=True, repr=False)
class FitSummary:
    """A fit as a table: print it, or take `to_latex`, `to_html`, `to_csv`, `to_frame` or `to_dict`.

    Attributes
    ----------
    facts
        Per target, pairs of name and value for the head of the table.
    rows
        One per coefficient.
    notes
        Certificate, warnings, and what the intervals assume, a sentence each.
    level
        Confidence level of the intervals.
    of
        What the intervals are for: "truth", the true coefficients, or "exact", those of exact least squares.
    stars
        Whether coefficients are marked by their p-values.
    fitted_by
        What the fit is called: least squares, in two stages or with a penalty.
    finest
        What p-values are told to: 1/draws of a bootstrap, else 0.
    """

    facts: dict[str, tuple[tuple[str, str], ...]]
    rows: tuple[CoefficientRow, ...]
    notes: tuple[str, ...]
    level: float
    of: str
    stars: bool = False
    fitted_by: str = "Least squares"
    finest: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "fitted_by": self.fitted_by,
            "facts": {target: dict(pairs) for target, pairs in self.facts.items()},
            "coefficients": [dict(vars(row)) for row in self.rows],
            "notes": list(self.notes),
            "level": self.level,
            "intervals_of": self.of,
        }

    def to_frame(self) -> Any:
        """Return the coefficients as a pandas data frame, indexed by name (by target and name for several targets)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise InputError("to_frame needs pandas: install it, or use to_dict.") from error
        frame = pd.DataFrame([vars(row) for row in self.rows])
        if len(self.facts) == 1:
            return frame.drop(columns="target").set_index("name")
        return frame.set_index(["target", "name"])

    def to_latex(self) -> str:
        """Return a tabular environment for every target, with the rules of the package booktabs."""
        told = [*([self._subject()] if self._has_errors() else []), *([STARS] if self.stars else [])]
        notes = [[note, *[""] * (len(self._heads()) - 1)] for note in told]
        return "\n\n".join(latex_table(self._heads(), self._lines(target), notes) for target in self.facts)

    def to_html(self) -> str:
        """Return the table elements, with the facts above and the notes below them."""
        return self._repr_html_()

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Return the coefficients as comma-separated values with all digits, or write them to a file.

        The last column says what errors and intervals are for: "truth" or "exact".
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*vars(self.rows[0]), "intervals_of"])
        for row in self.rows:
            values = vars(row).values()
            writer.writerow([*(repr(value) if isinstance(value, float) else value for value in values), self.of])
        if path is None:
            return text.getvalue()
        write_atomically(Path(path), text.getvalue().encode())
        return None

    def _heads(self) -> tuple[str, ...]:
        if not self._has_errors():
            return ("", "coef")
        tail = (1 - self.level) / 2
        return ("", "coef", "std err", "t", "P>|t|", f"[{tail:.4g}", f"{1 - tail:.4g}]")

    def _lines(self, target: str) -> list[tuple[str, ...]]:
        columns = len(self._heads())
        return [(row.name, *row.cells(self.stars, self.finest))[:columns] for row in self.rows if row.target == target]

    def _remarks(self) -> tuple[str, ...]:
        return (*self.notes, STARS) if self.stars else self.notes

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table

        for target, facts in self.facts.items():
            head = Table.grid(padding=(0, 2), expand=False)
            half = (len(facts) + 1) // 2
            for left, right in zip(facts[:half], [*facts[half:], ("", "")], strict=False):
                head.add_row(f"{left[0]}:" if left[0] else "", left[1], f"{right[0]}:" if right[0] else "", right[1])
            yield f"{self.fitted_by}: {plain(target)}"
            yield head
            if self._has_errors():
                yield self._subject()
            yield self._coefficients(target)
        for note in self._remarks():
            yield f"· {plain(note)}"

    def _coefficients(self, target: str) -> Any:
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD)
        for place, heading in enumerate(self._heads()):
            # Long names take several lines; they end in the level, and without it rows could not be told apart.
            table.add_column(heading, justify="right" if place else "left", no_wrap=bool(place), overflow="fold")
        for line in self._lines(target):
            table.add_row(*map(plain, line))
        return table

    def __str__(self) -> str:
        from partsketch.common.terminal import text_console

        text = io.StringIO()
        text_console(text, _WIDTH).print(self)
        return text.getvalue().rstrip("\n")

    def __repr__(self) -> str:
        return str(self)

    def shortened(self) -> str:
        """Return the text, without the middle of a long table."""
        lines = str(self).splitlines()
        if len(lines) <= _MOST_LINES:
            return "\n".join(lines)
        left_out = len(lines) - _MOST_LINES
        return "\n".join([*lines[: -20 - left_out], f"  … {left_out} lines more: print(model.summary())", *lines[-20:]])

    def _has_errors(self) -> bool:
        """Whether anything is known of the error of a coefficient."""
        return any(row.standard_error is not None or row.lower is not None for row in self.rows)

    def _subject(self) -> str:
        return f"Standard errors, tests and {100 * self.level:.4g}% intervals are for {SUBJECTS[self.of]}."

    def _repr_html_(self) -> str:
        parts = []
        for target, facts in self.facts.items():
            told = " · ".join(f"{name}: {value}" for name, value in facts)
            lines = self._lines(target)
            if len(lines) >= _MOST_LINES:
                lines[_MOST_LINES - 1 :] = [(f"… {len(lines) - _MOST_LINES + 1} more: print(model.summary())",)]
            table = html_table(self._heads(), lines)
            parts.append(f"<p><b>{self.fitted_by}: {html_text(target)}</b><br>{html_text(told)}</p>{table}")
        notes = [*([self._subject()] if self._has_errors() else []), *self._remarks()]
        parts.append("<ul>" + "".join(f"<li>{html_text(note)}</li>" for note in notes) + "</ul>")
        return "\n".join(parts)


def summarise_model(model: Model, level: float, kind: str, of: str, stars: bool = False) -> FitSummary:
    """Make the summary of a model with intervals of this level and kind ("model" or "spread"), for `of`."""
    rows: list[CoefficientRow] = []
    for number, target in enumerate(model.target_names):
        table = model.inference_table(number, level, kind, of)
        for position, name in enumerate(model.column_names):
            values = [None if column is None else float(column[position]) for column in table]
            if values[0] == 0:
                # An error of zero is no unit for a test; that of a column that says nothing is not known at all.
                lost = (1, 2) if fits_without_residuals(model, number) or of == EXACT else range(len(values))
                values = [None if place in lost else value for place, value in enumerate(values)]
            rows.append(CoefficientRow(target, name, float(model.column_coefficients[position, number]), *values))
    facts = {target: _facts(model, number, of) for number, target in enumerate(model.target_names)}
    finest = max((1 / known.wild.draws for known in model.inferences if known.wild is not None), default=0.0)
    return FitSummary(facts, tuple(rows), _notes(model, kind, of), level, of, stars, _fitted_by(model), finest)


def _fitted_by(model: Model) -> str:
    share = model.record.options.get("l1_ratio")
    if share is not None:
        return "Lasso" if share == 1 else "Elastic net"
    if model.instruments is not None:
        return "Two-stage least squares"
    return "Ridge regression" if (model.record.options.get("alpha") or 0) > 0 else "Least squares"


def _facts(model: Model, number: int, of: str) -> tuple[tuple[str, str], ...]:
    record, method = model.record, METHODS[model.method]
    certificate, inference = model.certificates[number], model.inferences[number]
    facts = [("Method", model.method), ("No. Observations", record.rows_in_words)]
    if method.by_partition:
        facts.append(("Partitions (k)", str(len(record.partitions))))
    elif method.sketched:
        facts.append(("Sketches (k)", str(len(record.partitions))))
    if record.sketch_size is not None:
        facts.append(("Sketch rows (m)", str(record.sketch_size)))
    facts.append(("Rank", f"{record.rank} of {len(model.column_names)}"))
    if record.condition is not None:
        facts.append(("Cond. No.", f"{record.condition:.3g}"))
    freedom = inference.around_exact.degrees_of_freedom if of == EXACT else inference.degrees_of_freedom
    if freedom is not None:
        facts.append(("Df", f"{freedom:,.0f}"))
    if inference.noise_variance is not None:
        which = provenance(inference.noise_variance_of, inference.is_estimated)
        facts.append(("Residual std err", f"{np.sqrt(inference.noise_variance):.4g}{which}"))
    if inference.r_squared is not None:
        which = provenance(inference.r_squared_of, inference.is_estimated)
        facts.append((f"R-squared{explained_of(record.options)}", f"{inference.r_squared:.4f}{which}"))
    if certificate.relative_excess_loss is not None:
        lost = share_lost(certificate.relative_excess_loss, certificate.kind, "{:.3g} of the minimum".format)
        facts.append(("Excess loss", lost.removesuffix(" (exact)")))
    return tuple(facts)


def provenance(of: str, estimated: bool) -> str:
    """Return in brackets which fit a number is of, unless it is this one, and whether it is estimated."""
    words = [*([] if of == THIS_FIT else [f"of {of}"]), *(["estimated"] if estimated else [])]
    return f" ({', '.join(words)})" if words else ""


def _notes(model: Model, kind: str, of: str) -> tuple[str, ...]:
    notes = [
        certificate.sentence if len(model.target_names) == 1 else f"{target}: {certificate.sentence}"
        for target, certificate in zip(model.target_names, model.certificates, strict=True)
    ]
    if of == EXACT:
        every = [inference.around_exact for inference in model.inferences]
        bases = dict.fromkeys(known.basis for known in every if known.basis)
        notes += [f"Intervals for exact least squares: {basis}." for basis in bases]
        if any(known.is_known for known in every):
            notes.append("They have no width: the coefficients of exact least squares are known.")
        missing = [known.reason for known in every if known.reason]
        notes += [f"No intervals for exact least squares: {reason}." for reason in dict.fromkeys(missing)]
    elif kind == "spread":
        notes.append("Standard errors from the spread of the partitions' fits, without a noise model.")
    else:
        missing = [inference.reason for inference in model.inferences if inference.standard_errors is None]
        notes += [f"No standard errors: {reason}." for reason in dict.fromkeys(missing)]
    if model.instruments is not None:
        notes += model.instruments.sentences()
    notes += assumptions(model) if kind == "model" else []
    return (*notes, *model.record.warnings)
