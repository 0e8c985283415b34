"""Student's t distribution: against tables, closed forms and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit

from partsketch.common.student import half_width, p_values


def test_closed_forms() -> None:
    """One degree of freedom is the Cauchy distribution, two an algebraic one, infinitely many the normal one."""
    t = np.array([1e-9, 0.3, 1.0, 7.0, 1e4, 1e12])
    np.testing.assert_allclose(p_values(t, 1.0), 2 / np.pi * np.arctan2(1.0, t), rtol=1e-13)
    root = np.sqrt(2 + t**2)
    np.testing.assert_allclose(p_values(-t, 2.0), 2 / (root * (root + t)), rtol=1e-13)
    assert p_values(np.array([1.959963984540054]), math.inf)[0] == pytest.approx(0.05, rel=1e-13)


@pytest.mark.parametrize("freedom", [1.0, 2.5, 30.0, 49.99, 50.01, 997.0, 99_999.0])
def test_agrees_with_scipy(freedom: float) -> None:
    t = np.array([0.0, 1e-3, 0.5, 1.0, 1.2, 2.0, 3.0, 10.0, 30.0])
    # Eleven digits: the fraction is in 1 − t²/ν, whose rounding counts ν/t² times.
    np.testing.assert_allclose(p_values(t, freedom), 2 * stdtr(freedom, -t), rtol=1e-11)
    for level in (0.01, 0.5, 0.9, 0.95, 0.99, 0.9999):
        assert half_width(level, freedom) == pytest.approx(stdtrit(freedom, 0.5 + level / 2), rel=1e-11)


def test_values_that_are_none_and_many_values() -> None:
    edge = p_values(np.array([np.nan, np.inf, -np.inf, 0.0]), 12.0)
    assert np.isnan(edge[0])
    assert edge[1:].tolist() == [0.0, 0.0, 1.0]
    # Squares below and above what doubles hold, and hardly any degrees of freedom.
    assert p_values(np.array([5e-324, 1e-200, 1e200, 1.7e308]), 12.0).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert p_values(np.array([2.0]), 0.3)[0] == pytest.approx(2 * stdtr(0.3, -2.0))
    assert not p_values(np.array([2.0]), 5e-324)[0] < 0
    many = np.linspace(-4, 4, 100)
    np.testing.assert_allclose(p_values(many, 12.0)[:50], p_values(many[:50], 12.0), rtol=1e-12)
    # Levels and degrees of freedom at the ends are left to SciPy.
    assert half_width(1 - 1e-9, 3.0) == pytest.approx(stdtrit(3.0, 1 - 5e-10))
    assert half_width(0.95, 1e9) == pytest.approx(1.959963984540054, rel=1e-8)
