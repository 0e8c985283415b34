"""The model with random effects: what was found, as numbers, text, HTML, data frame and page."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.markup import html_table
from partsketch.common.units import estimate_text, p_value_text
from partsketch.model.intervals import check_level
from partsketch.questions.forest import ForestLine
from partsketch.questions.table import Cell, TableColumn
from partsketch.questions.text import aligned

FloatArray = NDArray[np.float64]

_INTERVALS = (
    "Intervals and tests use t with Satterthwaite's degrees of freedom; they take noise and random effects for normal."
)


@dataclass(frozen=True, eq=False, repr=False)
class MixedModel:
    """A linear model whose coefficients vary between partitions around common ones.

    Attributes
    ----------
    target, column_names
        Names; the intercept comes first.
    coefficients, covariance
        The common coefficients (fixed effects), and the covariance of their errors.
    degrees_of_freedom
        Of each coefficient, by Satterthwaite.
    random_names, random_covariance
        What varies between partitions, and its covariance.
    residual_variance
        Of the noise within partitions.
    site_names, site_rows
        The partitions, and their numbers of rows.
    site_effects, site_errors
        Deviations of the partitions from the common coefficients, best linear unbiased predictions, and their standard
        errors with all else taken for known; shape (partitions, random columns).
    log_likelihood
        Restricted with method "REML"; None with weighted rows, whose constant is not known.
    method
        "REML" or "ML".
    rank
        Of the covariance of the random effects; below its size the estimate is on the boundary.
    warnings
        What is to be said.
    """

    target: str
    column_names: tuple[str, ...]
    coefficients: FloatArray
    covariance: FloatArray
    degrees_of_freedom: FloatArray
    random_names: tuple[str, ...]
    random_covariance: FloatArray
    residual_variance: float
    site_names: tuple[str, ...]
    site_rows: tuple[int, ...]
    site_effects: FloatArray
    site_errors: FloatArray
    log_likelihood: float | None
    method: str
    rank: int
    warnings: tuple[str, ...]

    @property
    def is_boundary(self) -> bool:
        """Whether some variance of the random effects was found to be zero, or a correlation one."""
        return self.rank < len(self.random_names)

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors of the common coefficients."""
        return np.asarray(np.sqrt(np.diagonal(self.covariance)))

    @property
    def t_values(self) -> FloatArray:
        """Coefficients in units of their standard errors."""
        return np.asarray(self.coefficients / self.standard_errors)

    @property
    def p_values(self) -> FloatArray:
        """Two-sided p-values of the common coefficients being zero."""
        from scipy.special import stdtr

        return np.asarray(2 * stdtr(self.degrees_of_freedom, -np.abs(self.t_values)))

    def conf_int(self, level: float = 0.95) -> FloatArray:
        """Return confidence intervals for the common coefficients, shape (columns, 2)."""
        from scipy.special import stdtrit

        check_level(level)
        reach = stdtrit(self.degrees_of_freedom, (1 + level) / 2) * self.standard_errors
        return np.column_stack([self.coefficients - reach, self.coefficients + reach])

    @property
    def random_deviations(self) -> FloatArray:
        """Standard deviations of the random effects."""
        return np.asarray(np.sqrt(np.diagonal(self.random_covariance)))

    @property
    def random_correlations(self) -> FloatArray:
        """Correlations of the random effects; not a number where a variance is zero."""
        sizes = self.random_deviations
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.clip(self.random_covariance / np.outer(sizes, sizes), -1, 1))

    @property
    def site_coefficients(self) -> FloatArray:
        """Coefficients of the random columns in each partition: the common ones and the deviations."""
        places = [self.column_names.index(name) for name in self.random_names]
        return np.asarray(self.coefficients[places] + self.site_effects)

    @property
    def table_column(self) -> TableColumn:
        """What `partsketch.table` shows."""
        told = (self.coefficients.tolist(), self.standard_errors.tolist(), self.p_values.tolist())
        deviations = zip(self.random_names, self.random_deviations, strict=True)
        facts = {
            "rows": f"{sum(self.site_rows):,}",
            "intercept": "common",
            "errors": self.method,
            "partitions": f"{len(self.site_names):,}",
            **{f"deviation of {name}": f"{value:.4g}" for name, value in deviations},
            "residual deviation": f"{np.sqrt(self.residual_variance):.4g}",
        }
        return TableColumn(self.target, dict(zip(self.column_names, map(Cell, *told), strict=True)), facts)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        names = ("name", "coefficient", "standard_error", "df", "t_value", "p_value", "lower", "upper")
        return {
            "model": "mixed",
            "target": self.target,
            "method": self.method,
            "rows": sum(self.site_rows),
            "level": level,
            "coefficients": [dict(zip(names, line, strict=True)) for line in self._lines(level)],
            "random": {
                "names": list(self.random_names),
                "covariance": self.random_covariance.tolist(),
                "standard_deviations": self.random_deviations.tolist(),
                "rank": self.rank,
            },
            "residual_variance": self.residual_variance,
            "log_likelihood": self.log_likelihood,
            "sites": [
                {"name": name, "rows": rows, "effects": effects, "errors": errors}
                for name, rows, effects, errors in zip(
                    self.site_names, self.site_rows, self.site_effects.tolist(), self.site_errors.tolist(), strict=True
                )
            ],
            "warnings": list(self.warnings),
        }

    def _lines(self, level: float) -> list[tuple[Any, ...]]:
        columns = (
            self.coefficients, self.standard_errors, self.degrees_of_freedom, self.t_values, self.p_values,
            *self.conf_int(level).T,
        )  # fmt: skip
        return list(zip(self.column_names, *(values.tolist() for values in columns), strict=True))

    def to_frame(self, level: float = 0.95) -> Any:
        """Return the common coefficients as a pandas data frame, indexed by name."""
        return import_pandas().DataFrame(self.to_dict(level)["coefficients"]).set_index("name")

    def site_frame(self) -> Any:
        """Return the coefficients of the random columns in each partition as a pandas data frame."""
        frame = import_pandas().DataFrame(self.site_coefficients, index=list(self.site_names))
        frame.columns = list(self.random_names)
        return frame

    def _parts(self, level: float) -> tuple[tuple[list[str], list[list[str]]], ...]:
        """Return the two tables: common coefficients, and what varies."""
        tail = (1 - level) / 2
        head = ["", "coef", "std err", "df", "t", "P>|t|", f"[{tail:.4g}", f"{1 - tail:.4g}]"]
        lines = [
            [
                name,
                estimate_text(value, error),
                estimate_text(error, error),
                f"{df:,.1f}" if df < 1000 else f"{df:,.0f}",
                f"{t:.2f}",
                p_value_text(p),
                estimate_text(low, error),
                estimate_text(high, error),
            ]
            for name, value, error, df, t, p, low, high in self._lines(level)
        ]
        size = len(self.random_names)
        correlations = self.random_correlations
        varies = [
            [
                name,
                f"{self.random_covariance[place, place]:.6g}",
                f"{self.random_deviations[place]:.5g}",
                *(
                    ("" if np.isnan(correlations[place, other]) else f"{correlations[place, other]:.3f}")
                    if other < place
                    else ""
                    for other in range(size - 1)
                ),
            ]
            for place, name in enumerate(self.random_names)
        ]
        rest = [""] * (size - 1)
        varies.append(["residual", f"{self.residual_variance:.6g}", f"{np.sqrt(self.residual_variance):.5g}", *rest])
        heads = ["varies", "variance", "deviation", *(f"corr {name}" for name in self.random_names[:-1])]
        return (head, lines), (heads, varies)

    def _facts(self) -> str:
        criterion = "" if self.log_likelihood is None else f", log-likelihood {self.log_likelihood:.6f}"
        return f"{sum(self.site_rows):,} rows in {len(self.site_names):,} partitions, {self.method}{criterion}"

    def __str__(self) -> str:
        first, second = self._parts(0.95)
        notes = "\n".join(f"· {note}" for note in (*self.warnings, _INTERVALS))
        title = f"Random effects of partitions: {self.target}"
        return f"{title}\n{self._facts()}\n\n{aligned(*first)}\n\n{aligned(*second)}\n\n{notes}"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, second = self._parts(0.95)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in (*self.warnings, _INTERVALS))
        title = html.escape(f"Random effects of partitions: {self.target}")
        tables = html_table(*first) + html_table(*second)
        return f"<p><b>{title}</b><br>{html.escape(self._facts())}</p>{tables}<ul>{notes}</ul>"

    def forest_lines(self, name: str) -> list[ForestLine]:
        """Return the coefficient of a random column in every partition, and the common one, with 95% intervals."""
        from scipy.special import ndtri

        if name not in self.random_names:
            raise InputError(f"{name!r} does not vary: choose among {', '.join(map(repr, self.random_names))}.")
        place, common = self.random_names.index(name), self.column_names.index(name)
        reach = float(ndtri(0.975)) * self.site_errors[:, place]
        rows = sum(self.site_rows)
        lines = [
            ForestLine(site, float(value), float(value - end), float(value + end), count / rows)
            for site, value, end, count in zip(
                self.site_names, self.site_coefficients[:, place], reach, self.site_rows, strict=True
            )
        ]
        low, high = self.conf_int()[common]
        return [*lines, ForestLine("common", float(self.coefficients[common]), float(low), float(high), None)]

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page with the tables and the coefficients of all partitions: one HTML file, nothing else."""
        from partsketch.report.forest_page import write_mixed

        write_mixed(self, Path(path))


def import_pandas() -> Any:
    """Return pandas, or say that it is missing."""
    try:
        import pandas
    except ImportError as error:
        raise InputError("to_frame needs pandas: install it, or use to_dict.") from error
    return pandas
