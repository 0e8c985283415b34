"""Tools that fit least squares with their usual settings, and what each of them predicts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.problem import FloatArray
from benchmarks.verdicts import in_words


@dataclass(frozen=True)
class Answer:
    """Coefficients, the intercept first if there is one, and predictions of the rows of the fit."""

    coefficients: FloatArray
    predictions: FloatArray


@dataclass(frozen=True)
class Tool:
    """A way to fit; `fit` takes features, target, and whether there is an intercept."""

    name: str
    label: str
    fit: Callable[[FloatArray, FloatArray, bool], Answer]


def answer_of(tool: Tool, X: FloatArray, y: FloatArray, intercept: bool) -> Answer | str:
    """Return the answer of a tool, or in words why there is none."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return tool.fit(X, y, intercept)
        except Exception as error:  # a rival may fail in any way; that is what is measured
            return in_words(f"{type(error).__name__}: {error}".splitlines()[0])


def _matrix(X: FloatArray, intercept: bool) -> FloatArray:
    return np.column_stack([np.ones(len(X)), X]) if intercept else X


def _from_coefficients(X: FloatArray, intercept: bool, found: FloatArray) -> Answer:
    return Answer(np.asarray(found), np.asarray(_matrix(X, intercept) @ found))


def _exact(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    from partsketch import SketchedRegression

    fitted = SketchedRegression("exact", fit_intercept=intercept).fit(X, y)
    return Answer(fitted.model_.column_coefficients[:, 0], fitted.predict(X))


def _merged(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    import partsketch as ps

    parts = np.array_split(np.column_stack([X, y]), min(4, len(y)))
    summaries = [
        ps.sketch(part, f"x{X.shape[1]}", sketch="triangular", site=str(number), fit_intercept=intercept)
        for number, part in enumerate(parts)
    ]
    model = ps.combine(summaries)
    return Answer(model.column_coefficients[:, 0], model.predict(X))


def _numpy(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    return _from_coefficients(X, intercept, np.asarray(np.linalg.lstsq(_matrix(X, intercept), y)[0], dtype=np.float64))


def _gelsy(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    from scipy.linalg import lstsq

    return _from_coefficients(X, intercept, lstsq(_matrix(X, intercept), y, lapack_driver="gelsy")[0])


def _scikit_learn(tolerance: float) -> Callable[[FloatArray, FloatArray, bool], Answer]:
    def fit(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
        from sklearn.linear_model import LinearRegression

        line = LinearRegression(fit_intercept=intercept, tol=tolerance).fit(X, y)
        return Answer(np.array([line.intercept_, *line.coef_] if intercept else line.coef_), line.predict(X))

    return fit


def _statsmodels(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    import statsmodels.api as sm

    return _from_coefficients(X, intercept, sm.OLS(y, _matrix(X, intercept)).fit().params)


def _intelex(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    from sklearnex.linear_model import LinearRegression

    line = LinearRegression(fit_intercept=intercept).fit(X, y)
    slopes = np.ravel(line.coef_)
    start = np.ravel(line.intercept_)[:1]
    return Answer(np.concatenate([start, slopes]) if intercept else slopes, np.ravel(line.predict(X)))


def _polars_ols(X: FloatArray, y: FloatArray, intercept: bool) -> Answer:
    import polars as pl
    import polars_ols  # noqa: F401 (registers the expression)

    names = [f"x{number}" for number in range(X.shape[1])]
    frame = pl.DataFrame({**dict(zip(names, X.T.copy(), strict=True)), "y": y})
    columns = [pl.col(name) for name in names]
    fitted = pl.col("y").least_squares.ols(*columns, add_intercept=intercept, mode="coefficients")
    values = np.array(frame.select(fitted.alias("fitted")).unnest("fitted").row(0), dtype=np.float64)
    return _from_coefficients(X, intercept, np.roll(values, 1) if intercept else values)


TOOLS = (
    Tool("ours", "partsketch", _exact),
    Tool("ours-merged", "partsketch, 4 partitions merged", _merged),
    Tool("numpy", "NumPy lstsq", _numpy),
    Tool("gelsy", "SciPy gelsy", _gelsy),
    Tool("scikit-learn", "scikit-learn", _scikit_learn(1e-6)),
    Tool("scikit-learn-tol", "scikit-learn, tol=1e-16", _scikit_learn(1e-16)),
    Tool("statsmodels", "statsmodels OLS", _statsmodels),
    Tool("intelex", "scikit-learn-intelex", _intelex),
    Tool("polars-ols", "polars-ols", _polars_ols),
)
