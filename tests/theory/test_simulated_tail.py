"""Small p-values of shared coefficients: against the law drawn in another way, and how often they are small."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch.theory.simulated_tail import tail_probability


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
    drawn = []
    for _ in range(20_000):
        scales = np.sqrt(freedom / rng.chisquare(freedom))
        rows = np.vstack([scale * root for scale, root in zip(scales, roots, strict=True)])
        targets = [
            scale * np.r_[rng.standard_normal(rank), np.zeros(3 - rank)]
            for scale, rank in zip(scales, ranks, strict=True)
        ]
        together = np.concatenate(targets)
        found = np.linalg.lstsq(rows, together)[0]
        drawn.append(float(np.sum((together - rows @ found) ** 2)))
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
