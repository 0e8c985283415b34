"""Moments of many partitions at once are those of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.theory.many_moments import many_moments
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.stacking_given_data import response_of_inflations


@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("height", [3, 5, 6, 9])
def test_together_as_one_by_one(free: int, height: int) -> None:
    rng = np.random.default_rng(1)
    factors = [rng.normal(size=(height, 6)) * 10.0 ** rng.integers(-9, 9, 6) for _ in range(70)]
    factors[3][:, 2] = 0.0
    factors[5][:, 3] = factors[5][:, 1]
    factors[7][:, 3] = factors[7][:, 1] * (1 + 1e-9 * rng.normal(size=height))
    factors[9][:, :] = 0.0
    factors[11][:, 2] = factors[11][:, 0] * (1 + 1e-12 * rng.normal(size=height))
    counts = [int(count) for count in rng.integers(1, 40, 70)]
    for made, factor, count in zip(many_moments(factors, counts, free), factors, counts, strict=True):
        alone = PartitionMoments(factor, count, free)
        assert (made.rank, made.row_count, made.free_columns) == (alone.rank, count, free)
        np.testing.assert_array_equal(made.factor.shape, alone.factor.shape)
        np.testing.assert_allclose(made.gram, alone.gram, rtol=1e-12, atol=0)
        # Up to a hundred times worse than well, at which both have twelve digits: what is worse is done alone.
        np.testing.assert_allclose(made.condition, alone.condition, rtol=1e-9)
        np.testing.assert_allclose(made.solution, alone.solution, rtol=1e-9)
        size = np.abs(alone.inverse_gram).max(initial=0.0)
        np.testing.assert_allclose(made.inverse_gram, alone.inverse_gram, rtol=1e-9, atol=1e-13 * size)
        np.testing.assert_allclose(made.loss, alone.loss, rtol=1e-9, atol=1e-20 * np.square(factor[:, -1]).sum())


def test_what_is_not_finite_is_refused() -> None:
    factors = [np.eye(3) for _ in range(70)]
    factors[60][0, 1] = np.nan
    with pytest.raises(ValueError, match="missing or infinite"):
        many_moments(factors, [9] * 70)


@pytest.mark.parametrize("count", [3, 4, 30])
def test_the_response_of_more_partitions_than_entries(count: int) -> None:
    """The system written out, for two columns: four entries."""
    rng = np.random.default_rng(2)
    products = rng.normal(size=(count, 2, 2)) / count
    variances, sizes, inflations = rng.uniform(1, 2, count), rng.uniform(5, 9, count), rng.uniform(1, 2, count)
    pairs = np.einsum("iab,jba->ij", products, products)
    system = np.eye(count) - pairs / sizes[:, None] / inflations[None, :] ** 2
    right = variances * (inflations - 1) - pairs @ (variances / inflations) / sizes
    np.testing.assert_allclose(
        response_of_inflations(products, variances, sizes, inflations), np.linalg.solve(system, right), rtol=1e-10
    )
