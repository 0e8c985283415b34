"""Real data: Digits (singular partitions), California housing and forest cover types."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression

from partsketch import PartsketchWarning, SketchedRegression
from partsketch.paper.stored_data import stored_data

FloatArray = NDArray[np.float64]


def fitted(method: str, X: FloatArray, y: FloatArray, **options: object) -> SketchedRegression:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PartsketchWarning)
        return SketchedRegression(method, **options).fit(X, y)  # type: ignore[arg-type]


def digits() -> tuple[FloatArray, FloatArray]:
    """61 columns: the three that never change are left out."""
    X, y = load_digits(return_X_y=True)
    return X[:, X.std(axis=0) > 0], y.astype(np.float64)


def test_digits_exact() -> None:
    X, y = digits()
    model = fitted("exact", X, y)
    reference = LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X), rtol=0, atol=1e-9)
    assert model.rank_ == 62


def test_digits_with_constant_columns() -> None:
    """All 64 columns: two are zero everywhere, one more is constant or nearly; fitted values do not mind."""
    X, y = load_digits(return_X_y=True)
    model = fitted("exact", X, y)
    assert model.rank_ == np.linalg.matrix_rank(np.column_stack([np.ones(len(X)), X]))
    np.testing.assert_allclose(model.predict(X), LinearRegression().fit(X, y).predict(X), rtol=0, atol=1e-9)


#: k; rows of ranks r_i; ℓ, excess loss of θ̄ at m = 63, and excess loss of ᾱ, for the first k⌊n/k⌋ rows in their order.
REFERENCE = [
    (3, (58, 59), 6129, 41_778, 196),
    (5, (55, 57), 6119, 23_091, 409),
    (15, (49, 57), 6060, 6_865, 739),
]


def predicted_excess(model: SketchedRegression, k: int, size: int) -> tuple[float, float, float, list[int]]:
    """ℓ, the excess loss of θ̄, that of ᾱ, and the ranks: from the R factors of the partitions alone."""
    factors = [summary.matrix for summary in model.summaries_]
    grams = [factor[:, :-1].T @ factor[:, :-1] for factor in factors]
    gram = np.sum(grams, axis=0)
    whole = np.asarray(np.linalg.qr(np.vstack(factors), mode="r"))
    best = np.linalg.lstsq(whole[:, :-1], whole[:, -1], rcond=1e-10)[0]
    loss = float(np.sum((whole[:, :-1] @ best - whole[:, -1]) ** 2))
    ranks, spread, average = [], 0.0, np.zeros(gram.shape[0])
    for factor in factors:
        features, target = factor[:, :-1], factor[:, -1]
        pseudo = np.linalg.pinv(features, rcond=1e-10)
        rank = int(np.linalg.matrix_rank(features, tol=1e-8 * np.linalg.norm(features)))
        least = float(np.sum((features @ pseudo @ target - target) ** 2))
        spread += float(np.trace(gram @ pseudo @ pseudo.T)) * least / (size - rank - 1) / k**2
        average += pseudo @ target / k
        ranks.append(rank)
    difference = average - best
    bias = float(difference @ gram @ difference)
    return loss, spread + bias, bias, ranks


@pytest.mark.parametrize(("k", "ranks", "loss", "partition", "average"), REFERENCE)
def test_digits_reference_values(k: int, ranks: tuple[int, int], loss: int, partition: int, average: int) -> None:
    """Values printed to the last digit shown."""
    X, y = digits()
    model = fitted("average", X, y, n_partitions=k, remainder="drop", fit_intercept=False)
    got = predicted_excess(model, k, 63)
    assert round(got[0]) == loss
    assert round(got[1]) == partition
    assert round(got[2]) == average
    assert (min(got[3]), max(got[3])) == ranks
    assert [entry.rank for entry in model.model_.record.partitions] == got[3]
    assert model.model_.record.rows_left_out == 1797 % k


def test_digits_sketched() -> None:
    """B = 40 fits with m = 150, k = 5: the mean excess loss within four standard errors of the prediction."""
    X, y = digits()
    exact = fitted("average", X, y, n_partitions=5, remainder="drop", fit_intercept=False)
    _, expected, _, _ = predicted_excess(exact, 5, 150)
    rows = X[:1795]
    best = np.linalg.lstsq(rows, y[:1795], rcond=None)[0]
    draws = []
    for seed in range(40):
        model = fitted(
            "partition", X, y, n_partitions=5, remainder="drop", fit_intercept=False, sketch_size=150, random_state=seed
        )
        draws.append(float(np.sum((rows @ (model.coef_ - best)) ** 2)))
    error = np.std(draws, ddof=1) / np.sqrt(40)
    assert abs(np.mean(draws) - expected) < 4 * error
    assert error < 0.1 * expected


def test_california_housing() -> None:
    house = stored_data("house")
    model = fitted("exact", house.X, house.y)
    reference = LinearRegression().fit(house.X, house.y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(house.X), reference.predict(house.X), rtol=0, atol=1e-9)
    assert model.rank_ == 9


def test_covertype() -> None:
    """Two groups of indicators, one of them never 1: rank 52 of 54 columns alone, 52 of 55 with an intercept."""
    cover = stored_data("cover")
    X, y = cover.X, cover.y
    never = int(np.flatnonzero(np.ptp(X, axis=0) == 0)[0])
    model = fitted("exact", X, y)
    assert model.rank_ == 52
    assert len(model.model_.record.aliased) == 3
    # Three columns can go without a loss: one of each group, and the one that is never 1. What is left has full rank.
    kept = np.delete(np.arange(54), [10, never, 53])
    small = np.column_stack([np.ones(len(X)), X[:, kept]])
    scale = np.linalg.norm(small, axis=0)
    expected = small @ (np.linalg.lstsq(small / scale, y, rcond=None)[0] / scale)
    np.testing.assert_allclose(model.predict(X), expected, rtol=0, atol=1e-8)
    alone = fitted("exact", X, y, fit_intercept=False)
    assert alone.rank_ == 52
    np.testing.assert_allclose(alone.predict(X), expected, rtol=0, atol=1e-8)
    full_rank = fitted("exact", X[:, kept], y)
    assert full_rank.rank_ == 52
    assert full_rank.model_.record.aliased == ()
