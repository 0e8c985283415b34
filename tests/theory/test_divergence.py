"""Divergence, Burg divergence and leverage: their identities and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError, theory
from tests.theory.designs import FloatArray, design


def random_designs(seed: int, k: int, d: int) -> list[FloatArray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((d + 3 + i, d)) @ rng.standard_normal((d, d)) for i in range(k)]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 5), d=st.integers(1, 5))
def test_divergence_is_at_least_d_and_burg_is_what_exceeds_it(seed: int, k: int, d: int) -> None:
    designs = random_designs(seed, k, d)
    moments = [theory.PartitionMoments.from_rows(X, np.zeros(len(X))) for X in designs]
    value = theory.divergence(moments)
    assert value >= d * (1 - 1e-9)
    burg = theory.burg_divergence_matrix(moments)
    assert np.all(burg >= -1e-9)
    # The log determinants cancel over all pairs, so the average Burg divergence is exactly D − d.
    assert theory.burg_divergence(moments) == pytest.approx(value - d, rel=1e-6, abs=1e-8)
    matrix = theory.divergence_matrix(moments)
    assert matrix.sum() / k**2 == pytest.approx(value)
    for i, X in enumerate(designs):
        for j, part in enumerate(moments):
            assert theory.relative_leverage_scores(X, part).sum() == pytest.approx(matrix[i, j], rel=1e-6)
    assert theory.divergence(moments, np.full(k, 1 / k)) == pytest.approx(value)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 5))
def test_divergence_does_not_depend_on_units(seed: int, d: int) -> None:
    designs = random_designs(seed, 3, d)
    transform = np.diag(10.0 ** np.linspace(-4, 4, d))
    before = theory.divergence([theory.PartitionMoments.from_rows(X, np.zeros(len(X))) for X in designs])
    after = theory.divergence([theory.PartitionMoments.from_rows(X @ transform, np.zeros(len(X))) for X in designs])
    assert after == pytest.approx(before, rel=1e-6)


def test_equal_grams_give_d() -> None:
    gram = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert theory.divergence([gram, gram, gram]) == pytest.approx(2.0)
    assert theory.burg_divergence([gram, gram]) == pytest.approx(0.0, abs=1e-12)


def test_grams_and_moments_agree() -> None:
    partitions = design("heterogeneous")
    moments = theory.moments_of(partitions)
    grams = [X.T @ X for X, _ in partitions]
    np.testing.assert_allclose(theory.divergence_matrix(grams), theory.divergence_matrix(moments))
    expected = [[np.trace(G @ np.linalg.inv(H)) for H in grams] for G in grams]
    np.testing.assert_allclose(theory.divergence_matrix(grams), expected)
    logs = np.log([np.linalg.det(G) for G in grams])
    np.testing.assert_allclose(theory.burg_divergence_matrix(grams), expected - logs[:, None] + logs - 4, atol=1e-10)


def test_leverage_sums_to_the_rank() -> None:
    X = design("singular")[0][0]
    scores = theory.leverage_scores(X)
    assert scores.sum() == pytest.approx(3)
    assert np.all((scores >= 0) & (scores <= 1))
    full = design("identical")[0][0]
    np.testing.assert_allclose(theory.leverage_scores(full), theory.relative_leverage_scores(full, full.T @ full))


def test_refusals_name_partition_and_columns() -> None:
    partitions = design("singular")
    grams = [X.T @ X for X, _ in partitions]
    with pytest.raises(InputError, match=r"partition 0 has a singular Gram matrix \(rank 3 of 4; columns 0 depend"):
        theory.divergence(grams)
    with pytest.raises(InputError, match=r"partition 1 has a singular.*columns (height|width) depend"):
        theory.divergence_matrix([grams[1], grams[2]], ["a", "b", "width", "height"])
    with pytest.raises(InputError, match="Gram matrix 0 must be square"):
        theory.divergence([np.ones((2, 3))])
    with pytest.raises(InputError, match="Gram matrix 1 is not symmetric positive semidefinite"):
        theory.divergence([np.eye(2), np.diag([1.0, -1.0])])
