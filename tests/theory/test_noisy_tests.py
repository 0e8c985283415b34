"""Intervals by inverted tests from noisy sums of products, against draws of the noise and another minimiser."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import chi2

from partsketch.theory.noisy_tests import NoisyTests, noisy_tests
from tests.theory.test_noisy_products import noise

FloatArray = NDArray[np.float64]

DRAWS, ROWS, COLUMNS = 1500, 700, 5
#: The smallest eigenvalue of the rows is about three of these times √COLUMNS: laws to first order do not hold.
DEVIATION = 105.0


@pytest.fixture(scope="module")
def products() -> FloatArray:
    """Large coefficients, so that the noise of γ is not that of independent entries."""
    draw = np.random.default_rng(4)
    x = np.column_stack([np.ones(ROWS), draw.normal(size=(ROWS, COLUMNS - 1))])
    y = x @ [0.3, 1.5, -1.0, 0.5, 1.0] + draw.normal(size=ROWS)
    rows = np.column_stack([x, y])
    return np.asarray(rows.T @ rows)


def lines() -> tuple[FloatArray, FloatArray]:
    found = np.eye(COLUMNS + 1)[:COLUMNS].copy()
    found[2, 0] = 0.4
    target = np.eye(COLUMNS + 1)[COLUMNS].copy()
    target[0] = 0.5  # neither columns nor target are centred
    return found, target


def functions() -> FloatArray:
    return np.array([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0.2, -0.4, 1.0, 0, 0.3]], dtype=np.float64)


def best(products: FloatArray) -> FloatArray:
    features, target = lines()
    return np.asarray(np.linalg.solve(features @ products @ features.T, features @ products @ target))


def inverted(products: FloatArray, variance: float = 0.0, deviation: float = DEVIATION) -> NoisyTests:
    features, target = lines()
    return noisy_tests(products, features, target, deviation, functions(), variance)


def written_out(products: FloatArray, coefficients: FloatArray, variance: float) -> float:
    """Return uᵀV⁻¹u with all matrices as they stand in the definition."""
    features, target = lines()
    basis = np.linalg.qr(features.T)[0]
    residual = target - features.T @ coefficients
    inside = basis.T @ residual
    gram = basis.T @ products @ basis
    values, vectors = np.linalg.eigh(gram)
    raised = np.maximum(values, 2 * DEVIATION * np.sqrt(COLUMNS / 2))
    law = DEVIATION**2 / 2 * (residual @ residual * np.eye(COLUMNS) + np.outer(inside, inside))
    law = law + variance * (vectors * raised) @ vectors.T
    scores = basis.T @ products @ residual
    return float(scores @ np.linalg.solve(law, scores))


@pytest.mark.parametrize("variance", [0.0, 3.0])
def test_statistics_are_the_least_of_their_definition(products: FloatArray, variance: float) -> None:
    noisy = products + noise(np.random.default_rng(7), COLUMNS + 1, DEVIATION)
    values = functions() @ best(products) + [0.1, -0.3, 0.5, 1.0]
    found = inverted(noisy, variance).statistics(values)
    for line, value, statistic in zip(functions(), values, found, strict=True):
        free = np.linalg.svd(line[None])[2][1:].T
        start = line * value / (line @ line)

        def at(z: FloatArray, start: FloatArray = start, free: FloatArray = free) -> float:
            return written_out(noisy, start + free @ z, variance)

        least = min(
            minimize(at, draw, method="BFGS", options={"gtol": 1e-9}).fun
            for draw in np.random.default_rng(8).normal(size=(6, COLUMNS - 1))
        )
        # Steps end where a millionth is left to be gained.
        assert statistic == pytest.approx(least, rel=1e-4, abs=1e-5)


def test_intervals_cover_where_laws_to_first_order_do_not(products: FloatArray) -> None:
    """6,000 tests of 95%, standard error 0.4 points at most: 94.7 hold, and 92.3 without V beside its diagonal."""
    draw, truth = np.random.default_rng(5), functions() @ best(products)
    limit = float(chi2.ppf(0.95, 1))
    kept = [inverted(products + noise(draw, COLUMNS + 1, DEVIATION)).statistics(truth) <= limit for _ in range(DRAWS)]
    assert 0.94 < np.mean(kept) < 0.965


def test_the_noise_of_the_rows_counts(products: FloatArray) -> None:
    """Little noise of the promise: intervals are those of least squares, σ²G⁻¹ wide."""
    tests = inverted(products, 2.0, deviation=0.01)
    found = tests.intervals([0.95])[0]
    features, _ = lines()
    inverse = np.linalg.inv(features @ products @ features.T)
    errors = np.sqrt(2.0 * np.diagonal(functions() @ inverse @ functions().T))
    np.testing.assert_allclose((found[:, 1] - found[:, 0]) / 2, 1.959964 * errors, rtol=1e-3)
    np.testing.assert_allclose(found.mean(axis=1), functions() @ best(products), rtol=1e-3)


def test_ends_are_where_the_test_begins_to_reject(products: FloatArray) -> None:
    noisy = products + noise(np.random.default_rng(6), COLUMNS + 1, DEVIATION)
    tests = inverted(noisy)
    levels = (0.5, 0.9)
    found = tests.intervals(levels)
    assert np.isfinite(found).all()
    for level, ends in zip(levels, found, strict=True):
        for side in ends.T:
            np.testing.assert_allclose(tests.statistics(side), chi2.ppf(level, 1), rtol=1e-2)
    assert (found[0, :, 0] > found[1, :, 0]).all()
    assert (found[0, :, 1] < found[1, :, 1]).all()


def test_what_is_not_rejected_at_infinity_has_no_ends(products: FloatArray) -> None:
    """F tends to λ²/s² of the smallest eigenvalue: intervals lose their ends where that is the quantile."""
    features, _ = lines()
    smallest = np.linalg.eigvalsh(np.linalg.qr(features.T)[0].T @ products @ np.linalg.qr(features.T)[0])[0]
    reach = float(np.sqrt(chi2.ppf(0.95, 1)))
    for share, bounded in ((0.99, True), (1.01, False)):
        tests = inverted(products, deviation=share * smallest / reach)
        assert tests.at_infinity == pytest.approx((reach / share) ** 2)
        assert np.isfinite(tests.intervals([0.95])).all() == bounded
        far = tests.statistics(np.full(len(functions()), 1e7))
        np.testing.assert_allclose(far, tests.at_infinity, rtol=1e-3)


def test_a_gram_matrix_that_is_none_leaves_nothing_known(products: FloatArray) -> None:
    """Eigenvalues far below zero are noise: they bound nothing."""
    noisy = products - 3000 * np.eye(COLUMNS + 1)
    assert np.isinf(inverted(noisy).intervals([0.9, 0.95, 0.99])).all()


def test_one_coefficient_has_nothing_to_minimise_over(products: FloatArray) -> None:
    tests = noisy_tests(products, np.eye(COLUMNS + 1)[1:2], np.eye(COLUMNS + 1)[-1], DEVIATION, np.ones((1, 1)), 0.0)
    (low, high) = tests.intervals([0.95])[0, 0]
    assert low < products[1, -1] / products[1, 1] < high
    np.testing.assert_allclose(tests.statistics(np.array([low])), chi2.ppf(0.95, 1), rtol=1e-2)
