"""Laws of least squares from noisy sums of products, against draws of the noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch.theory.noisy_products import EDGE, NoisyFit, fit_noisy_products

FloatArray = NDArray[np.float64]

DRAWS = 3000
DEVIATION = 60.0


def noise(draw: np.random.Generator, columns: int, deviation: float) -> FloatArray:
    """Symmetric, `deviation` on the diagonal and 1/√2 of it beside."""
    values = draw.normal(size=(columns, columns))
    return np.asarray(deviation * (values + values.T) / 2)


@pytest.fixture(scope="module")
def products() -> FloatArray:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(4000, 4)) @ np.array([[1, 0.3, 0, 0], [0, 1, 0, 0.4], [0, 0, 0.8, 0], [0, 0, 0, 1.2]])
    y = 0.5 + x @ [0.4, -0.2, 0.3, 0.1] + draw.normal(size=4000)
    rows = np.column_stack([np.ones(4000), x, y])
    return np.asarray(rows.T @ rows)


@pytest.fixture(scope="module")
def fits(products: FloatArray) -> tuple[FloatArray, list[NoisyFit]]:
    """Coefficients of lines that are mixtures of the coordinates, and what is said of them."""
    draw = np.random.default_rng(2)
    lines, target = mixed()
    found = [fit_noisy_products(products + noise(draw, 6, DEVIATION), lines, target, DEVIATION) for _ in range(DRAWS)]
    return np.stack([fit.coefficients for fit in found]), found


def mixed() -> tuple[FloatArray, FloatArray]:
    lines = np.eye(6)[:5].copy()
    lines[2, 0] = 0.7  # a column that is not centred
    return lines, np.eye(6)[5]


def exact(products: FloatArray) -> NoisyFit:
    return fit_noisy_products(products, *mixed(), 0.0)


def test_without_noise_it_is_least_squares(products: FloatArray) -> None:
    lines, target = mixed()
    gram, moments = lines @ products @ lines.T, lines @ products @ target
    fit = exact(products)
    np.testing.assert_allclose(fit.coefficients, np.linalg.solve(gram, moments), rtol=1e-10)
    np.testing.assert_allclose(fit.inverse, np.linalg.inv(gram), rtol=1e-8, atol=1e-15)
    assert fit.excess_loss == 0
    assert fit.repaired == 0
    residual = target - lines.T @ fit.coefficients
    assert fit.minimal_loss == pytest.approx(residual @ products @ residual)


def test_the_covariance_is_that_of_draws(products: FloatArray, fits: tuple[FloatArray, list[NoisyFit]]) -> None:
    """3,000 draws: a variance is known to 2.6% (one standard error), and the law is of first order (1% here)."""
    coefficients, found = fits
    stated = np.mean([fit.covariance for fit in found], axis=0)
    measured = np.cov(coefficients.T)
    np.testing.assert_allclose(np.diagonal(measured), np.diagonal(stated), rtol=0.12)
    scale = np.sqrt(np.outer(np.diagonal(stated), np.diagonal(stated)))
    assert np.abs(measured - stated).max() < 0.12 * scale.max()
    away = (coefficients.mean(axis=0) - exact(products).coefficients) / np.sqrt(np.diagonal(stated))
    assert np.abs(away).max() < 0.15  # five standard errors of the mean, and the bias of second order


def test_what_is_lost_is_what_is_said(products: FloatArray, fits: tuple[FloatArray, list[NoisyFit]]) -> None:
    """The mean of 3,000 losses, each nearly a chi-square of 4 degrees of freedom, is known to 1.3%."""
    from scipy.stats import chi2

    coefficients, found = fits
    lines, _ = mixed()
    gram = lines @ products @ lines.T
    away = coefficients - exact(products).coefficients
    lost = np.einsum("ij,jk,ik->i", away, gram, away)
    said = np.array([fit.excess_loss for fit in found])
    assert lost.mean() == pytest.approx(said.mean(), rel=0.08)
    freedom = np.array([fit.excess_freedom for fit in found])
    low, high = (said / freedom * chi2.ppf(level, freedom) for level in (0.025, 0.975))
    # Standard error of the coverage 0.4%; the law is of first order.
    assert abs(np.mean((low < lost) & (lost < high)) - 0.95) < 0.015


def test_the_minimal_loss_has_no_bias(products: FloatArray, fits: tuple[FloatArray, list[NoisyFit]]) -> None:
    _, found = fits
    losses = np.array([fit.minimal_loss for fit in found])
    deviation = float(np.mean([fit.loss_deviation for fit in found]))
    assert losses.std() == pytest.approx(deviation, rel=0.08)
    # Five standard errors of the mean; without the term for what is lost it would be off by ten of them.
    assert abs(losses.mean() - exact(products).minimal_loss) < 5 * deviation / np.sqrt(DRAWS)


def test_what_is_below_the_edge_of_noise_is_raised_to_it(products: FloatArray) -> None:
    lines, target = np.eye(6)[:5], np.eye(6)[5]
    deviation = 3000.0
    fit = fit_noisy_products(products, lines, target, deviation)
    assert fit.repaired > 0
    assert fit.signal < EDGE
    least = EDGE * deviation / np.sqrt(2) * np.sqrt(5)
    assert np.linalg.eigvalsh(np.linalg.inv(fit.inverse))[0] == pytest.approx(least)
    shorter = np.linalg.norm(fit.coefficients)
    assert shorter < np.linalg.norm(exact(products).coefficients)
