"""Products and averages of chi-squares against draws of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partsketch.theory.chi_squares import (
    deviation_from_estimate,
    freedom_of,
    log_moments,
    log_moments_of_ratio,
    mean_of_inverses,
    ratio_confidence,
)

LEVELS = (0.9, 0.95, 0.99)


@pytest.mark.parametrize("freedom", [0.5, 3.0, 40.0, 1e6])
def test_a_variance_gives_back_its_degrees_of_freedom(freedom: float) -> None:
    assert freedom_of(log_moments(freedom)[1]) == pytest.approx(freedom, rel=1e-6)


def test_infinitely_many_degrees_of_freedom_are_a_constant() -> None:
    assert log_moments(math.inf) == (0.0, 0.0)
    assert freedom_of(0.0) == math.inf
    assert mean_of_inverses(math.inf, 1) == (math.inf, 1.0)


@pytest.mark.parametrize(("above", "below"), [(6.0, (5.0, 4.0)), (6.0, (9.0, 8.0)), (20.0, (5.0, 4.0)), (2.0, (19.0,))])
def test_intervals_of_a_ratio_cover(above: float, below: tuple[float, ...]) -> None:
    # 200,000 draws: a coverage is known to 0.07 points; a product of two chi-squares is taken for one, which costs up
    # to 1.2 points.
    rng = np.random.default_rng(1)
    draws = rng.chisquare(above, 200_000) / above
    for freedom in below:
        draws /= rng.chisquare(freedom, len(draws)) / freedom
    distribution = ratio_confidence(1.0, above, *log_moments_of_ratio((), below))
    for level in LEVELS:
        low, high = distribution.interval(level)
        assert np.mean((draws >= low) & (draws <= high)) == pytest.approx(level, abs=0.015)


@pytest.mark.parametrize(("freedom", "count"), [(5, 3), (5, 8), (9, 8), (19, 5)])
def test_mean_of_inverses(freedom: int, count: int) -> None:
    # 100,000 means: the mean of the logarithm is known to 0.002. Doubling loses some skewness, hence a fifth of the
    # variance where tails are heaviest.
    rng = np.random.default_rng(2)
    means = np.mean(freedom / rng.chisquare(freedom, (100_000, count)), axis=1)
    found, scale = mean_of_inverses(float(freedom), count)
    centre, variance = log_moments(found)
    assert math.log(scale) - centre == pytest.approx(np.log(means).mean(), abs=0.01)
    assert variance == pytest.approx(np.log(means).var(), rel=0.2)


def test_deviation_is_that_of_two_independent_variates() -> None:
    rng = np.random.default_rng(3)
    above, gram, noise = 6, 20, 30
    losses = rng.chisquare(above, 400_000) / above / (rng.chisquare(gram, 400_000) / (gram - 2))
    estimates = rng.chisquare(noise, 400_000) / noise
    # 400,000 draws know the deviation to 0.3%; the square of an estimate is larger than that of its mean by 2/noise,
    # which the deviation allows for.
    expected = np.std(losses - estimates)
    stated = np.sqrt(np.mean([deviation_from_estimate(value, above, gram, noise) ** 2 for value in estimates[:20_000]]))
    assert stated == pytest.approx(expected, rel=0.04)
    assert deviation_from_estimate(1.0, above, 4.0, noise) == math.inf
