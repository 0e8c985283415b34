"""Two-stage least squares from summaries: the factor of [Z X y] holds both stages.

With T the factor of all rows in the order instruments Z (the exogenous columns among them), features X, target y, the
rows of T that belong to Z hold the projections of X and y on Z; least squares of one on the other is the second stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each
from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.solution import Solution
from partsketch.common.linalg.solve import ROUNDING, factor_of_rows, solve_least_squares
from partsketch.model.certificate import unavailable_certificate
from partsketch.model.explained import is_rounding
from partsketch.model.held import lengths, level_held, no_covariance, product_held, root_kept
from partsketch.model.inference import Inference, restored_variance
from partsketch.model.instruments import FirstStage, InstrumentTests, Overidentification
from partsketch.model.intervals import tested_in
from partsketch.model.model import Model
from partsketch.model.unseen import unseen_noise
from partsketch.questions.choice import Names, as_names, expanded, require_column, require_distinct
from partsketch.questions.clusters import Scores, crv1_scale
from partsketch.questions.fit import Question, ask, model_of, total_sums
from partsketch.questions.wild import Bootstrap

if TYPE_CHECKING:
    from partsketch.questions.summaries import Intercept, Summaries

FloatArray = NDArray[np.float64]

#: Why two-stage least squares has no excess loss, and says nothing of the coefficients of least squares.
_ANOTHER_AIM = "instruments aim at other coefficients than least squares does"


@dataclass(frozen=True, eq=False)
class _Stages:
    """Two-stage least squares in the coordinates of a panel.

    Attributes
    ----------
    question
        The second stage.
    instruments
        All columns that may explain: exogenous features, then those outside the regression.
    excluded
        How many of them are outside the regression.
    solution
        Of the second stage; its residual sum is that of the rows, not of the projections.
    projection
        P with Z P the projected features, shape (instruments, features).
    """

    question: Question
    instruments: tuple[str, ...]
    excluded: int
    solution: Solution
    projection: FloatArray


def instrument(
    summaries: Summaries,
    target: str,
    endogenous: Names,
    instruments: Names,
    exogenous: Names,
    intercept: Intercept,
    vcov: str,
) -> Model:
    """Return the model of two-stage least squares."""
    if vcov not in ("iid", "CRV1"):
        raise InputError(f"vcov is {vcov!r}: two-stage least squares has 'iid' and 'CRV1'.")
    if vcov != "iid" and len(summaries) < 2:
        raise InputError(f"vcov={vcov!r} takes partitions for clusters, and there is one only: ask for vcov='iid'.")
    encoding = summaries.about.encoding
    explained, outside, included = (
        tuple(expanded(as_names(names), encoding)) for names in (endogenous, instruments, exogenous)
    )
    if not isinstance(target, str):
        raise InputError(f"target is {target!r}: name one column, for two-stage least squares explains one.")
    _check(summaries, target, explained, outside, included)
    question = ask(summaries, target, (*included, *explained), intercept, 0.0)
    with one_thread_each():
        stages = _solve(question, explained, outside, included)
        model = model_of(
            summaries,
            question,
            stages.solution,
            {"vcov": vcov, "endogenous": list(explained), "instruments": list(outside)},
            () if vcov == "iid" else summaries.split_sentences,
        )
        inference, told = _inference(stages, model.inferences[0], vcov)
        tests = InstrumentTests(
            first_stages=tuple(_first_stage(summaries, stages, name, vcov, intercept) for name in explained),
            overidentification=_overidentification(stages),
        )
    sentence = f"The fit is exact two-stage least squares; its loss is not compared: {_ANOTHER_AIM}."
    certificate = replace(unavailable_certificate(_ANOTHER_AIM), sentence=sentence)
    record = replace(model.record, warnings=(*model.record.warnings, *told))
    return replace(model, record=record, inferences=(inference,), certificates=(certificate,), instruments=tests)


def _check(
    summaries: Summaries,
    target: str,
    explained: tuple[str, ...],
    outside: tuple[str, ...],
    included: tuple[str, ...],
) -> None:
    columns = summaries.factors[0].columns
    for name in (*explained, *outside, *included):
        require_column(columns, name)
    require_distinct((target, *included, *explained, *outside))
    if not explained:
        raise InputError("Name at least one endogenous column; without one ask for fit.")
    if len(outside) < len(explained):
        raise InputError(
            f"{len(explained)} endogenous columns need at least as many instruments, and there are {len(outside)}: "
            "name more instruments."
        )


def _solve(
    question: Question, explained: tuple[str, ...], outside: tuple[str, ...], included: tuple[str, ...]
) -> _Stages:
    panel, regression = question.panel, question.regression
    ones = regression.features[: regression.free_columns]
    instruments = (*ones, *included, *outside)
    columns = (*instruments, *regression.features, *regression.targets)
    chosen = panel.places(columns)
    count, width = len(instruments), len(regression.features)
    total = DoubleDouble(panel.total.high[:, chosen], panel.total.low[:, chosen])
    first = solve_least_squares(
        total.high[:, : count + width], instruments, width, regression.free_columns, low=total.low[:, : count + width]
    )
    if first.rank < count:
        raise InputError(
            f"The instruments and exogenous columns are dependent ({first.aliased[0].column!r} adds nothing): leave it "
            "out."
        )
    # Exogenous columns are in both: factor the instruments, the endogenous columns and the target, each once.
    once = [*range(count), *[count + regression.features.index(name) for name in explained], count + width]
    factor = factor_of_rows(DoubleDouble(total.high[:, once], total.low[:, once]))
    order = [
        instruments.index(name) if name in instruments else count + explained.index(name)
        for name in regression.features
    ]
    rows = slice(0, count)
    projected = factor.high[rows][:, [*order, count + len(explained)]]
    low = factor.low[rows][:, [*order, count + len(explained)]]
    solution = solve_least_squares(projected, regression.features, 1, regression.free_columns, low=low)
    if solution.rank < width:
        raise InputError(
            f"The instruments do not determine the coefficient of {solution.aliased[0].column!r}: name instruments "
            "that are related to it."
        )
    whole = factor.high[:, [*order, count + len(explained)]]
    missed = whole[:, -1:] - whole[:, :-1] @ solution.coefficients
    residual_sums = np.einsum("ij,ij->j", missed, missed)
    # Neither errors nor tests are made of what rounding leaves.
    sizes = np.linalg.norm(whole, axis=0)
    added = float(np.abs(solution.coefficients[:, 0]) @ sizes[:-1] + sizes[-1])
    loss = float(residual_sums[0])
    if loss <= (ROUNDING * added) ** 2 or is_rounding(loss, [question.total], regression, 0):
        residual_sums = np.zeros(1)
    solution = replace(solution, residual_sums=residual_sums, total_sums=total_sums(question))
    return _Stages(question, instruments, len(outside), solution, first.coefficients)


def _scores(stages: _Stages) -> Scores:
    """Return what the partitions contribute: projected features in coordinates of identity, residuals of the rows."""
    panel, regression = stages.question.panel, stages.question.regression
    features, target = panel.places(regression.features), panel.places(regression.targets)[0]
    residuals = panel.high[:, :, target] - panel.high[:, :, features] @ stages.solution.coefficients[:, 0]
    projected = panel.high[:, :, panel.places(stages.instruments)] @ stages.projection
    return Scores(projected @ stages.solution.inverse_root, residuals, stages.solution.inverse_root)


def _inference(stages: _Stages, inference: Inference, vcov: str) -> tuple[Inference, list[str]]:
    """Return the inference of the second stage, and what is to be said of it."""
    question, solution = stages.question, stages.solution
    coordinates = question.regression.coordinates
    assert coordinates is not None
    rows = int(question.panel.row_counts.sum()) - question.panel.absorbed
    freedom = rows - solution.rank
    if freedom <= 0:
        raise InputError(f"{rows} rows leave no degrees of freedom after rank {solution.rank}.")
    variance = float(solution.residual_sums[0]) / freedom
    spread = np.sqrt(variance) * np.eye(solution.rank)
    transformation = coordinates.transformation(0) @ solution.inverse_root
    told = []
    if variance == 0:
        told = ["The fit leaves no residuals: its errors are zero, and the instruments cannot be tested by them."]
    elif vcov == "CRV1":
        spread = np.sqrt(crv1_scale(question, solution.rank)) * _scores(stages).values
        clusters, names = question.panel.count, question.regression.features
        told = unseen_noise(vcov, spread, transformation, names, clusters - 1, variance)
    root = spread @ transformation.T
    around = spread @ (coordinates.scaling(0) @ solution.inverse_root).T
    known = inference.around_exact
    changed = replace(
        inference,
        around_exact=replace(known, standard_errors=None, covariance=None, basis="", reason=_ANOTHER_AIM),
        standard_errors=lengths(root),
        degrees_of_freedom=float(freedom if vcov == "iid" else question.panel.count - 1),
        noise_variance=restored_variance(variance, question.regression, 0),
        covariance=product_held(root),
        level_covariance=level_held(around) if coordinates.free else None,
        covariance_root=root_kept(around, coordinates, solution.condition),
        reason="",
        vcov=vcov,
    )
    return changed, told


def _first_stage(summaries: Summaries, stages: _Stages, name: str, vcov: str, intercept: Intercept) -> FirstStage:
    """Return the F test that the instruments outside the regression say nothing of an endogenous column."""
    from partsketch.questions.fit import fit_summaries

    features = tuple(other for other in stages.instruments if other in summaries.columns)
    model = fit_summaries(summaries, name, features, intercept, 0.0, vcov, Bootstrap())
    inference = model.inferences[0]
    if inference.noise_variance == 0:
        raise InputError(
            f"The instruments and exogenous columns leave nothing of {name!r} but rounding, so nothing of it is "
            "endogenous: ask for fit, name other instruments, or take a constant off a column far from zero."
        )
    if inference.covariance is None:
        raise no_covariance(len(model.column_names))
    assert inference.degrees_of_freedom is not None
    width = len(model.column_names)
    matrix = np.eye(width)[width - stages.excluded :]
    try:
        test = tested_in(model, 0, matrix, np.zeros(len(matrix)), inference.degrees_of_freedom)
    except InputError as error:
        fewer = "" if vcov == "iid" else ", or are not fewer than the clusters"
        raise InputError(
            f"The first stage of {name!r} cannot be tested: instruments nearly determine one another{fewer}; name "
            "fewer instruments."
        ) from error
    return FirstStage(name, test.statistic, test.df, test.p_value)


def _overidentification(stages: _Stages) -> Overidentification | None:
    """Return Sargan's test, which takes noise for independent; None without residuals, or more instruments."""
    from scipy.special import chdtrc

    width = len(stages.question.regression.features)
    extra = len(stages.instruments) - width
    if extra == 0 or stages.solution.residual_sums[0] == 0:
        return None
    panel, regression = stages.question.panel, stages.question.regression
    chosen = panel.places((*stages.instruments, *regression.features, *regression.targets))
    total = panel.total.high[:, chosen]
    count = len(stages.instruments)
    missed = total[:, -1] - total[:, count:-1] @ stages.solution.coefficients[:, 0]
    found = solve_least_squares(np.column_stack([total[:, :count], missed]), stages.instruments)
    explained = float(missed @ missed) - float(found.residual_sums[0])
    rows = int(panel.row_counts.sum())
    statistic = rows * explained / float(missed @ missed)
    return Overidentification(statistic, extra, float(chdtrc(extra, statistic)))
