"""`Summaries.meta_analysis`: every partition fitted alone, and the fits pooled coefficient by coefficient."""

from __future__ import annotations

import html
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.markup import html_table
from partsketch.common.units import p_value_phrase, p_value_text
from partsketch.model.intervals import check_level
from partsketch.questions.choice import Names
from partsketch.questions.fit import Question, ask
from partsketch.questions.forest import ForestLine, forest_text
from partsketch.questions.mixed_model import import_pandas
from partsketch.questions.site_fits import site_fits
from partsketch.questions.table import Cell, TableColumn
from partsketch.questions.text import aligned
from partsketch.summaries.tasks import INTERCEPT
from partsketch.theory.meta_analysis import TAU_METHODS, PooledCoefficient, PooledEffect, pool

if TYPE_CHECKING:
    from partsketch.questions.summaries import Summaries

FloatArray = NDArray[np.float64]

#: Degrees of freedom below which a site's variance is too uncertain to count as known.
_FEW = 10


@dataclass(frozen=True, eq=False, repr=False)
class MetaAnalysis:
    """Fits of single sites, pooled.

    Attributes
    ----------
    target, column_names
        Names; the intercept comes first.
    site_names, site_rows
        The sites that were fitted, and their rows.
    site_coefficients, site_errors
        Of their own least squares, shape (sites, columns); errors take noise for independent, of one variance per site.
    pooled
        For each column.
    warnings
        What is to be said, such as which sites were left out.
    """

    target: str
    column_names: tuple[str, ...]
    site_names: tuple[str, ...]
    site_rows: tuple[int, ...]
    site_coefficients: FloatArray
    site_errors: FloatArray
    pooled: tuple[PooledCoefficient, ...]
    warnings: tuple[str, ...]

    @property
    def coefficients(self) -> FloatArray:
        """Coefficients pooled with random effects."""
        return np.array([pooled.random.value for pooled in self.pooled])

    @property
    def standard_errors(self) -> FloatArray:
        """Their standard errors."""
        return np.array([pooled.random.standard_error for pooled in self.pooled])

    def __getitem__(self, name: str) -> PooledCoefficient:
        """Return the pooled coefficient of a column."""
        return self.pooled[self._place(name)]

    def _place(self, name: str) -> int:
        if name not in self.column_names:
            raise InputError(
                f"There is no coefficient {name!r}: choose among {', '.join(map(repr, self.column_names))}."
            )
        return self.column_names.index(name)

    def forest_lines(self, name: str) -> list[ForestLine]:
        """Return the lines of the forest plot of one coefficient: sites, then the pooled values."""
        from scipy.special import stdtrit

        place, pooled = self._place(name), self[name]
        freedom = np.array(self.site_rows) - len(self.column_names)
        reach = stdtrit(freedom, 0.5 + pooled.level / 2) * self.site_errors[:, place]
        values = self.site_coefficients[:, place]
        weights = 1 / (self.site_errors[:, place] ** 2 + pooled.tau_squared)
        lines = [
            ForestLine(site, float(value), float(value - end), float(value + end), float(weight))
            for site, value, end, weight in zip(self.site_names, values, reach, weights / weights.sum(), strict=True)
        ]
        for label, effect in (("fixed effect", pooled.fixed), ("random effects", pooled.random)):
            lines.append(ForestLine(label, effect.value, effect.lower, effect.upper, None))
        if pooled.prediction is not None:
            lines.append(ForestLine("another site", pooled.random.value, *pooled.prediction, None, is_prediction=True))
        return lines

    def forest(self, name: str | None = None, width: int = 100) -> str:
        """Return the forest plot of one coefficient as text; by default the first feature."""
        chosen = self._shown(name)
        return f"{chosen}\n{forest_text(self.forest_lines(chosen), width)}\n{self.sentence(chosen)}"

    def _shown(self, name: str | None) -> str:
        if name is not None:
            return self.column_names[self._place(name)]
        return next((column for column in self.column_names if column != INTERCEPT), INTERCEPT)

    def sentence(self, name: str) -> str:
        """Say how far the sites differ in one coefficient."""
        pooled = self[name]
        low, high = pooled.tau_squared_interval
        return (
            f"Q = {pooled.q:.4g} with {pooled.q_df} degrees of freedom, {p_value_phrase(pooled.q_p_value)}; "
            f"I² = {100 * pooled.i_squared:.1f}%; τ² = {pooled.tau_squared:.4g} ({pooled.tau_method}; "
            f"{100 * pooled.level:.4g}% interval {low:.4g} to {high:.4g})."
        )

    @property
    def table_column(self) -> TableColumn:
        """What `partsketch.table` shows: values pooled with random effects."""
        effects = [pooled.random for pooled in self.pooled]
        cells = [Cell(effect.value, effect.standard_error, effect.p_value) for effect in effects]
        facts = {
            "rows": f"{sum(self.site_rows):,}",
            "intercept": "by partition",
            "errors": "meta-analysis",
            "partitions": f"{len(self.site_names):,}",
        }
        return TableColumn(self.target, dict(zip(self.column_names, cells, strict=True)), facts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "model": "meta_analysis",
            "target": self.target,
            "rows": sum(self.site_rows),
            "coefficients": [
                {"name": name, **asdict(pooled)} for name, pooled in zip(self.column_names, self.pooled, strict=True)
            ],
            "sites": [
                {"name": name, "rows": rows, "coefficients": values, "standard_errors": errors}
                for name, rows, values, errors in zip(
                    self.site_names, self.site_rows, self.site_coefficients.tolist(), self.site_errors.tolist(),
                    strict=True,
                )
            ],
            "warnings": list(self.warnings),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """Return the pooled coefficients as a pandas data frame, one line each."""
        lines = []
        for name, pooled in zip(self.column_names, self.pooled, strict=True):
            line: dict[str, Any] = {"name": name}
            for kind, effect in (("fixed", pooled.fixed), ("random", pooled.random)):
                line |= {f"{kind}_{key}": value for key, value in asdict(effect).items() if key != "df"}
            line |= {key: getattr(pooled, key) for key in ("q", "q_df", "q_p_value", "i_squared", "tau_squared")}
            low, high = pooled.prediction or (np.nan, np.nan)
            lines.append({**line, "prediction_lower": low, "prediction_upper": high})
        return import_pandas().DataFrame(lines).set_index("name")

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        head = ["", "fixed", "(se)", "random", "(se)", "interval", "another site", "Q p", "I²", "τ²"]
        lines = []
        for name, pooled in zip(self.column_names, self.pooled, strict=True):
            fixed, random = pooled.fixed, pooled.random
            lines.append(
                [
                    name, f"{fixed.value:.5g}", f"({fixed.standard_error:.3g})",
                    f"{random.value:.5g}", f"({random.standard_error:.3g})", _interval((random.lower, random.upper)),
                    _interval(pooled.prediction), p_value_text(pooled.q_p_value), f"{100 * pooled.i_squared:.0f}%",
                    f"{pooled.tau_squared:.3g}",
                ]
            )  # fmt: skip
        return head, lines

    def _title(self) -> str:
        return (
            f"Meta-analysis of {self.target}: {len(self.site_names):,} partitions, {sum(self.site_rows):,} rows, τ² by "
            f"{self.pooled[0].tau_method}"
        )

    def _notes(self) -> tuple[str, ...]:
        random: PooledEffect = self.pooled[0].random
        law = "the normal law" if random.df is None else f"Hartung and Knapp, t with {random.df} degrees of freedom"
        return (
            *self.warnings,
            f"Intervals of random effects are by {law}. Errors of the partitions count as known.",
            *self._closer,
            *(
                ["The interval for another site takes τ² for known: it is rough (docs/mixed.md)."]
                if self._predicts
                else []
            ),
        )

    @property
    def _closer(self) -> list[str]:
        """Say where sites lie so close together that their spread promises more than their errors do."""
        lengths = [(one.random.upper - one.random.lower, one.fixed.upper - one.fixed.lower) for one in self.pooled]
        shorter = [name for name, (random, fixed) in zip(self.column_names, lengths, strict=True) if random < fixed]
        told = (
            f"Of {', '.join(map(repr, shorter[:5]))} the interval of random effects is shorter than that of the fixed "
            "effect: partitions lie closer together than their errors, by chance; take the longer where one is wanted."
        )
        return [told] if shorter else []

    @property
    def _predicts(self) -> bool:
        return any(pooled.prediction is not None for pooled in self.pooled)

    def text(self, name: str | None = None) -> str:
        """Return the pooled values and the forest plot of one coefficient, by default the first feature."""
        notes = "\n".join(f"· {note}" for note in self._notes())
        return f"{self._title()}\n\n{aligned(*self._cells())}\n\n{self.forest(name)}\n\n{notes}"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self._notes())
        return f"<p><b>{html.escape(self._title())}</b></p>{html_table(*self._cells())}<ul>{notes}</ul>"

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page with a forest plot of every coefficient: one HTML file that needs nothing else."""
        from partsketch.report.forest_page import write_meta_analysis

        write_meta_analysis(self, Path(path))


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"


def meta_analysis(
    summaries: Summaries, target: str, features: Names | None, method: str, level: float, hartung_knapp: bool
) -> MetaAnalysis:
    """Return the fits of all partitions, pooled."""
    check_level(level)
    if method not in TAU_METHODS:
        raise InputError(f"method is {method!r}: choose among {', '.join(TAU_METHODS)}.")
    question = ask(summaries, target, features, "common", 0.0)
    if question.intercept is False:
        raise InputError("A meta-analysis has an intercept for each partition: leave '+ 0' out of the formula.")
    if len(question.regression.targets) != 1:
        raise InputError("A meta-analysis is of one target: ask for each alone.")
    with one_thread_each():
        fits, reasons = site_fits(summaries, question)
    if len(fits) < 2:
        why = f" ({next(iter(reasons.items()))[0]!r}: {next(iter(reasons.values()))})" if reasons else ""
        raise InputError(
            f"A meta-analysis needs at least two partitions that can be fitted alone, and there are {len(fits)}{why}: "
            "name fewer features, or give more partitions."
        )
    chosen = list(fits)
    values = np.array([fits[place][0] for place in chosen])
    errors = np.array([fits[place][1] for place in chosen])
    rows = [summaries.row_counts[place] for place in chosen]
    return MetaAnalysis(
        target=question.regression.targets[0],
        column_names=question.regression.features,
        site_names=tuple(summaries.names[place] for place in chosen),
        site_rows=tuple(rows),
        site_coefficients=values,
        site_errors=errors,
        pooled=tuple(
            pool(one, error**2, method, level, hartung_knapp) for one, error in zip(values.T, errors.T, strict=True)
        ),
        warnings=_warnings(summaries, question, reasons, rows),
    )


def _warnings(summaries: Summaries, question: Question, reasons: dict[str, str], rows: list[int]) -> tuple[str, ...]:
    sentences = list(summaries.split_sentences)
    if reasons:
        name, why = next(iter(reasons.items()))
        sentences.append(
            f"{len(reasons)} of {len(summaries)} partitions cannot be fitted alone and are left out, such as {name!r}: "
            f"{why}."
        )
    width = len(question.regression.features)
    few = [count for count in rows if count - width < _FEW]
    if few:
        sentences.append(
            f"{len(few)} of {len(rows)} partitions have fewer than {_FEW} rows more than coefficients (least: "
            f"{min(few)} rows for {width}): their errors are uncertain and count as known, so Q, τ² and intervals are "
            "rough; mixed uses one noise variance for all."
        )
    return tuple(sentences)
