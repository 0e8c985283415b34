"""Confidence distributions against scipy's, and through plain data."""

from __future__ import annotations

import json
import math

import pytest
from scipy import stats

from partsketch import InputError
from partsketch.theory import ConfidenceDistribution


@pytest.mark.parametrize("probability", [0.005, 0.3, 0.975])
def test_quantiles_are_those_of_scipy(probability: float) -> None:
    expected = {
        ("point", (3.0,)): 3.0,
        ("noncentral_f", (2.0, 4.0, 30.0, 5.0)): 2 * stats.ncf.ppf(probability, 4, 30, 5),
        ("noncentral_f", (2.0, 4.0, math.inf, 5.0)): 2 * stats.ncx2.ppf(probability, 4, 5) / 4,
        ("noncentral_f", (2.0, 4.0, 30.0, 0.0)): 2 * stats.f.ppf(probability, 4, 30),
        ("inverse_chi_square", (2.0, 7.0)): stats.invgamma.ppf(probability, 3.5, scale=7.0),
        ("log_normal", (2.0, 0.4)): stats.lognorm.ppf(probability, 0.4, scale=2.0),
    }
    for (kind, parameters), value in expected.items():
        distribution = ConfidenceDistribution(kind, parameters)
        assert distribution.quantile(probability) == pytest.approx(value, rel=1e-7)
        plain = json.loads(json.dumps(distribution.to_dict(), allow_nan=False))
        assert ConfidenceDistribution.from_dict(plain) == distribution


def test_interval_has_equal_tails_and_refuses_impossible_levels() -> None:
    distribution = ConfidenceDistribution("log_normal", (1.0, 1.0))
    low, high = distribution.interval(0.8)
    assert (low, high) == pytest.approx(stats.lognorm.interval(0.8, 1.0))
    for level in (0.0, 1.0, 95):
        with pytest.raises(InputError, match="level is"):
            distribution.interval(level)
    with pytest.raises(InputError, match="is not known"):
        ConfidenceDistribution("guess", (1.0,))
    with pytest.raises(InputError, match="is not known"):
        ConfidenceDistribution("point", (1.0, 2.0))
