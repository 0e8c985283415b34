"""`Summaries.fit`: one regression, its model, and its standard errors by the covariance that was asked for."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.solution import Solution
from partsketch.model.build import Circumstances, build_model
from partsketch.model.model import Model
from partsketch.model.record import PartitionRecord, Record
from partsketch.model.regression import Regression, combine_solution, solve_summary
from partsketch.questions.choice import Names, choose_columns, read_formula
from partsketch.questions.clusters import clustered
from partsketch.questions.panel import Panel
from partsketch.questions.wild import Bootstrap
from partsketch.summaries.summary import Summary
from partsketch.summaries.tasks import INTERCEPT

if TYPE_CHECKING:
    from partsketch.questions.summaries import Intercept, Summaries

FloatArray = NDArray[np.float64]

VCOV = ("iid", "CRV1", "CRV3", "wild")


@dataclass(frozen=True, eq=False)
class Question:
    """A regression among the columns of summaries.

    Attributes
    ----------
    panel
        The factors of the partitions, in its coordinates.
    regression
        Columns and penalty.
    intercept
        "common", "partition" or False.
    """

    panel: Panel
    regression: Regression
    intercept: Intercept

    @cached_property
    def total(self) -> Summary:
        """The factor of all rows over the columns of the regression."""
        return self.summary(self.panel.total, self.panel.row_count, self.panel.weight_sum)

    def summary(self, factor: Any, rows: int, weight: float) -> Summary:
        """Return a factor of the panel's columns as a summary of the columns of the regression."""
        columns = self.regression.features + self.regression.targets
        chosen = self.panel.places(columns)
        return Summary(
            matrix=factor.high[:, chosen],
            low=factor.low[:, chosen],
            columns=columns,
            kind="triangular",
            parts=(),
            # An intercept for each partition has cost a degree of freedom each.
            row_count=rows - self.panel.absorbed,
            weight_sum=weight,
        )


def ask(
    summaries: Summaries,
    target: Names | None,
    features: Names | None,
    intercept: Intercept,
    alpha: float,
    vcov: str = "iid",
) -> Question:
    """Return the question that is asked, with its columns and the errors that are wanted checked."""
    _check_vcov(vcov, alpha, len(summaries))
    if isinstance(target, str) and "~" in target and target not in summaries.columns:
        if features is not None:
            raise InputError("Give features or a formula, not both: the formula names its features.")
        formula = read_formula(target, summaries.about.encoding)
        target, features = formula.target, formula.features
        if formula.intercept is False:
            intercept = False
    if not (isinstance(alpha, numbers.Real) and 0 <= alpha < np.inf):
        raise InputError(f"alpha is {alpha!r}: give a number, at least 0.")
    panel = summaries.panel(intercept)
    choice = choose_columns(summaries.factor_columns, summaries.about, target, features)
    columns = ((INTERCEPT,) if intercept == "common" else ()) + choice.features
    if not columns:
        raise InputError("There is nothing to fit: no features and no intercept.")
    coordinates = panel.coordinates(columns, choice.targets)
    free = int(intercept == "common")
    regression = Regression(columns, choice.targets, free, float(alpha), coordinates=coordinates)
    return Question(panel, regression, intercept)


def _check_vcov(vcov: str, alpha: float, count: int) -> None:
    """Refuse errors that are not known, or that such a fit of so many partitions has not."""
    if vcov not in VCOV:
        raise InputError(
            f"vcov is {vcov!r}: choose among {', '.join(VCOV)}, which take partitions for clusters; other errors need "
            "the rows."
        )
    if vcov != "iid" and alpha > 0:
        raise InputError(f"vcov={vcov!r} goes with alpha=0: a ridge fit is biased on purpose.")
    if vcov != "iid" and count < 2:
        raise InputError(
            f"vcov={vcov!r} takes partitions for clusters, and there is one only: summarise with partition_by, or ask "
            "for vcov='iid'."
        )


def fit_summaries(
    summaries: Summaries,
    target: Names | None,
    features: Names | None,
    intercept: Intercept,
    alpha: float,
    vcov: str,
    bootstrap: Bootstrap,
) -> Model:
    """Return the model of a regression among the columns."""
    question = ask(summaries, target, features, intercept, alpha, vcov)
    with one_thread_each():
        return answer(summaries, question, solved(question), vcov, bootstrap)


def answer(summaries: Summaries, question: Question, solution: Solution, vcov: str, bootstrap: Bootstrap) -> Model:
    """Return the model of a question that was solved."""
    warnings = () if vcov == "iid" else summaries.split_sentences
    model = model_of(summaries, question, solution, {"vcov": vcov}, warnings)
    if vcov == "iid":
        return model
    found = [
        clustered(question, solution, inference, number, vcov, bootstrap, summaries.names)
        for number, inference in enumerate(model.inferences)
    ]
    told = dict.fromkeys(sentence for _, sentences in found for sentence in sentences)
    record = replace(model.record, warnings=(*model.record.warnings, *told)) if told else model.record
    return replace(model, record=record, inferences=tuple(inference for inference, _ in found))


def solved(question: Question) -> Solution:
    """Return the solution of a question, in the coordinates of its panel."""
    solution = solve_summary(question.total, question.regression, question.regression.penalty)
    return replace(solution, total_sums=total_sums(question))


def total_sums(question: Question) -> FloatArray:
    """Return the sums of squares of the targets, around their means with an intercept: the ones are the first row."""
    panel, regression = question.panel, question.regression
    rest = panel.total.high[regression.free_columns :, panel.places(regression.targets)]
    return np.asarray(np.einsum("ij,ij->j", rest, rest))


def model_of(
    summaries: Summaries,
    question: Question,
    solution: Solution,
    options: dict[str, Any],
    warnings: Sequence[str] = (),
) -> Model:
    """Return the model of a solution."""
    regression = question.regression
    model = build_model(
        "exact",
        [question.total],
        combine_solution(solution),
        regression,
        _circumstances(summaries, question, options, warnings),
    )
    if question.intercept != "partition":
        return model
    means = question.panel.means
    assert means is not None
    of_targets, of_features = (
        means[:, question.panel.places(names)] for names in (regression.targets, regression.features)
    )
    partitions = tuple(
        PartitionRecord(name, rows, None, None)
        for name, rows in zip(summaries.names, summaries.row_counts, strict=True)
    )
    return replace(
        model,
        record=replace(model.record, partitions=partitions, warnings=_within_partitions(model.record)),
        partition_intercepts=of_targets - of_features @ model.coefficients,
        partition_coefficients=np.repeat(model.coefficients[None], len(means), axis=0),
    )


def _within_partitions(record: Record) -> tuple[str, ...]:
    """Return the warnings of a fit with intercepts of partitions, to which columns that are constant there are zero."""
    constant = [
        f"Column {column!r} is constant within every partition, whose intercept determines it; its coefficient is set "
        "to 0."
        for column, others in record.aliased
        if not others
    ]
    return (*constant, *(sentence for sentence in record.warnings if "is zero in every row" not in sentence))


def _circumstances(
    summaries: Summaries, question: Question, options: dict[str, Any], warnings: Sequence[str]
) -> Circumstances:
    regression = question.regression
    count = len(summaries)
    rows = question.panel.row_count
    return Circumstances(
        options={
            "method": "exact",
            "fit_intercept": question.intercept == "common",
            "intercept": question.intercept,
            "averaging": regression.averaging,
            "alpha": regression.penalty,
            **options,
        },
        seed=None,
        names=("all",),
        row_count=rows,
        weight_sum=question.panel.weight_sum,
        rows_dropped=summaries.rows_dropped,
        rows_left_out=0,
        reasons={"rows": "the model was made from exact summaries alone; no rows were read"},
        warnings=tuple(warnings),
        data=f"summaries of {count} partition{'' if count == 1 else 's'}, {rows:,} rows",
        encoding=summaries.about.encoding.narrowed(regression.features, regression.targets),
    )
