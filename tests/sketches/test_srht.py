"""The randomised Hadamard transform: the fast route against the matrix, its moments, its law of excess loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hadamard

from partsketch import InputError, theory
from partsketch.sketches.kernels.hadamard import transform_block
from partsketch.sketches.srht import padded_rows, srht, srht_sampled_rows, srht_signs
from tests.sketches.explicit import srht_matrix


@pytest.mark.parametrize("log_rows", range(11))
def test_blocks_are_multiplied_by_the_hadamard_matrix(log_rows: int) -> None:
    """Every number of rows up to 2¹⁰: all orders of passes over sixteen, four and two rows."""
    rows = 2**log_rows
    block = np.random.default_rng(rows).normal(size=(rows, 24))
    expected = hadamard(rows) @ block
    transform_block(block.reshape(-1), rows, 24)
    np.testing.assert_allclose(block, expected, rtol=0, atol=1e-11)


@settings(max_examples=30)
@given(rows=st.integers(1, 300), seed=st.integers(0, 2**64 - 1), stream=st.integers(0, 1000), data=st.data())
def test_fast_route_is_the_product_with_the_matrix(rows: int, seed: int, stream: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, padded_rows(rows)))
    matrix = np.random.default_rng(rows).normal(size=(rows, 2))
    expected = srht_matrix(rows, size, seed, stream) @ matrix
    np.testing.assert_allclose(srht(matrix, size, seed, stream), expected, rtol=0, atol=1e-11)


@settings(max_examples=30)
@given(log_rows=st.integers(0, 8), seed=st.integers(0, 2**64 - 1))
def test_nothing_is_lost_when_every_row_is_kept(log_rows: int, seed: int) -> None:
    rows = 2**log_rows
    S = srht_matrix(rows, rows, seed)
    np.testing.assert_allclose(S.T @ S, np.eye(rows), rtol=0, atol=1e-12)


def test_rows_are_drawn_without_replacement_and_evenly() -> None:
    """2,000 seeds, 8 of 32: each row is kept with probability ¼; five standard errors of 0.0097."""
    kept = [srht_sampled_rows(20, 8, seed) for seed in range(2000)]
    assert all(np.unique(rows).size == 8 for rows in kept)
    shares = np.bincount(np.concatenate(kept), minlength=32) / 2000
    assert np.all(np.abs(shares - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 2000))


def test_signs_do_not_depend_on_the_number_of_rows() -> None:
    assert np.array_equal(srht_signs(1000, 7, 3)[:100], srht_signs(100, 7, 3))
    assert not np.array_equal(srht_signs(100, 7, 3), srht_signs(100, 7, 4))
    assert not np.array_equal(srht_signs(100, 7, 3), srht_signs(100, 8, 3))


def test_expected_gram_matrix_is_kept() -> None:
    """E[SᵀS] = I: 2,000 seeds, 20 rows, m = 8; 400 entries within five standard errors of the mean over seeds."""
    products = np.stack([(lambda S: S.T @ S)(srht_matrix(20, 8, seed)) for seed in range(2000)])
    error = np.std(products, axis=0, ddof=1) / np.sqrt(2000) + 1e-12
    assert np.all(np.abs(products.mean(axis=0) - np.eye(20)) < 5 * error)


def test_excess_loss_follows_the_prediction_for_a_random_rotation() -> None:
    """2,000 fits, d = 6, p = 120 (P = 128), m = 40: within 5% of the prediction, which is approximate for SRHT.

    The standard error of the mean is about 1.3%; the Gaussian formula would be 40% higher.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = X @ np.ones(6) + rng.normal(size=120)
    exact, loss = np.linalg.lstsq(X, y)[:2]
    losses = []
    for seed in range(2000):
        Z = srht(np.column_stack([X, y]), 40, seed)
        losses.append(float(np.sum((X @ (np.linalg.lstsq(Z[:, :-1], Z[:, -1])[0] - exact)) ** 2)))
    predicted = theory.approximate_whole_excess_loss(float(loss[0]), 6, 40, 1, 120, "srht")
    assert np.mean(losses) == pytest.approx(predicted, rel=0.05)


def test_refusals() -> None:
    with pytest.raises(InputError, match="from 1 to 16 rows"):
        srht_matrix(10, 17, 0)
    with pytest.raises(InputError, match="at least one row"):
        padded_rows(0)
    with pytest.raises(InputError, match="seed"):
        srht_signs(4, -1)
    with pytest.raises(InputError, match="table of rows"):
        srht(np.zeros(4), 2, 0)
