"""What rounds leave, known before anything was asked: the best polynomial, and the law for few columns."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partsketch import InputError, theory
from partsketch.theory.rounds import round_law


def explicit_rounds(rng: np.random.Generator, columns: int, size: int, rounds: int) -> list[float]:
    """Relative excess losses of textbook conjugate gradients on rows, the last step of each as long as the law says."""
    X, y = rng.normal(size=(100, columns)) * np.geomspace(1, 5, columns), rng.exponential(size=100)
    S = rng.normal(size=(size, 100)) / math.sqrt(size)
    A, answer = (S @ X).T @ (S @ X), np.linalg.lstsq(X, y, rcond=None)[0]
    point = np.linalg.solve(A, (S @ X).T @ (S @ y))
    direction, before, losses = np.zeros(columns), math.inf, []

    def loss(at: np.ndarray) -> float:
        return float(np.sum((X @ (at - answer)) ** 2) / np.sum((y - X @ answer) ** 2))

    losses.append(loss(point))
    for number in range(1, rounds + 1):
        gradient = X.T @ (y - X @ point)
        turned = np.linalg.solve(A, gradient)
        direction = turned + gradient @ turned / before * direction
        before = float(gradient @ turned)
        losses.append(loss(point + round_law(columns, size, number, 400).step * direction))
        point = point + before / np.sum((X @ direction) ** 2) * direction
    return losses


@pytest.mark.parametrize("gamma", [0.05, 0.25, 0.6])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_the_least_loss_is_that_of_the_best_polynomial(gamma: float, rounds: int) -> None:
    """γ ∫ p(1/λ)²/λ dμ(λ) under Marchenko's and Pastur's law μ, p(0) = 1, made least by solving for p directly."""
    angle = (np.arange(4000) + 0.5) * math.pi / 4000
    eigenvalue = 1 + gamma + 2 * math.sqrt(gamma) * np.cos(angle)
    share = 4 * gamma * np.sin(angle) ** 2 / (2 * math.pi * gamma * eigenvalue) * (math.pi / 4000)
    assert share.sum() == pytest.approx(1)
    root = np.sqrt(gamma * share / eigenvalue)
    powers = np.column_stack([root * eigenvalue ** -float(power) for power in range(1, rounds + 1)] or [0 * root])
    left = root - powers @ np.linalg.lstsq(powers, root, rcond=1e-14)[0]
    assert theory.least_round_loss(10_000, 10_000 / gamma, rounds) == pytest.approx(float(left @ left), rel=1e-6)


def test_many_columns_come_to_the_limit() -> None:
    """300 columns and 200 draws: within 5%, of which the median's own error is 1%."""
    for entry in theory.forecast_rounds(300, 1200, 3, 200):
        assert entry.median == pytest.approx(theory.least_round_loss(300, 1200, entry.rounds), rel=0.05)


def test_few_columns_leave_less_than_the_limit_and_as_explicit_sketches_do() -> None:
    """100 runs with rows, d = 12 and one sketch of 48: medians known to 8%; 2.5% beyond the upper end, give or take."""
    rng = np.random.default_rng(1)
    losses = np.array([explicit_rounds(rng, 12, 48, 3) for _ in range(100)])
    forecast = theory.forecast_rounds(12, 48, 3)
    for entry, column in zip(forecast, losses.T, strict=True):
        assert np.median(column) == pytest.approx(entry.median, rel=0.3)
        assert np.mean(column > entry.upper) <= 0.08
    assert np.median(losses[:, 3]) < theory.least_round_loss(12, 48, 3)


def test_no_polynomial_for_the_very_sketch_leaves_less() -> None:
    """300 explicit sketches, d = 6 and M = 24: the best of all polynomials, by least squares; medians known to 12%."""
    rng, forecast, least = np.random.default_rng(2), theory.forecast_rounds(6, 24, 3), []
    for _ in range(300):
        S, noise = rng.normal(size=(24, 6)) / math.sqrt(24), rng.normal(size=24) / math.sqrt(24)
        inverse = np.linalg.inv(S.T @ S)
        powers = [inverse @ S.T @ noise]
        for _ in range(3):
            powers.append(inverse @ powers[-1])
        # Residuals of the error on A⁻¹ and further powers of it times the error: one number for each count of rounds.
        bases = [np.linalg.qr(np.column_stack(powers[1 : count + 1]))[0] for count in (1, 2, 3)]
        least.append([np.sum((powers[0] - basis @ (basis.T @ powers[0])) ** 2) for basis in bases])
    for entry, found in zip(forecast[1:], np.median(least, axis=0), strict=True):
        assert entry.least == pytest.approx(found, rel=0.25)
        assert entry.least < entry.median
    assert forecast[0].least == forecast[0].median


def test_as_many_rounds_as_columns_leave_nothing() -> None:
    assert [entry.rounds for entry in theory.forecast_rounds(3, 40, 9)] == [0, 1, 2]


def test_too_few_sketch_rows_are_refused() -> None:
    with pytest.raises(InputError, match="20 sketch rows do not exceed 20 columns"):
        theory.least_round_loss(20, 20, 1)
    with pytest.raises(InputError, match="rounds"):
        theory.forecast_rounds(20, 40, -1)
