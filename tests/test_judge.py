"""The judge itself: answers known by hand, and those of NumPy where NumPy can be trusted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.judge import digits_of, judge


def test_a_line_through_three_points_by_hand() -> None:
    """Points (0, 1), (1, 3), (2, 4): slope 3/2, intercept 7/6, loss 1/6, (XᵀX)⁻¹ = [[5/6, −1/2], [−1/2, 1/2]]."""
    found = judge(np.array([[0.0], [1.0], [2.0]]), [1.0, 3.0, 4.0], inverse=True)
    assert found.coefficients == (Fraction(7, 6), Fraction(3, 2))
    assert found.loss == Fraction(1, 6)
    assert found.inverse_diagonal == (Fraction(5, 6), Fraction(1, 2))
    assert found.rank == 2
    np.testing.assert_array_equal(found.fitted, [7 / 6, 8 / 3, 25 / 6])


def test_weights_count_rows() -> None:
    """Twice the weight is the row twice; none leaves it out. Halved weights halve the loss alone."""
    X, y = np.array([[0.0], [1.0], [3.0], [9.0]]), np.array([1.0, 3.0, 4.0, -7.0])
    weighted = judge(X, y, np.array([1.0, 2.0, 0.5, 0.0]), inverse=True)
    repeated = judge(np.repeat(X, [2, 4, 1, 0], axis=0), np.repeat(y, [2, 4, 1, 0]), inverse=True)
    assert weighted.coefficients == repeated.coefficients
    assert weighted.loss * 2 == repeated.loss
    assert weighted.inverse_diagonal is not None
    assert repeated.inverse_diagonal is not None
    assert weighted.inverse_diagonal[1] == 2 * repeated.inverse_diagonal[1]


def test_dependent_columns_are_named_and_rank_is_exact() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 30))
    X = np.column_stack([a, np.zeros(30), b, a, np.full(30, 0.1), 2 * a - 4 * b])
    found = judge(X, generator.normal(size=30))
    # 2a − 4b is rounded: as exact numbers the last column is independent of the others.
    assert found.rank == 4
    assert found.aliased == {2: (), 4: (1,), 5: (0,)}
    whole = np.round(X * 8)
    whole[:, 5] = 2 * whole[:, 0] - 4 * whole[:, 2]
    assert judge(whole, a).aliased == {2: (), 4: (1,), 5: (0,) if whole[0, 4] else (), 6: (1, 3)}


@pytest.mark.parametrize("intercept", [False, True])
def test_agrees_with_numpy(intercept: bool) -> None:
    generator = np.random.default_rng(1)
    X, y, weights = generator.normal(size=(50, 4)), generator.normal(size=50), generator.gamma(1, size=50)
    found = judge(X, y, weights, intercept, inverse=True)
    matrix = np.column_stack([np.ones(50), X]) if intercept else X
    root = np.sqrt(weights)
    expected, loss, _, _ = np.linalg.lstsq(matrix * root[:, None], y * root)
    np.testing.assert_allclose([float(value) for value in found.coefficients], expected, rtol=1e-12)
    np.testing.assert_allclose(found.fitted, matrix @ expected, rtol=0, atol=1e-13)
    assert float(found.loss) == pytest.approx(loss[0], rel=1e-12)
    inverse = np.linalg.inv((matrix * weights[:, None]).T @ matrix)
    assert found.inverse_diagonal is not None
    np.testing.assert_allclose([float(value) for value in found.inverse_diagonal], np.diag(inverse), rtol=1e-12)
    assert float(found.loss_of(matrix @ expected)) == pytest.approx(loss[0], rel=1e-12)
    assert found.loss_of(matrix @ expected) > found.loss


def test_numbers_of_any_size_are_exact() -> None:
    """Scaling by powers of two, to the edge of what float64 holds, changes nothing but the units."""
    generator = np.random.default_rng(2)
    X, y = generator.normal(size=(20, 3)), generator.normal(size=20)
    plain = judge(X, y)
    units = np.array([2.0**-1000, 2.0**1000, 1.0])
    scaled = judge(X * units, y * 2.0**-900)
    for number, unit in enumerate(units):
        power = Fraction(unit) * 2**900
        assert scaled.coefficients[number + 1] * power == plain.coefficients[number + 1]
    assert scaled.loss == plain.loss / 2**1800
    np.testing.assert_array_equal(scaled.fitted * 2.0**900, plain.fitted)


def test_digits() -> None:
    exact = (Fraction(1), Fraction(0), Fraction(-4))
    assert digits_of([1.0, 0.0, -4.0], exact) == 15.5
    assert digits_of([1.0, 1e-7, -4.0], exact) == pytest.approx(7)
    assert digits_of([1.001, 0.0, -4.0], exact) == pytest.approx(3)
    assert digits_of([1.0, 0.0, -8.0], exact) == pytest.approx(0)
    assert digits_of([1.0, 0.0, np.nan], exact) == -np.inf
