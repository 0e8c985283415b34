"""Ridge penalties for sketches: limits, the fixed point, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError, theory


def test_effective_dimension_limits() -> None:
    X = np.random.default_rng(0).standard_normal((50, 6))
    G = X.T @ X
    assert theory.effective_dimension(X, 0.0) == 6
    assert theory.effective_dimension(X, 1e12) == pytest.approx(0, abs=1e-6)
    assert theory.effective_dimension(X, 7.0) == pytest.approx(np.trace(G @ np.linalg.inv(G + 7 * np.eye(6))))
    triangle = np.linalg.qr(X, mode="r")
    assert theory.effective_dimension(triangle, 7.0) == pytest.approx(theory.effective_dimension(X, 7.0))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), m=st.integers(8, 40), power=st.floats(-3, 3))
def test_penalty_from_the_sketch_solves_its_equation(seed: int, m: int, power: float) -> None:
    Z = np.random.default_rng(seed).standard_normal((m, 6))
    penalty = 10.0**power
    found = theory.ridge_penalty_from_sketch(Z, penalty)
    assert 0 < found <= penalty
    again = theory.sketched_ridge_penalty(penalty, theory.effective_dimension(Z, found), m)
    assert found == pytest.approx(again, rel=1e-6)


def test_penalty_from_a_wide_sketch_solves_its_equation_too() -> None:
    # Fewer sketch rows than columns: the trivial solution 0 is passed over.
    Z = np.random.default_rng(1).standard_normal((10, 30))
    found = theory.ridge_penalty_from_sketch(Z, 50.0)
    assert found > 1
    assert found == pytest.approx(50.0 * (1 - theory.effective_dimension(Z, found) / 10))


def test_refusals() -> None:
    assert theory.ridge_penalty_from_sketch(np.eye(3), 0.0) == 0.0
    with pytest.raises(InputError, match="penalty must be a finite number of at least 0"):
        theory.effective_dimension(np.eye(2), -1.0)
    with pytest.raises(InputError, match="not above the effective dimension 5"):
        theory.sketched_ridge_penalty(1.0, 5.0, 5)
    with pytest.raises(InputError, match="root must be a finite matrix"):
        theory.effective_dimension(np.ones(3), 1.0)
    with pytest.raises(InputError, match=r"penalty .* is too small for a sketch of 4 rows"):
        theory.ridge_penalty_from_sketch(np.random.default_rng(0).standard_normal((4, 30)), 1e-3)


def test_the_least_penalty_is_a_part_of_itself() -> None:
    """Of full rank, r of m rows are taken up: λ' = λ(1 − r/m) in the limit; 1e-12 is the search's own tolerance."""
    features = np.random.default_rng(0).normal(size=(20, 5))
    assert theory.ridge_penalty_from_sketch(features, 1e-308) == pytest.approx(0.75e-308, rel=1e-11)
