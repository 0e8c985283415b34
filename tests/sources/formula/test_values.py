"""What a pass finds of a column: exact, and the same in whatever order the values come."""

from __future__ import annotations

from math import fsum

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch.sources.formula.values import ExactSums, ValueTable


def values() -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    found = rng.normal(size=5000) * 10.0 ** rng.integers(-8, 8, 5000)
    found[:6] = [0.0, -0.0, 1e-300, -1e16, 1e16, 5e-324]
    return found


def test_sums_are_exact() -> None:
    for numbers in (values(), np.array([1e100, 1.0, -1e100]), np.array([5e-324, -1.5e-310]), np.empty(0)):
        sums = ExactSums(with_squares=False)
        sums.see(numbers)
        assert float(sums.total) == fsum(numbers)
    squared = ExactSums()
    squared.see(values()[6:])
    assert squared.deviation(0.0, 0) == pytest.approx(float(np.sqrt(fsum(values()[6:] ** 2) / 4994)), rel=1e-15)


@pytest.mark.parametrize("far", [0.0, 1e9, 1e15])
def test_means_and_spreads_of_columns_far_from_zero(far: float) -> None:
    whole = np.arange(1001.0) + far
    sums = ExactSums()
    for part in np.array_split(whole[::-1], 7):
        more = ExactSums()
        more.see(part)
        sums.add(more)
    assert sums.mean == far + 500
    # The squares of 0 to 1000 around 500, by their closed form.
    assert sums.deviation(sums.mean, 1) == pytest.approx(np.sqrt(2 * 500 * 501 * 1001 / 6 / 1000), rel=1e-15)


@pytest.mark.parametrize("most", [1 << 21, 500, 16])
def test_tables_do_not_depend_on_the_order(most: int) -> None:
    first, second = ValueTable(most), ValueTable(most)
    for part in np.array_split(values(), 9):
        first.see(part)
    for part in np.array_split(values()[::-1], 2):
        more = ValueTable(most)
        more.see(part)
        second.add(more)
    assert first.is_exact == second.is_exact == (most > 5000)
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.counts, second.counts)
    assert first.counts.sum() == 5000
    assert len(first.values) <= most


def test_quantiles_are_those_of_numpy() -> None:
    table = ValueTable()
    rounded = np.round(values()[6:] * 1e4) / 1e4
    table.see(rounded)
    shares = np.linspace(0, 1, 12)
    np.testing.assert_array_equal(table.quantiles(shares), np.quantile(rounded, shares))
    # The same from a table that has been sorted, to which others are added.
    both = ValueTable()
    both.see(rounded[:2000])
    assert len(both.values) < 2000
    both.see(rounded[2000:])
    np.testing.assert_array_equal(both.quantiles(shares), np.quantile(rounded, shares))
    inside = rounded[(rounded >= -1) & (rounded <= 2)]
    np.testing.assert_array_equal(table.quantiles(shares, -1.0, 2.0), np.quantile(inside, shares))


def test_quantiles_of_many_values_are_close() -> None:
    x = np.random.default_rng(0).gamma(2.0, size=50_000)
    table = ValueTable(4096)
    table.see(x)
    shares = np.linspace(0.01, 0.99, 30)
    assert not table.is_exact
    # 4096 keys for some fifteen powers of two leave at least seven binary digits: half of the last is 2⁻⁸.
    np.testing.assert_allclose(table.quantiles(shares), np.quantile(x, shares), rtol=2.0**-8)
