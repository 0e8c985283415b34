"""Whole paths of penalties with exact cross-validation: `Summaries.ridge_path` and `lasso_path`."""

from __future__ import annotations

import numbers
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each, triangular_factor
from partsketch.common.shown import ShownAsText
from partsketch.questions.choice import Names
from partsketch.questions.fit import Question, ask, model_of, solved
from partsketch.questions.folds import deal, make_folds
from partsketch.questions.penalised import Penalised

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.summaries import Intercept, Summaries

FloatArray = NDArray[np.float64]

_ALPHAS = 100
#: Smallest penalty of a path, as a part of the largest.
_LASSO_RANGE, _RIDGE_RANGE = 1e-3, 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class Path(ShownAsText):
    """Coefficients for a sequence of penalties, and what they lose on rows that they have not seen.

    Attributes
    ----------
    kind
        "ridge", "lasso" or "elastic net".
    target, feature_names
        Names of the columns.
    alphas
        Penalties, the largest first.
    coefficients, intercepts
        Of the fit to all rows, shapes (alphas, features) and (alphas,).
    fold_errors
        Mean squared error in each fold of the fit to all others, shape (alphas, folds).
    l1_ratio
        Share of the absolute penalty: 1 for the lasso, 0 for ridge regression.
    """

    kind: str
    target: str
    feature_names: tuple[str, ...]
    alphas: FloatArray
    coefficients: FloatArray
    intercepts: FloatArray
    fold_errors: FloatArray
    l1_ratio: float
    _asked: tuple[Any, ...]

    @property
    def cv_errors(self) -> FloatArray:
        """Mean over folds of the mean squared error, for every penalty."""
        return np.asarray(self.fold_errors.mean(axis=1))

    @property
    def cv_standard_errors(self) -> FloatArray:
        """Standard errors of these means, from the spread of the folds."""
        return np.asarray(self.fold_errors.std(axis=1, ddof=1) / np.sqrt(self.fold_errors.shape[1]))

    @property
    def best_alpha(self) -> float:
        """The penalty of least cross-validated error."""
        return float(self.alphas[int(np.argmin(self.cv_errors))])

    @property
    def one_standard_error_alpha(self) -> float:
        """The largest penalty whose error is within one standard error of the least."""
        best = int(np.argmin(self.cv_errors))
        within = self.cv_errors <= self.cv_errors[best] + self.cv_standard_errors[best]
        return float(self.alphas[int(np.argmax(within))])

    def model(self, alpha: float | str = "best") -> Model:
        """Return the model at a penalty: "best", "one_standard_error", or any number."""
        named = {"best": "best_alpha", "one_standard_error": "one_standard_error_alpha"}
        if isinstance(alpha, str):
            if alpha not in named:
                raise InputError(f"alpha is {alpha!r}: choose 'best', 'one_standard_error' or a number.")
            alpha = float(getattr(self, named[alpha]))
        return _model_at(self, alpha)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page with the error and the coefficients of the path: one HTML file that needs nothing else."""
        from partsketch.report.path_page import write_path

        write_path(self, FilePath(path))

    def to_dict(self) -> dict[str, Any]:
        """Return penalties, coefficients and errors as plain data."""
        return {
            "kind": self.kind,
            "target": self.target,
            "feature_names": list(self.feature_names),
            "l1_ratio": self.l1_ratio,
            "alphas": self.alphas.tolist(),
            "coefficients": self.coefficients.tolist(),
            "intercepts": self.intercepts.tolist(),
            "cv_errors": self.cv_errors.tolist(),
            "cv_standard_errors": self.cv_standard_errors.tolist(),
            "best_alpha": self.best_alpha,
            "one_standard_error_alpha": self.one_standard_error_alpha,
        }

    def __str__(self) -> str:
        from partsketch.questions.path_plot import plotted

        return plotted(self)


def ridge_path(
    summaries: Summaries,
    target: str,
    features: Names | None,
    alphas: Sequence[float] | None,
    folds: int | Sequence[int],
    intercept: Intercept,
) -> Path:
    """Return the path of ridge regressions."""
    return _path(summaries, target, features, alphas, 0.0, folds, intercept)


def lasso_path(
    summaries: Summaries,
    target: str,
    features: Names | None,
    alphas: Sequence[float] | None,
    l1_ratio: float,
    folds: int | Sequence[int],
    intercept: Intercept,
) -> Path:
    """Return the path of the lasso, or of an elastic net."""
    if not (isinstance(l1_ratio, numbers.Real) and 0 < l1_ratio <= 1):
        raise InputError(f"l1_ratio is {l1_ratio!r}: give a number above 0, at most 1; for 0 ask for ridge_path.")
    return _path(summaries, target, features, alphas, float(l1_ratio), folds, intercept)


def _path(
    summaries: Summaries,
    target: str,
    features: Names | None,
    alphas: Sequence[float] | None,
    l1_ratio: float,
    folds: int | Sequence[int],
    intercept: Intercept,
) -> Path:
    if intercept == "partition":
        raise InputError("A path has no intercepts of partitions: a fold that is left out would have none.")
    groups = deal(len(summaries), folds)
    question = ask(summaries, target, features, intercept, 0.0)
    if len(question.regression.targets) != 1:
        raise InputError("A path is of one target: ask for each alone.")
    if len(question.regression.features) == question.regression.free_columns:
        raise InputError("A path needs at least one feature.")
    with one_thread_each():
        problem = _problem(question, question.panel.total.high, float(question.panel.weight_sums.sum()))
        values = _checked(alphas, problem, l1_ratio)
        coefficients = problem.solve(values, l1_ratio)
        errors = _fold_errors(question, groups, values, l1_ratio)
    coordinates = question.regression.coordinates
    assert coordinates is not None
    raw = np.column_stack([coordinates.coefficients(row[:, None])[:, 0] for row in coefficients])
    free = question.regression.free_columns
    return Path(
        kind="ridge" if not l1_ratio else "lasso" if l1_ratio == 1 else "elastic net",
        target=question.regression.targets[0],
        feature_names=question.regression.features[free:],
        alphas=values,
        coefficients=raw[free:].T,
        intercepts=raw[0] if free else np.zeros(len(values)),
        fold_errors=errors,
        l1_ratio=l1_ratio,
        _asked=(summaries, intercept, problem),
    )


def _problem(question: Question, factor: FloatArray, weight: float) -> Penalised:
    regression, panel = question.regression, question.panel
    chosen = panel.places(regression.features + regression.targets)
    free = regression.free_columns
    return Penalised(triangular_factor(factor[:, chosen]), free, weight, panel.unit[chosen][free:])


def _checked(alphas: Sequence[float] | None, problem: Penalised, l1_ratio: float) -> FloatArray:
    if alphas is None:
        largest = problem.largest_alpha(l1_ratio)
        if not largest > 0 or not problem.inner[:, -1].any():
            raise InputError("The target, or every feature, is constant: there is no path.")
        return np.geomspace(largest, largest * (_LASSO_RANGE if l1_ratio else _RIDGE_RANGE), _ALPHAS)
    try:
        # The figures of a text are not penalties.
        values = np.array([] if isinstance(alphas, str) else list(alphas), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"alphas is {alphas!r}: give a list of positive numbers.") from error
    if not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise InputError("alphas must be positive numbers, at least one; for no penalty ask for fit.")
    return np.sort(values)[::-1].copy()


def _fold_errors(
    question: Question, groups: Sequence[Sequence[int]], alphas: FloatArray, l1_ratio: float
) -> FloatArray:
    """Return the mean squared error of every fold, for every penalty."""
    panel, regression = question.panel, question.regression
    chosen = panel.places(regression.features + regression.targets)
    scale = panel.unit[chosen[-1]] ** 2
    errors = np.empty((len(alphas), len(groups)))
    for number, fold in enumerate(make_folds(panel, groups)):
        problem = _problem(question, fold.outside, fold.weight_outside)
        solutions = problem.solve(alphas, l1_ratio)
        missed = fold.inside[:, chosen[-1]] - solutions @ fold.inside[:, chosen[:-1]].T
        errors[:, number] = np.einsum("ai,ai->a", missed, missed) * scale / fold.weight_inside
    return errors


def _model_at(path: Path, alpha: float) -> Model:
    if not (isinstance(alpha, numbers.Real) and 0 < alpha < np.inf):
        raise InputError(f"alpha is {alpha!r}: give a positive number; for no penalty ask for fit.")
    alpha = float(alpha)
    summaries, intercept, problem = path._asked
    if not path.l1_ratio:
        return summaries.fit(path.target, path.feature_names, intercept=intercept, alpha=alpha)
    question = ask(summaries, path.target, path.feature_names, intercept, alpha)
    with one_thread_each():
        # From the path above it: the same descent as the path itself.
        alphas = np.append(path.alphas[path.alphas > alpha], alpha)
        coefficients = problem.solve(alphas, path.l1_ratio)[-1][:, None]
        root, right = problem.factor[:, :-1], problem.factor[:, -1:]
        missed = right - root @ coefficients
        solution = replace(
            solved(question),
            coefficients=coefficients,
            residual_sums=np.einsum("ij,ij->j", missed, missed),
            aliased=(),
        )
        model = model_of(summaries, question, solution, {"l1_ratio": path.l1_ratio})
    reason = f"a fit of the {path.kind} is biased on purpose, and intervals around it would miss the true coefficients"
    return replace(
        model,
        certificates=tuple(
            replace(
                certificate,
                reason=reason,
                sentence=f"Nothing is said of the excess loss: a fit of the {path.kind} is biased on purpose.",
            )
            for certificate in model.certificates
        ),
        inferences=tuple(replace(inference, reason=reason) for inference in model.inferences),
    )
