"""Whole paths of penalties with exact cross-validation: `Summaries.ridge_path` and `lasso_path`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import one_thread_each, triangular_factor
from partsketch.questions.choice import Names
from partsketch.questions.descent import minimise
from partsketch.questions.fit import Question, ask, model_of, solved
from partsketch.questions.folds import deal, make_folds

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.questions.summaries import Intercept, Summaries

FloatArray = NDArray[np.float64]

_ALPHAS = 100
#: Smallest penalty of a path, as a part of the largest.
_LASSO_RANGE, _RIDGE_RANGE = 1e-3, 1e-8
#: A column that varies by less than this part of its spread in all rows is constant but for rounding.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Path:
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
        return _model_at(self, float(alpha))

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
    if not (isinstance(l1_ratio, int | float) and 0 < l1_ratio <= 1):
        raise InputError(f"l1_ratio is {l1_ratio!r}: give a number above 0, at most 1; for 0 ask for ridge_path.")
    return _path(summaries, target, features, alphas, float(l1_ratio), folds, intercept)


@dataclass(frozen=True, eq=False)
class _Problem:
    """A penalised regression on a factor in the coordinates of a panel.

    Attributes
    ----------
    factor
        Of the features (the ones first, if free is 1) and the target.
    free
        1 with an intercept.
    weight
        Weight of the rows behind it.
    units
        Of the features without the ones, and of the target.
    """

    factor: FloatArray
    free: int
    weight: float
    units: FloatArray

    @property
    def inner(self) -> FloatArray:
        """The factor of the columns around their means; of a column that does not vary, only rounding is left."""
        inner = self.factor[self.free :, self.free :].copy()
        # A column that varies inside one fold only is constant outside it: a penalty makes its coefficient zero.
        inner[:, np.linalg.norm(inner, axis=0) <= _NOTHING * np.sqrt(self.weight)] = 0.0
        return inner

    def largest_alpha(self, l1_ratio: float) -> float:
        """Return the penalty from which on all coefficients are zero; for ridge, that of the largest curvature."""
        root, right = self.inner[:, :-1], self.inner[:, -1]
        if l1_ratio:
            pull = np.abs(root.T @ right) * self.units[:-1] * self.units[-1]
            return float(pull.max(initial=0.0) / (self.weight * l1_ratio))
        return float(np.linalg.norm(root * self.units[:-1], 2) ** 2)

    def solve(self, alphas: FloatArray, l1_ratio: float) -> FloatArray:
        """Return coefficients in these coordinates, the intercept first if there is one, shape (alphas, columns)."""
        slopes = self._lasso(alphas, l1_ratio) if l1_ratio else self._ridge(alphas)
        if not self.free:
            return slopes
        first = self.factor[0]
        levels = (first[-1] - slopes @ first[1:-1]) / first[0]
        return np.column_stack([levels, slopes])

    def _ridge(self, alphas: FloatArray) -> FloatArray:
        """Solve by a factor with the penalty as further rows, all penalties at once."""
        root, right = self.inner[:, :-1], self.inner[:, -1]
        height, width = root.shape
        rows = np.zeros((len(alphas), height + width, width + 1))
        rows[:, :height, :width], rows[:, :height, width] = root, right
        rows[:, height:, :width] = np.sqrt(alphas)[:, None, None] * np.diag(1.0 / self.units[:-1])
        factors = np.linalg.qr(rows, mode="r")[:, :width]
        return np.asarray(np.linalg.solve(factors[:, :, :width], factors[:, :, width:])[..., 0])

    def _lasso(self, alphas: FloatArray, l1_ratio: float) -> FloatArray:
        root, right = np.ascontiguousarray(self.inner[:, :-1]), np.ascontiguousarray(self.inner[:, -1])
        columns, target = self.units[:-1], self.units[-1]
        found, current = [], np.zeros(root.shape[1])
        for alpha in alphas:
            absolute = self.weight * alpha * l1_ratio / (target * columns)
            squares = self.weight * alpha * (1 - l1_ratio) / columns**2
            current = minimise(root, right, absolute, squares, current)
            found.append(current)
        return np.array(found)


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


def _problem(question: Question, factor: FloatArray, weight: float) -> _Problem:
    regression, panel = question.regression, question.panel
    chosen = panel.places(regression.features + regression.targets)
    free = regression.free_columns
    return _Problem(triangular_factor(factor[:, chosen]), free, weight, panel.unit[chosen][free:])


def _checked(alphas: Sequence[float] | None, problem: _Problem, l1_ratio: float) -> FloatArray:
    if alphas is None:
        largest = problem.largest_alpha(l1_ratio)
        if not largest > 0:
            raise InputError("The target, or every feature, is constant: there is no path.")
        return np.geomspace(largest, largest * (_LASSO_RANGE if l1_ratio else _RIDGE_RANGE), _ALPHAS)
    values = np.array(list(alphas), dtype=np.float64)
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
    if not (0 < alpha < np.inf):
        raise InputError(f"alpha is {alpha!r}: give a positive number; for no penalty ask for fit.")
    summaries, intercept, problem = path._asked
    if not path.l1_ratio:
        return summaries.fit(path.target, path.feature_names, intercept=intercept, alpha=alpha)  # type: ignore[no-any-return]
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
