"""Excess loss given the data and over the noise: reference values, identities, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partsketch import InputError, theory
from tests.theory.designs import design, digits_partitions, excesses


# Digits, m = 63, label² units; computed once from the formulas with NumPy's pinv and checked by 300 explicit draws.
@pytest.mark.parametrize(
    ("k", "ranks", "loss", "whole", "partition", "average"),
    [
        (3, (58, 59), 6129, 124_621, 41_778, 196),
        (5, (55, 57), 6119, 74_649, 23_091, 409),
        (15, (49, 57), 6060, 24_645, 6_865, 739),
    ],
)
def test_digits_reference_values(
    k: int, ranks: tuple[int, int], loss: float, whole: float, partition: float, average: float
) -> None:
    moments = digits_partitions(k)
    pooled = theory.pooled_moments(moments)
    assert (min(part.rank for part in moments), max(part.rank for part in moments)) == ranks
    assert pooled.rank == 61
    assert pooled.loss == pytest.approx(loss, abs=0.6)
    assert theory.whole_excess_loss(pooled.loss, pooled.rank, 63, k) == pytest.approx(whole, abs=0.6)
    assert theory.partition_excess_loss(moments, 63) == pytest.approx(partition, abs=0.6)
    assert theory.unsketched_average_excess_loss(moments) == pytest.approx(average, abs=0.6)


def test_partition_formula_written_out() -> None:
    partitions = design("singular")
    weights, sizes = np.array([0.2, 0.5, 0.3]), (9, 12, 30)
    X, y = np.vstack([X for X, _ in partitions]), np.concatenate([y for _, y in partitions])
    exact, expected, average = np.linalg.lstsq(X, y)[0], 0.0, np.zeros(4)
    for (X_i, y_i), w, m in zip(partitions, weights, sizes, strict=True):
        a, r = np.linalg.pinv(X_i) @ y_i, int(np.linalg.matrix_rank(X_i))
        average += w * a
        trace = np.trace(X.T @ X @ np.linalg.pinv(X_i.T @ X_i))
        expected += w**2 * trace * np.sum((y_i - X_i @ a) ** 2) / (m - r - 1)
    expected += np.sum((X @ (average - exact)) ** 2)
    assert theory.partition_excess_loss(partitions, sizes, weights) == pytest.approx(expected)
    assert theory.excess_loss(partitions, average) == pytest.approx(excesses(partitions, average[None])[0])


@settings(max_examples=50, deadline=None)
@given(
    d=st.integers(1, 30),
    extra=st.integers(2, 50),
    k=st.integers(1, 20),
    per=st.integers(1, 50),
    variance=st.floats(0, 9),
)
def test_identities_of_the_expected_losses(d: int, extra: int, k: int, per: int, variance: float) -> None:
    n, m = k * (d + 1 + per), d + extra
    whole = theory.expected_whole_excess_loss(n, d, m, k, variance)
    mean_divergence = theory.gaussian_design_divergence(n, d, k)
    partition = theory.expected_partition_excess_loss(n, d, m, k, variance, mean_divergence)
    gap = theory.gaussian_design_gap(n, d, m, k, variance)
    assert gap == pytest.approx(whole - partition, rel=1e-7, abs=1e-7 * (1 + whole + partition))
    assert gap <= 0
    assert mean_divergence >= d
    # At D = d the partitioned average is never worse: less residual noise is sketched.
    assert theory.expected_partition_excess_loss(n, d, m, k, variance, d) <= whole * (1 + 1e-12)
    if k == 1:
        assert partition == pytest.approx(whole)
        assert variance * d * (theory.printed_gap_factor(1, n, d, m) + 1) == pytest.approx(0, abs=1e-6 * (1 + whole))


def test_one_partition_is_the_whole() -> None:
    X, y = design("heterogeneous")[0]
    moments = theory.PartitionMoments.from_rows(X, y)
    whole = theory.whole_excess_loss(moments.loss, 4, 12, 1)
    assert theory.partition_excess_loss([(X, y)], 12) == pytest.approx(whole)
    assert theory.stacked_excess_loss(moments.loss, 4, [12]) == pytest.approx(whole)
    assert theory.stacked_excess_loss_given_data([moments], 12) == pytest.approx(whole, rel=1e-8)
    assert theory.approximate_partition_excess_loss([moments], 12, "gaussian") == pytest.approx(whole)
    assert theory.approximate_whole_excess_loss(moments.loss, 4, 12, 1, 50, "count_sketch") == pytest.approx(whole)


def test_uneven_design_formula_reduces_to_the_even_one() -> None:
    grams = [X.T @ X for X, _ in design("identical")]
    even = theory.expected_partition_excess_loss(180, 4, 20, 3, 2.0, theory.divergence(grams))
    assert theory.expected_partition_excess_loss_given_design(grams, [60] * 3, 20, 2.0) == pytest.approx(even)
    average = theory.expected_unsketched_average_excess_loss(grams, 2.0)
    assert average == pytest.approx(2.0 * (theory.divergence(grams) - 4))


def test_whole_mean_is_the_mean_of_its_law() -> None:
    # The mean of ℓ χ²_r/χ²_{m−r+1} by integrating its quantile function; 2,000 points leave an error below 1%.
    grid = (np.arange(2000) + 0.5) / 2000
    quantiles = [theory.single_sketch_excess_loss_quantile(3.0, 5, 40, p) for p in grid]
    assert np.mean(quantiles) == pytest.approx(theory.whole_excess_loss(3.0, 5, 40, 1), rel=0.01)


def test_srht_prediction_vanishes_when_nothing_is_left_out() -> None:
    assert theory.rotation_rows("srht", 100) == 128
    assert theory.rotation_rows("srht", 128) == 128
    assert theory.rotation_rows("row_sample", 100) == 100
    assert theory.noise_factor(128, 5, 128.0) == 0
    assert theory.noise_factor(20, 5, 1e12) == pytest.approx(theory.noise_factor(20, 5))


def test_refusals() -> None:
    partitions = design("singular")
    with pytest.raises(InputError, match=r"sketch_size of partition 1 is 5, .* rank \+ 1 = 5: use .* at least 6"):
        theory.partition_excess_loss(partitions, [5, 5, 9])
    with pytest.raises(InputError, match=r"sketch_size is 5, .* finite only for"):
        theory.whole_excess_loss(1.0, 4, 5, 1)
    with pytest.raises(InputError, match="one number, or one per partition"):
        theory.partition_excess_loss(partitions, [9, 9])
    with pytest.raises(InputError, match="sketch_size must be a positive integer"):
        theory.partition_excess_loss(partitions, 0)
    with pytest.raises(InputError, match="one weight per partition"):
        theory.partition_excess_loss(partitions, 9, [1.0])
    with pytest.raises(InputError, match="divide them by their sum"):
        theory.partition_excess_loss(partitions, 9, [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match="loss must be a finite number of at least 0"):
        theory.whole_excess_loss(-1.0, 4, 9, 1)
    with pytest.raises(InputError, match="n_sketches must be an integer of at least 1"):
        theory.whole_excess_loss(1.0, 4, 9, 0)
    with pytest.raises(InputError, match="probability must lie strictly between"):
        theory.single_sketch_excess_loss_quantile(1.0, 4, 9, 1.0)
    with pytest.raises(InputError, match=r"leave fewer than d = 5 rows each.*partition_excess_loss"):
        theory.expected_partition_excess_loss(10, 5, 9, 3, 1.0, 5.0)
    with pytest.raises(InputError, match="D is never below d = 5"):
        theory.expected_partition_excess_loss(100, 5, 9, 3, 1.0, 1.2)
    with pytest.raises(InputError, match=r"partition 0 has a singular .* use partition_excess_loss"):
        theory.expected_partition_excess_loss_given_design([X.T @ X for X, _ in partitions], [50, 90, 70], 9, 1.0)
    with pytest.raises(InputError, match="row_counts must hold one count of at least d = 4"):
        theory.expected_partition_excess_loss_given_design([np.eye(4)], [3], 9, 1.0)
    with pytest.raises(InputError, match="use one of gaussian, orthogonal, srht"):
        theory.rotation_rows("fourier", 10)
    with pytest.raises(InputError, match="sketch_size is 5"):
        theory.stacked_excess_loss(1.0, 4, [3, 2])
