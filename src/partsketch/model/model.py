"""The fitted model: coefficients, how they came about, predictions, and a file in JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model import intervals
from partsketch.model.certificate import Certificate
from partsketch.model.effects import absorbed_column, effects_of, open_for_prediction
from partsketch.model.inference import Inference
from partsketch.model.instruments import InstrumentTests
from partsketch.model.intervals import SUBJECTS, TRUTH, RestrictionTest, ends, spread_of
from partsketch.model.outlook import Outlook, Settled
from partsketch.model.prediction_intervals import checked, errors_of_predictions, intervals_of_predictions
from partsketch.model.record import Record
from partsketch.sources.base import Source
from partsketch.sources.encoding import Encoding
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.model.summary_table import FitSummary

FloatArray = NDArray[np.float64]

_NO_OUTLOOK = Settled(Outlook.nothing("the model was not made from summaries"))


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A fitted linear model.

    Attributes
    ----------
    feature_names, target_names
        Column names.
    coefficients
        Shape (features, targets).
    intercept
        One per target; zeros without an intercept.
    partition_coefficients, partition_intercepts
        Of the fits that were averaged: shapes (k, features, targets) and (k, targets); a single one when solved once.
    record
        How the model came about.
    centre, level
        Features at which predictions are equal to `level`: what other rows are predicted from. A column of time stamps
        has an intercept that is a difference of huge numbers; around the centre nothing is.
    encoding
        One-hot encoding of text columns.
    instruments
        Tests of the instruments of two-stage least squares; None for other fits.
    look_ahead
        Finds the outlook; it is asked once, when the outlook is first used, because it costs as much as a small fit.
    """

    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    coefficients: FloatArray
    intercept: FloatArray
    partition_coefficients: FloatArray
    partition_intercepts: FloatArray
    certificates: tuple[Certificate, ...]
    inferences: tuple[Inference, ...]
    record: Record
    centre: FloatArray
    level: FloatArray
    encoding: Encoding = field(default_factory=Encoding)
    instruments: InstrumentTests | None = None
    look_ahead: Callable[[], Outlook] = field(default=_NO_OUTLOOK)

    @cached_property
    def outlook(self) -> Outlook:
        """What other numbers of partitions and sketch sizes would lose, and how unlike the partitions are."""
        return self.look_ahead()

    def __getstate__(self) -> dict[str, Any]:
        # What survives pickling is the outlook, not the summaries it is made from.
        return {**vars(self), "look_ahead": Settled(self.outlook)}

    @property
    def certificate(self) -> Certificate:
        """The certificate of the only target; with several, see `certificates`."""
        if len(self.certificates) != 1:
            raise InputError("The model has several targets: see certificates, one for each.")
        return self.certificates[0]

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of all estimated columns: the intercept first, if there is one."""
        return ((INTERCEPT,) if self.record.options["fit_intercept"] else ()) + self.feature_names

    @property
    def column_coefficients(self) -> FloatArray:
        """Coefficients of all estimated columns, shape (columns, targets)."""
        if not self.record.options["fit_intercept"]:
            return self.coefficients
        return np.vstack([self.intercept, self.coefficients])

    def inference_table(
        self, number: int, level: float = 0.95, kind: str = "model", of: str = TRUTH
    ) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None, FloatArray | None, FloatArray | None]:
        """Return standard errors, t values, p values, lower and upper ends for target `number`; None if unavailable."""
        try:
            spread = spread_of(self, number, kind, of)
        except InputError:
            if kind != "model" or of not in SUBJECTS:
                raise
            return None, None, None, None, None
        lower, upper = ends(spread, level)
        t_values, p_values = spread.tests()
        return spread.errors, t_values, p_values, lower, upper

    @property
    def standard_errors(self) -> FloatArray:
        """Standard errors in the order of `column_names`, by the vcov of the fit; (targets, columns) for several."""
        return intervals.by_target(self, lambda spread: spread.errors)

    @property
    def t_values(self) -> FloatArray:
        """Coefficients in units of their standard errors, in the same order."""
        return intervals.by_target(self, lambda spread: spread.tests()[0])

    @property
    def p_values(self) -> FloatArray:
        """Two-sided p-values of the coefficients being zero, in the same order."""
        return intervals.by_target(self, lambda spread: spread.tests()[1], with_errors=False)

    @property
    def r_squared(self) -> FloatArray:
        """Share of each target's variation (around its mean, or zero without an intercept) explained; NaN: unknown."""
        return np.array([inference.r_squared for inference in self.inferences], dtype=np.float64)

    def conf_int(self, level: float = 0.95, kind: str = "model", of: str = TRUTH) -> FloatArray:
        """Return confidence intervals for the coefficients, true ones or those of exact least squares.

        Parameters
        ----------
        level
            Nominal coverage.
        kind
            "model" is by the vcov of the fit, by default independent noise of one variance; "spread" uses the spread of
            the partitions' fits around their average with t quantiles of k − 1 degrees of freedom, and no noise model.
        of
            "truth": intervals for the true coefficients. "exact": for the answer that exact least squares gives on the
            same rows; for "whole" with Gaussian sketches they are exact for any data, without a noise model, and for
            exact fits they have no width.

        Returns
        -------
        numpy.ndarray
            Lower and upper ends in the order of `column_names`, shape (columns, 2); (targets, columns, 2) for several
            targets.
        """
        return intervals.conf_int(self, level, kind, of)

    def test(self, restrictions: str | Model, *, of: str = TRUTH, target: str | None = None) -> RestrictionTest:
        """Test linear restrictions on the coefficients by an F test.

        Parameters
        ----------
        restrictions
            Equations, separated by commas, such as "distance = 2, night = 0" or "a + 2*b = c". Names with blanks or
            signs stand in backticks or quotes, terms of formulas as they are; (intercept) is the intercept. Or a model
            with fewer features: tests that the coefficients that it lacks are zero.
        of
            As in `conf_int`: whether the restrictions are on the true coefficients, or on those of exact least squares.
        target
            Which target, where there are several.

        Returns
        -------
        RestrictionTest
            With `statistic`, `df` and `p_value`.
        """
        return intervals.tested(self, restrictions, of, target)

    def summary(self, level: float = 0.95, kind: str = "model", of: str = TRUTH, *, stars: bool = False) -> FitSummary:
        """Return the fit as a table: coefficients, standard errors, t and p values, intervals, and the certificate.

        Parameters
        ----------
        level, kind, of
            As in `conf_int`.
        stars
            Whether coefficients are marked by their p-values: one star below 0.05, two below 0.01, three below 0.001.

        Returns
        -------
        FitSummary
            Print it, or take `to_latex`, `to_html`, `to_csv`, `to_frame` or `to_dict`.
        """
        from partsketch.model.summary_table import summarise_model

        return summarise_model(self, level, kind, of, stars)

    def __repr__(self) -> str:
        return self.summary().shortened()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def method(self) -> str:
        """The method of the fit."""
        return str(self.record.options["method"])

    def predict_blocks(self, source: Source, block_rows: int = 65536) -> Iterator[tuple[NDArray[np.int64], FloatArray]]:
        """Yield row numbers and predictions (rows × targets), block by block."""
        buffer = np.empty((len(self.feature_names), block_rows))
        effects = None if absorbed_column(self) is None else effects_of(self, source)
        for block in source.read(0, None, block_rows):
            columns = buffer[:, : len(block)]
            block.copy_into(columns, 0, len(block))
            predicted = checked(block.row_numbers, self.predicted(columns))
            yield block.row_numbers, predicted if effects is None else predicted + effects[block.labels]

    def predicted(self, columns: FloatArray) -> FloatArray:
        """Return predictions (rows × targets) from features held as columns (features × rows)."""
        columns = columns - self.centre[:, None] if self.centre.any() else columns
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(columns.T @ self.coefficients + self.level)

    def predict(
        self,
        data: Any,
        missing: Literal["error", "drop"] = "error",
        *,
        interval: Literal["confidence", "prediction"] | None = None,
        level: float = 0.95,
    ) -> FloatArray:
        """Predict the targets of all rows of an array, data frame, file or glob.

        Parameters
        ----------
        data
            Anything that `partsketch.fit` takes; the target column is not needed.
        missing
            "error" refuses missing values; "drop" leaves their rows out.
        interval
            "confidence": where the mean of such rows lies, by the vcov of the fit. "prediction": where a new row lies,
            whose noise is taken for normal, of the variance of the residuals.
        level
            Nominal coverage of the intervals.

        Returns
        -------
        numpy.ndarray
            One prediction per row; shape (rows, targets) when the model has several targets. With an interval one more
            axis at the end: fit, lower, upper.
        """
        if interval is not None:
            return intervals_of_predictions(self, self.open_for_prediction(data, missing), interval, level)
        parts = [values for _, values in self.predict_blocks(self.open_for_prediction(data, missing))]
        predictions = np.concatenate(parts) if parts else np.empty((0, len(self.target_names)))
        return predictions[:, 0] if len(self.target_names) == 1 else predictions

    def prediction_errors(self, data: Any, missing: Literal["error", "drop"] = "error") -> FloatArray:
        """Return standard errors of what is predicted in the mean, by the vcov of the fit; shaped as predictions."""
        return errors_of_predictions(self, self.open_for_prediction(data, missing))

    def open_for_prediction(self, data: Any, missing: Literal["error", "drop"] = "error") -> Source:
        """Open data with the columns, and the encoding of text columns, that this model was fitted with."""
        return open_for_prediction(self, data, missing)

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, whole or not at all."""
        from partsketch.model.file import save

        save(self, path)

    def report(self, path: str | Path, data: Any = None) -> None:
        """Write a report of the model: one HTML file that needs nothing else.

        Parameters
        ----------
        path
            The file to write.
        data
            The rows of the fit, for diagnostics of residuals from a sample of them; None leaves these out.
        """
        from partsketch.report.page import write_report

        write_report([self], path, data)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data, ready for JSON."""
        from partsketch.model.file import to_dict

        return to_dict(self)
