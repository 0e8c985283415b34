"""Certificates, covariances and weights: limits in which they must become exact, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partsketch import theory
from partsketch.errors import InputError
from tests.theory.designs import FloatArray, design, together


def sketches_of(name: str, size: int, seed: int = 0) -> list[FloatArray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((size, len(part[1]))) @ together(part) / np.sqrt(size) for part in design(name)]


COUNTS = [50, 90, 70]


@pytest.mark.parametrize("name", ["heterogeneous", "singular"])
def test_large_sketches_recover_the_exact_terms(name: str) -> None:
    # m = 20,000 leaves relative errors of about 1%.
    moments = theory.sketch_moments(sketches_of(name, 20_000), COUNTS)
    exact = theory.moments_of(design(name))
    np.testing.assert_allclose(moments.losses, [part.loss for part in exact], rtol=0.05)
    expected = [sum(np.trace(other.gram @ part.inverse_gram) for other in exact) for part in exact]
    np.testing.assert_allclose(moments.traces, expected, rtol=0.05)
    certificate = theory.certify_partition(moments)
    sketching = theory.partition_excess_loss(exact, 20_000) - theory.unsketched_average_excess_loss(exact)
    assert certificate.sketch_terms.sum() == pytest.approx(sketching, rel=0.05)
    assert certificate.excess_loss == pytest.approx(certificate.sketch_terms.sum() + certificate.averaging_term)
    assert certificate.kind == ("estimated" if name == "heterogeneous" else "approximate")


def test_columns_are_picked_by_position() -> None:
    sketches = sketches_of("heterogeneous", 30)
    moved = [np.column_stack([Z[:, 4], np.full(30, 9.0), Z[:, :4]]) for Z in sketches]
    first = theory.certify_partition(theory.sketch_moments(sketches, COUNTS))
    second = theory.certify_partition(
        theory.sketch_moments(moved, COUNTS, feature_columns=[2, 3, 4, 5], target_column=0)
    )
    assert second.excess_loss == pytest.approx(first.excess_loss)
    assert second.standard_error == pytest.approx(first.standard_error)


def test_standard_error_is_infinite_near_the_rank_and_falls_with_the_sketch() -> None:
    def error(size: int) -> float:
        return theory.certify_partition(theory.sketch_moments(sketches_of("identical", size), [60] * 3)).standard_error

    assert math.isinf(error(7))
    assert math.isfinite(error(8))
    assert error(2000) < error(20)


def test_many_partitions_skip_the_pair_part_without_a_jump() -> None:
    rng = np.random.default_rng(3)
    sketches = list(rng.standard_normal((65, 12, 3)))
    below = theory.certify_partition(theory.sketch_moments(sketches[:64], [50] * 64))
    above = theory.certify_partition(theory.sketch_moments(sketches, [50] * 65))
    ratios = [part.standard_error / part.excess_loss for part in (below, above)]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)


def test_weights_minimise_the_prediction() -> None:
    partitions = design("heterogeneous")
    moments = theory.sketch_moments(sketches_of("heterogeneous", 30), COUNTS)
    best = theory.sketch_weights(moments)
    value = theory.certify_partition(moments, best).excess_loss
    rng = np.random.default_rng(1)
    for _ in range(30):
        other = best + 0.1 * rng.standard_normal(3)
        assert theory.certify_partition(moments, other / other.sum()).excess_loss >= value
    weights = theory.partition_weights(partitions, 30, 1.0)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(theory.inverse_variance_weights([1.0, 2.0, 4.0]), np.array([4, 2, 1]) / 7)


def test_exact_covariance_written_out() -> None:
    partitions = design("identical")
    pooled = theory.pooled_moments(partitions)
    covariance = theory.exact_covariance(pooled)
    X = np.vstack([X for X, _ in partitions])
    np.testing.assert_allclose(covariance.matrix, pooled.loss / 176 * np.linalg.inv(X.T @ X))
    assert covariance.degrees_of_freedom == 176


def test_spread_covariance_is_the_sample_covariance_over_k() -> None:
    fits = np.random.default_rng(0).standard_normal((7, 3))
    covariance = theory.spread_covariance(fits)
    np.testing.assert_allclose(covariance.matrix, np.cov(fits.T) / 7)
    assert covariance.degrees_of_freedom == 6


def test_refusals() -> None:
    sketches = sketches_of("singular", 30)
    moments = theory.sketch_moments(sketches, COUNTS)
    for function in (theory.partition_covariance, theory.sketch_weights):
        with pytest.raises(InputError, match="partition 0 has a singular Gram matrix"):
            function(moments)
    with pytest.raises(InputError, match="sketch_size of partition 0 is 4"):
        theory.sketch_moments([Z[:4] for Z in sketches], COUNTS)
    with pytest.raises(InputError, match="pass one count per sketch"):
        theory.sketch_moments(sketches, [50])
    with pytest.raises(InputError, match="leave nothing to estimate the noise"):
        theory.sketch_moments(sketches, [3, 4, 3])
    with pytest.raises(InputError, match="take it out of feature_columns"):
        theory.read_sketch(sketches[0], [0, 1], 1)
    with pytest.raises(InputError, match="columns for features and target"):
        theory.read_sketch(np.ones(3))
    with pytest.raises(InputError, match="level must lie strictly between"):
        theory.confidence_intervals([0.0], theory.CoefficientCovariance(np.eye(1), 3.0, 1.0), 1.0)
    with pytest.raises(InputError, match="at least two fits"):
        theory.spread_covariance(np.ones((1, 3)))
    with pytest.raises(InputError, match="variances must be positive"):
        theory.inverse_variance_weights([1.0, 0.0])
    with pytest.raises(InputError, match="no rows are left to estimate the noise"):
        theory.exact_covariance(theory.PartitionMoments.from_rows(np.eye(3), np.ones(3)))


def test_short_sketches_are_told_the_size_that_is_safe() -> None:
    # Three rows of a four-column sketch show rank 3 at most; the advice must be for four columns.
    with pytest.raises(InputError, match=r"partition 0 is 3, .* rank \+ 1 = 5: use a sketch_size of at least 6"):
        theory.sketch_moments([Z[:3] for Z in sketches_of("heterogeneous", 30)], COUNTS)


def test_a_partition_without_information_is_harmless() -> None:
    sketches = sketches_of("heterogeneous", 30)
    sketches[1][:, :4] = 0.0
    moments = theory.sketch_moments(sketches, COUNTS)
    assert moments.ranks.tolist() == [4, 0, 4]
    assert theory.certify_partition(moments).excess_loss > 0
    fit = theory.stacked_fit(moments.sketches, COUNTS)
    assert theory.certify_stacked(fit).excess_loss > 0
    assert theory.stacked_covariance(fit).matrix.shape == (4, 4)


def test_noise_free_data_has_no_excess_loss() -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((3, 40, 2))
    sketches = [np.column_stack([rows, rows @ np.ones(2)]) for rows in X]
    moments = theory.sketch_moments(sketches, [500] * 3)
    certificate = theory.certify_partition(moments)
    assert certificate.excess_loss == pytest.approx(0, abs=1e-20)
    assert certificate.standard_error == pytest.approx(0, abs=1e-20)


def test_covariances_written_out() -> None:
    sketches = sketches_of("heterogeneous", 30)
    moments = theory.sketch_moments(sketches, COUNTS)
    losses = np.array([np.linalg.lstsq(Z[:, :4], Z[:, 4])[1][0] for Z in sketches]) * 30 / 26
    variance = losses.sum() / (sum(COUNTS) - 12)
    inverses = [np.linalg.inv(Z[:, :4].T @ Z[:, :4]) * 25 / 30 for Z in sketches]
    terms = [variance * (1 + (p - 4) / 25) * inverse for p, inverse in zip(COUNTS, inverses, strict=True)]
    np.testing.assert_allclose(theory.partition_covariances(moments), terms)
    covariance = theory.partition_covariance(moments, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(covariance.matrix, 0.25 * terms[0] + 0.09 * terms[1] + 0.04 * terms[2])
    assert covariance.degrees_of_freedom == 3 * 26
    whole = theory.whole_covariance(moments.sketches, 210)
    grams = [Z[:, :4].T @ Z[:, :4] for Z in sketches]
    loss = losses.mean()
    expected = np.linalg.inv(sum(grams)) * 3 * 85 / 90 + 206 / (9 * 30) * sum(np.linalg.inv(A) for A in grams)
    np.testing.assert_allclose(whole.matrix, loss / 206 * expected)
    partitions = design("heterogeneous")
    exact = theory.moments_of(partitions)
    average = theory.average_covariance(exact, [0.5, 0.3, 0.2])
    noise = sum(part.loss for part in exact) / (210 - 12)
    squares = zip([0.25, 0.09, 0.04], partitions, strict=True)
    np.testing.assert_allclose(average.matrix, noise * sum(s * np.linalg.inv(X.T @ X) for s, (X, _) in squares))
