"""Laws of least squares from noisy sums of products, against draws of the noise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch.theory.noisy_products import EDGE, NoisyFit, excess_distribution, fit_noisy_products

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
    coefficients, found = fits
    lines, _ = mixed()
    gram = lines @ products @ lines.T
    away = coefficients - exact(products).coefficients
    lost = np.einsum("ij,jk,ik->i", away, gram, away)
    said = np.array([fit.excess_loss for fit in found])
    assert lost.mean() == pytest.approx(said.mean(), rel=0.08)
    some = slice(None, None, 5)
    low, high = np.array([excess_distribution(fit.excess_weights).interval(0.95) for fit in found[some]]).T
    # Standard error of the coverage 0.9%; the law is of first order.
    assert abs(np.mean((low < lost[some]) & (lost[some] < high)) - 0.95) < 0.03


@pytest.mark.parametrize("weights", [[1.0], [5.0, 0.1, 0.1], [1.0] * 12])
def test_the_law_of_weighted_squares(weights: list[float]) -> None:
    """Against 400,000 draws of another seed: tails of both are known to 0.1 points at the most."""
    drawn = np.random.default_rng(7).normal(size=(400_000, len(weights))) ** 2 @ np.array(weights)
    known = excess_distribution(np.array(weights))
    for probability in (0.005, 0.025, 0.5, 0.975, 0.995):
        # Four standard errors of both samples together.
        room = 4 * np.sqrt(probability * (1 - probability) * (1 / 400_000 + 1 / 16_384))
        assert np.mean(drawn < known.quantile(probability)) == pytest.approx(probability, abs=room)
    drawn /= np.random.default_rng(8).chisquare(50, 400_000) / 50
    divided = excess_distribution(np.array(weights), 50.0)
    room = 4 * np.sqrt(0.025 * 0.975 * (1 / 400_000 + 1 / 16_384))
    assert np.mean(drawn > divided.quantile(0.975)) == pytest.approx(0.025, abs=room)


def test_the_minimal_loss_has_no_bias(products: FloatArray, fits: tuple[FloatArray, list[NoisyFit]]) -> None:
    """Beside what the noise adds to it in the direction of the residuals, which is drawn and so known here."""
    _, found = fits
    losses = np.array([fit.minimal_loss for fit in found])
    deviation = float(np.mean([fit.loss_deviation for fit in found]))
    assert losses.std() == pytest.approx(deviation, rel=0.08)
    best, draw = exact(products), np.random.default_rng(2)
    lines, target = mixed()
    residual = target - lines.T @ best.coefficients
    added = np.array([residual @ noise(draw, 6, DEVIATION) @ residual for _ in range(DRAWS)])
    left = losses - added - best.minimal_loss
    # Without the term for what is lost the mean would be off by that: forty standard errors.
    assert abs(left.mean()) < 5 * left.std() / np.sqrt(DRAWS)
    assert np.mean([fit.excess_loss for fit in found]) > 30 * left.std() / np.sqrt(DRAWS)


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
