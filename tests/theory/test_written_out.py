"""Formulas of the theory, written out a second time from their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from partsketch import theory
from partsketch.theory.design import odd_partition_divergence
from partsketch.theory.excess_loss import single_sketch_excess_loss_quantile
from partsketch.theory.ridge import effective_dimension, sketched_ridge_penalty
from partsketch.theory.weights import average_weights, inverse_variance_weights, partition_weights
from tests.by_hand import satterthwaite

D, SIZES = 3, (40, 70, 90)


def parts() -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(3)
    found = []
    for number, size in enumerate(SIZES):
        X = draw.normal(size=(size, D)) * (1.0 + number) + 0.5
        found.append((X, X @ [1.0, 2.0, 3.0] + draw.normal(size=size)))
    return found


def grams() -> list[np.ndarray]:
    return [X.T @ X for X, _ in parts()]


def traces() -> np.ndarray:
    total = sum(grams())
    return np.array([np.trace(total @ np.linalg.inv(G)) for G in grams()])


def test_weights() -> None:
    shares = (1 / traces()) / np.sum(1 / traces())
    np.testing.assert_allclose(average_weights(parts()), shares)
    losses = np.array([float(np.linalg.lstsq(X, y)[1][0]) for X, y in parts()])
    sizes = np.array([20, 25, 30])
    variances = traces() * (losses / (sizes - D - 1) + 1.7)
    np.testing.assert_allclose(partition_weights(parts(), sizes.tolist(), 1.7), (1 / variances) / np.sum(1 / variances))
    np.testing.assert_allclose(inverse_variance_weights([1.0, 3.0]), [0.75, 0.25])


def test_divergence_with_weights() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    assert theory.divergence(grams(), shares) == pytest.approx(float(shares**2 @ traces()))
    assert theory.divergence(grams()) == pytest.approx(float(traces().sum() / 9))


def test_expected_losses() -> None:
    n, m, k, variance, divergence = 200, 20, 4, 2.5, 3.6
    assert theory.expected_whole_excess_loss(n, D, m, k, variance) == pytest.approx(
        variance / k * (n - D) / (m - D - 1) * D
    )
    assert theory.expected_partition_excess_loss(n, D, m, k, variance, divergence) == pytest.approx(
        variance / k * (n - k * D) / (m - D - 1) * divergence + variance * (divergence - D)
    )
    shares, sizes = np.array([0.5, 0.3, 0.2]), [20, 25, 30]
    terms = shares**2 * traces()
    factors = [(p - D) / (size - D - 1) for p, size in zip(SIZES, sizes, strict=True)]
    assert theory.expected_partition_excess_loss_given_design(grams(), SIZES, sizes, variance, shares) == pytest.approx(
        variance * float(terms @ factors + terms.sum() - D)
    )
    assert theory.expected_unsketched_average_excess_loss(grams(), variance, shares) == pytest.approx(
        variance * float(terms.sum() - D)
    )


def test_quantiles_of_one_sketch_are_those_of_a_ratio_of_chi_squares() -> None:
    """200,000 ratios: their quartiles are known to half a percent."""
    draw = np.random.default_rng(0)
    m, r, loss = 15, 4, 7.0
    ratios = loss * draw.chisquare(r, 200_000) / draw.chisquare(m - r + 1, 200_000)
    for probability in (0.25, 0.5, 0.75):
        expected = float(np.quantile(ratios, probability))
        assert single_sketch_excess_loss_quantile(loss, r, m, probability) == pytest.approx(expected, rel=0.02)
    exact = loss * r / (m - r + 1) * stats.f.ppf(0.9, r, m - r + 1)
    assert single_sketch_excess_loss_quantile(loss, r, m, 0.9) == pytest.approx(exact)


def test_one_odd_partition() -> None:
    """Gram matrices in proportion to (s², 1, …, 1)."""
    base = grams()[0]
    for scale in (0.5, 2.0):
        found = [base * scale**2, base, base, base]
        assert odd_partition_divergence(D, 4, scale) == pytest.approx(theory.divergence(found))
    assert odd_partition_divergence(D, 1, 3.0) == D


def test_ridge() -> None:
    X = parts()[0][0]
    G = X.T @ X
    dimension = float(np.trace(G @ np.linalg.inv(G + 30.0 * np.eye(D))))
    assert effective_dimension(X, 30.0) == pytest.approx(dimension)
    assert sketched_ridge_penalty(30.0, dimension, 12) == pytest.approx(30.0 * (1 - dimension / 12))


def test_covariance_of_a_weighted_average_of_sketches() -> None:
    """Σ w_i² ℓ̂_i [1/(m_i − d − 1) + 1/(p_i − d)] A_i⁻¹ (m_i − d − 1)/m_i: every partition has its own noise."""
    draw = np.random.default_rng(8)
    sizes, shares = (12, 16, 20), np.array([0.6, 0.3, 0.1])
    sketches = [
        draw.normal(size=(m, p)) @ np.column_stack(part) / np.sqrt(m)
        for m, p, part in zip(sizes, SIZES, parts(), strict=True)
    ]
    found = theory.partition_covariance(theory.sketch_moments(sketches, SIZES), shares)
    losses, terms = [], []
    for Z, m, p, share in zip(sketches, sizes, SIZES, shares, strict=True):
        solution = np.linalg.lstsq(Z[:, :D], Z[:, D])[0]
        losses.append(float(np.sum((Z[:, D] - Z[:, :D] @ solution) ** 2)) * m / (m - D))
        inverse = np.linalg.inv(Z[:, :D].T @ Z[:, :D]) * (m - D - 1) / m
        terms.append(share**2 * losses[-1] * (1 / (m - D - 1) + 1 / (p - D)) * inverse)
    np.testing.assert_allclose(found.matrix, sum(terms), rtol=1e-9)
    assert found.noise_variance == pytest.approx(sum(losses) / (sum(SIZES) - 3 * D))
    assert found.degrees_of_freedom == pytest.approx(satterthwaite(terms, [m - D + 2 for m in sizes]))
