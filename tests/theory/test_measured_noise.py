"""Noise that was measured on the rows: what weighted stacks, their errors and their intervals make of it."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import theory
from partsketch.common.sketch_law import LAWS
from partsketch.common.special import polygamma
from partsketch.theory.stack_step import price_of_following
from partsketch.theory.stack_weights import measured_weights
from partsketch.theory.stacked_certificate import law_of_excess

K, SIZE, ROWS, COLUMNS = 6, 16, 500, 4
NOISE = np.geomspace(0.2, 4.0, K)


def weighted_fit(freedom: int | None) -> theory.StackedFit:
    """Return a fit whose noise was measured with so many degrees of freedom, or estimated from the sketches."""
    rng = np.random.default_rng(2)
    sketches = [rng.normal(size=(SIZE, COLUMNS + 1)) * np.r_[np.ones(COLUMNS), noise] for noise in NOISE]
    parts = theory.sketch_moments(sketches, [ROWS] * K).sketches
    # Not quite what the weights take it for: sums that cancel would be zero then.
    sums = np.linspace(0.5, 2, K) * NOISE**2
    measured = None if freedom is None else theory.MeasuredNoise(freedom * sums, [freedom] * K)
    return theory.stacked_fit(parts, [ROWS] * K, weights=1 / NOISE**2, measured=measured)


def test_measured_noise_is_known_as_well_as_its_own_degrees_of_freedom_say() -> None:
    """Satterthwaite's lie between those of one partition and those of all; the sketches have 72 together."""
    for freedom in (200, 3000):
        fit = weighted_fit(freedom)
        np.testing.assert_array_equal(fit.noise_freedom, [freedom] * K)
        law = law_of_excess(fit, np.ones(K))
        for found in (law.in_noise, theory.stacked_covariance(fit).degrees_of_freedom):
            assert freedom < found < K * freedom
    fit = weighted_fit(None)
    assert law_of_excess(fit, np.ones(K)).in_noise < K * SIZE
    assert theory.stacked_covariance(fit).degrees_of_freedom < K * SIZE


def test_measured_noise_shares_no_residuals_with_the_error() -> None:
    """What error and estimate share is then how the weights turn the Gram matrices alone, however large the prices."""
    prices = np.linspace(1, 2, K)
    measured, estimated = (weighted_fit(freedom) for freedom in (200, None))
    assert law_of_excess(measured, prices).shared == law_of_excess(measured, np.ones(K)).shared <= 0
    assert law_of_excess(estimated, prices).shared != law_of_excess(estimated, np.ones(K)).shared


def test_weights_that_follow_measured_noise_cost_as_little_as_it_is_off() -> None:
    grams, noise, following = np.stack([np.eye(2) / K] * K), np.arange(1.0, K + 1), np.full(K, 0.5)
    measured = theory.MeasuredNoise(np.ones(K), [40] * K)
    found = price_of_following(grams, noise, np.full(K, 16.0), following, measured)
    expected = 2 * 0.5 * float(polygamma(1, np.array([20.0]))[0]) * (1 / K - 1 / K**2) * noise
    np.testing.assert_allclose(found, expected[:, None, None] * np.eye(2), rtol=1e-12)


def test_logarithms_of_few_degrees_of_freedom_are_not_taken_for_less_noise() -> None:
    """The mean of log χ²₂/2 is −γ. Four partitions know theirs from two degrees of freedom, eight from a million.

    All are drawn to one centre, which those eight decide: half-way between their two logarithms.
    """
    freedom = np.array([2.0] * 4 + [1e6] * 8)
    logs = np.array([0.0] * 8 + [np.log(100.0)] * 4)
    bias = np.where(freedom == 2, -np.euler_gamma, 0.0)
    measured = theory.MeasuredNoise(freedom * np.exp(logs + bias), freedom)
    weights, following = measured_weights([SIZE] * 12, [ROWS] * 12, LAWS["gaussian"], measured)
    drawn = -np.log(weights)
    assert drawn[8] - drawn[4] == pytest.approx(np.log(100.0) * following[4], rel=1e-4)
    assert drawn[4] - drawn[0] == pytest.approx((following[0] - following[4]) * np.log(100.0) / 2, rel=1e-3)
