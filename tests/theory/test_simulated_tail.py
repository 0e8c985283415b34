"""Small p-values of shared coefficients: against the law drawn in another way, and how often they are small."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.theory.simulated_tail import explained_by_fits, tail_probability


def test_two_partitions_of_one_column() -> None:
    """T = (θ₁ − θ₂)²/(v₁/g₁ + v₂/g₂), drawn 400,000 times; both are known to 10% of 0.2%."""
    rng = np.random.default_rng(1)
    freedom, grams = np.array([5.0, 9.0]), np.array([1.0, 4.0])
    errors = rng.standard_normal((400_000, 2)) / np.sqrt(grams)
    estimates = rng.chisquare(freedom, (400_000, 2)) / freedom
    drawn = (errors[:, 0] - errors[:, 1]) ** 2 / np.sum(estimates / grams, axis=1)
    statistic = float(np.quantile(drawn, 0.998))
    roots = [np.array([[1.0]]), np.array([[2.0]])]
    assert tail_probability(statistic, 1e-4, roots, freedom) == pytest.approx(0.002, rel=0.35)
    # Neither the unit of a column nor zero rows matter.
    scaled = [1e6 * np.vstack([root, 0 * root]) for root in roots]
    assert tail_probability(statistic, 1e-4, scaled, freedom) == pytest.approx(0.002, rel=0.35)


def test_many_partitions_with_columns_that_some_lack() -> None:
    """Draws by the rows of single fits, 20,000 of them: 1% is known to 7%."""
    rng = np.random.default_rng(2)
    roots = [np.triu(rng.normal(size=(3, 3))) for _ in range(6)]
    roots[2][:, 2] = roots[2][2] = 0.0
    freedom = np.full(6, 8.0)
    ranks = [np.linalg.matrix_rank(root) for root in roots]
    # Rows of all fits below one another with their targets; what a fit to them leaves is the end of a QR decomposition.
    rows = np.zeros((20_000, 6, 3, 4))
    rows[..., :3] = roots
    for number, rank in enumerate(ranks):
        rows[:, number, :rank, 3] = rng.standard_normal((20_000, rank))
    rows *= np.sqrt(freedom / rng.chisquare(freedom, (20_000, 6)))[:, :, None, None]
    drawn = np.asarray(np.linalg.qr(rows.reshape(20_000, 18, 4), mode="r"))[:, 3, 3] ** 2
    statistic = float(np.quantile(drawn, 0.99))
    assert tail_probability(statistic, 5e-3, roots, freedom) == pytest.approx(0.01, rel=0.25)


def test_what_decides_nothing_is_not_simulated() -> None:
    roots, freedom = [np.eye(2)] * 3, np.full(3, 9.0)
    assert tail_probability(5.0, 0.3, roots, freedom) == 0.3
    assert tail_probability(500.0, 1e-12, roots, freedom) == 1e-12
    assert tail_probability(50.0, 1e-4, [np.eye(400)] * 50, np.full(50, 9.0)) == 1e-4
    # Nothing drawn is as large: the approximation stays, as far as 200,000 draws can tell.
    assert tail_probability(1e9, 1e-5, roots, freedom) == 1e-5
    assert tail_probability(1e9, 1e-4, roots, freedom) == 5 / 200_000


@pytest.mark.parametrize("columns", [3, 12, 13])
def test_systems_side_by_side_are_those_of_the_library(columns: int) -> None:
    """Few and many directions; weights a million times those of others. Both are exact but for rounding."""
    rng = np.random.default_rng(3)
    roots = rng.normal(size=(5, columns, columns))
    grams = roots.transpose(0, 2, 1) @ roots
    weights, right = np.exp(rng.uniform(-7, 7, (2500, 5))), rng.normal(size=(2500, columns))
    known = [one @ np.linalg.solve(np.tensordot(w, grams, axes=1), one) for w, one in zip(weights, right, strict=True)]
    np.testing.assert_allclose(explained_by_fits(weights, grams, right), known, rtol=1e-8)
