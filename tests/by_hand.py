"""Weighted least squares and what follows from it, written out by hand in extended precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

FloatArray = NDArray[np.float64]
LongArray = NDArray[np.longdouble]


def solved(matrix: LongArray, values: LongArray) -> LongArray:
    """Gaussian elimination with pivots: NumPy's own solver knows doubles only."""
    work = np.column_stack([matrix, values]).astype(np.longdouble)
    size = len(work)
    for column in range(size):
        pivot = column + int(np.argmax(np.abs(work[column:, column])))
        work[[column, pivot]] = work[[pivot, column]]
        work[column] /= work[column, column]
        for row in range(size):
            if row != column:
                work[row] -= work[row, column] * work[column]
    return work[:, size:]


@dataclass(frozen=True)
class Judged:
    """Everything that an exact fit reports."""

    rows: int
    weight_sum: float
    coefficients: FloatArray
    inverse: FloatArray
    gram: FloatArray
    loss: float
    total: float

    @property
    def freedom(self) -> int:
        return self.rows - len(self.coefficients)

    @property
    def noise(self) -> float:
        return self.loss / self.freedom

    @property
    def r_squared(self) -> float:
        return 1 - self.loss / self.total

    @property
    def standard_errors(self) -> FloatArray:
        return np.sqrt(self.noise * np.diagonal(self.inverse))

    def table(self, level: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """t values, p values, lower and upper ends."""
        t_values = self.coefficients / self.standard_errors
        reach = stats.t.ppf((1 + level) / 2, self.freedom) * self.standard_errors
        p_values = 2 * stats.t.sf(np.abs(t_values), self.freedom)
        return t_values, p_values, self.coefficients - reach, self.coefficients + reach


def design_of(X: ArrayLike, intercept: bool) -> FloatArray:
    features = np.asarray(X, dtype=np.float64)
    return np.column_stack([np.ones(len(features)), features]) if intercept else features


def judged(
    X: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None, intercept: bool = True, penalty: float = 0.0
) -> Judged:
    """min Σ w (y − Xa)² + penalty ‖a‖², the intercept not penalised; the loss leaves the penalty out.

    Rows of weight zero are no observations.
    """
    A = design_of(X, intercept).astype(np.longdouble)
    target = np.asarray(y, dtype=np.longdouble)
    w = np.ones(len(A), np.longdouble) if weights is None else np.asarray(weights, dtype=np.longdouble)
    gram = (A * w[:, None]).T @ A
    extra = np.eye(A.shape[1], dtype=np.longdouble) * penalty
    if intercept:
        extra[0, 0] = 0
    both = solved(gram + extra, np.column_stack([A.T @ (w * target), np.eye(A.shape[1], dtype=np.longdouble)]))
    residual = target - A @ both[:, 0]
    mean = (w @ target) / w.sum() if intercept else np.longdouble(0)
    return Judged(
        rows=int(np.count_nonzero(w)),
        weight_sum=float(w.sum()),
        coefficients=both[:, 0].astype(np.float64),
        inverse=both[:, 1:].astype(np.float64),
        gram=gram.astype(np.float64),
        loss=float(w @ residual**2),
        total=float(w @ (target - mean) ** 2),
    )


def assert_exact(model: Any, judge: Judged, number: int = 0, rtol: float = 1e-9) -> None:
    """Every number that the model of an exact fit states for target `number` is the judge's."""
    near: dict[str, Any] = {"rtol": rtol, "atol": 0}
    coefficients = model.column_coefficients[:, number]
    np.testing.assert_allclose(coefficients, judge.coefficients, **near)
    inference, certificate, record = model.inferences[number], model.certificates[number], model.record
    np.testing.assert_allclose(inference.standard_errors, judge.standard_errors, **near)
    assert inference.degrees_of_freedom == judge.freedom
    np.testing.assert_allclose(inference.noise_variance, judge.noise, **near)
    np.testing.assert_allclose(inference.r_squared, judge.r_squared, **near)
    assert (inference.is_estimated, inference.reason) == (False, "")
    np.testing.assert_allclose(certificate.minimal_loss, judge.loss, **near)
    np.testing.assert_allclose(certificate.noise_variance, judge.noise, **near)
    assert (certificate.kind, certificate.excess_loss, certificate.relative_excess_loss) == ("exact", 0.0, 0.0)
    assert certificate.divergence == record.rank == len(judge.coefficients)
    assert (record.row_count, [part.row_count for part in record.partitions]) == (judge.rows, [judge.rows])
    assert record.weight_sum == np.float64(judge.weight_sum) or abs(record.weight_sum / judge.weight_sum - 1) < 1e-12
    errors, *table = model.inference_table(number, 0.9)
    np.testing.assert_allclose(errors, judge.standard_errors, **near)
    for got, expected in zip(table, judge.table(0.9), strict=True):
        # p values fall exponentially: their relative error is that of t times t².
        np.testing.assert_allclose(got, expected, rtol=1e-6 if got is table[1] else rtol, atol=1e-300)
    intervals = model.conf_int(0.9)
    intervals = intervals if intervals.ndim == 2 else intervals[number]
    np.testing.assert_allclose(intervals, np.column_stack(judge.table(0.9)[2:]), **near)


def satterthwaite(terms: list[FloatArray], freedoms: ArrayLike) -> float:
    """Degrees of freedom of a sum of independent covariance estimates, by their shares in it."""
    inverse = np.linalg.inv(np.sum(terms, axis=0))
    shares = np.array([np.trace(term @ inverse) for term in terms])
    return float(shares.sum() ** 2 / np.sum(shares**2 / np.asarray(freedoms, dtype=np.float64)))
