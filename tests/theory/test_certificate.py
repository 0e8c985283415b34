"""Certificates, covariances and weights: limits in which they must become exact, and refusals."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import polygamma

from partsketch import InputError, theory
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
    lost = theory.unsketched_average_excess_loss(exact)
    assert certificate.excess_loss == pytest.approx(lost, rel=0.1)
    assert certificate.minimal_loss == pytest.approx(theory.pooled_moments(exact).loss, rel=0.05)
    assert certificate.confidence is not None
    low, high = certificate.confidence.interval(0.99)
    assert low < lost < high
    assert high - low < 0.8 * lost
    assert certificate.kind == "estimated"


def test_columns_are_picked_by_position() -> None:
    sketches = sketches_of("heterogeneous", 30)
    moved = [np.column_stack([Z[:, 4], np.full(30, 9.0), Z[:, :4]]) for Z in sketches]
    first = theory.certify_partition(theory.sketch_moments(sketches, COUNTS))
    second = theory.certify_partition(
        theory.sketch_moments(moved, COUNTS, feature_columns=[2, 3, 4, 5], target_column=0)
    )
    assert second.excess_loss == pytest.approx(first.excess_loss)
    assert second.standard_error == pytest.approx(first.standard_error)


def test_standard_error_falls_with_the_sketch() -> None:
    errors = [
        theory.certify_partition(theory.sketch_moments(sketches_of("identical", size), [60] * 3)).standard_error
        for size in (6, 20, 2000)
    ]
    assert np.all(np.isfinite(errors))
    assert errors[2] < 0.2 * errors[1] < 0.2 * errors[0]


def test_estimate_written_out() -> None:
    """Two sketches, by plain formulas: the unbiased loss of the average less that of the stack."""
    m, d, weights = 11, 3, np.array([0.3, 0.7])
    sketches = list(np.random.default_rng(5).standard_normal((2, m, d + 1)))
    moments = theory.sketch_moments(sketches, [100, 200])
    fits = [np.linalg.lstsq(Z[:, :d], Z[:, d], rcond=None) for Z in sketches]
    average = weights[0] * fits[0][0] + weights[1] * fits[1][0]
    losses = np.array([fit[1][0] for fit in fits]) * m / (m - d)
    total = 0.0
    for w, Z, fit, loss in zip(weights, sketches, fits, losses, strict=True):
        v = Z[:, :d] @ (average - w * fit[0]) - (1 - w) * Z[:, d]
        total += w**2 * loss * (m - 1) / (m - d - 1) + 2 * w * (1 - w) * loss + v @ v
    certificate = theory.certify_partition(moments, weights)
    assert certificate.excess_loss + certificate.minimal_loss == pytest.approx(total, rel=1e-12)
    # The overfit of the stacked fit, solved for the losses and squared gradients that it hides.
    scatter = theory.pooled_scatter(moments)
    stacked = np.vstack(sketches)
    pooled = np.linalg.lstsq(stacked[:, :d], stacked[:, d], rcond=None)
    assert certificate.minimal_loss == pytest.approx(pooled[1][0] + scatter.overfit.sum())
    np.testing.assert_allclose(scatter.grams.sum(axis=0), np.eye(d), atol=1e-12)
    np.testing.assert_allclose(scatter.gradients.sum(axis=0), 0, atol=1e-10)
    omega = scatter.scatter.sum(axis=0)
    for Z, B, own, loss in zip(sketches, scatter.grams, scatter.scatter, scatter.losses, strict=True):
        residual = Z[:, d] - Z[:, :d] @ pooled[0]
        # The losses were found with squared gradients that were shrunk afterwards by 2/m: that is all they differ by.
        squares = (own * m - B * loss) / (1 - 2 / m)
        whole = own + 2 / m**2 * squares
        rest = sum(
            2 / m**2 * (o * m - b * s) / (1 - 2 / m)
            for o, b, s in zip(scatter.scatter, scatter.grams, scatter.losses, strict=True)
        )
        expected = loss - 2 * np.trace(whole) + np.trace(B @ (omega + rest))
        assert residual @ residual == pytest.approx(expected, rel=1e-10)


def test_one_sketch_has_exact_quantiles() -> None:
    """For one partition the excess loss over ℓ̂ is a product of known variates, whatever the data: 100,000 draws."""
    m, d = 16, 4
    moments = theory.sketch_moments([np.random.default_rng(6).standard_normal((m, d + 1))], [500])
    certificate = theory.certify_partition(moments)
    loss = moments.losses[0]
    assert certificate.minimal_loss == pytest.approx(loss)
    assert certificate.excess_loss == pytest.approx(loss * d / (m - d - 1))
    rng = np.random.default_rng(7)
    drawn = loss * rng.chisquare(d, 100_000) / rng.chisquare(m - d + 1, 100_000)
    drawn *= (m - d) / rng.chisquare(m - d, 100_000)
    assert certificate.confidence is not None
    for probability in (0.025, 0.05, 0.5, 0.95, 0.975):
        # The distribution is one of few scalars: within 15% of the exact quantiles.
        assert certificate.confidence.quantile(probability) == pytest.approx(np.quantile(drawn, probability), rel=0.15)


def test_many_partitions_take_the_short_way_without_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    sketches = list(np.random.default_rng(3).standard_normal((65, 12, 3)))
    moments = theory.sketch_moments(sketches, [50] * 65)
    solved = theory.certify_partition(moments)
    monkeypatch.setattr(sys.modules["partsketch.theory.pooled_scatter"], "LARGEST_SYSTEM", 64)
    short = theory.certify_partition(moments)
    assert short.excess_loss != solved.excess_loss
    # What is left out sums to nearly nothing; without the leverage of each partition it would be a thousandth.
    assert short.excess_loss == pytest.approx(solved.excess_loss, rel=1e-4)


def test_weights_of_data_are_in_inverse_proportion() -> None:
    weights = theory.partition_weights(design("heterogeneous"), 30, 1.0)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(theory.inverse_variance_weights([1.0, 2.0, 4.0]), np.array([4, 2, 1]) / 7)


def test_weights_of_sketches_written_out() -> None:
    rng = np.random.default_rng(8)
    noise = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
    sketches = [
        np.column_stack([X, X @ np.ones(3) + s * rng.standard_normal(20)])
        for X, s in zip(rng.standard_normal((5, 20, 3)), noise, strict=True)
    ]
    moments = theory.sketch_moments(sketches, [400] * 5)
    found = theory.sketch_weights(moments)
    variances = moments.traces * moments.losses * (1 / 16 + 1 / 397)
    logs = np.log(variances)
    # Of the logarithm of a chi-square with 17 degrees of freedom, and of an inverse Wishart trace in 3 dimensions.
    noise_of_logs = polygamma(1, 8.5) + np.log1p((2 + 2 * 16 / 3) / (17 * 14))
    beyond = logs.var(ddof=1) - noise_of_logs * (1 + 2 * np.sqrt(2 / 4))
    shrinkage = beyond / (beyond + noise_of_logs)
    assert found.shrinkage == pytest.approx(shrinkage)
    assert 0.9 < shrinkage < 1
    expected = variances**-shrinkage
    np.testing.assert_allclose(found.values, expected / expected.sum())
    assert theory.sketch_weights(theory.sketch_moments([sketches[2]] * 5, [400] * 5)).shrinkage == 0
    quiet = theory.sketch_moments([Z * np.array([1, 1, 1, 0]) for Z in sketches], [400] * 5)
    with pytest.raises(InputError, match="no noise at all"):
        theory.sketch_weights(quiet)


def test_products_of_losses_and_weights_made_from_them_are_unbiased() -> None:
    """`ℓ_i E w_i` and `ℓ_i E w_i²`, with weights that follow the losses: 4,000 draws, four standard errors."""
    rng = np.random.default_rng(9)
    sketches = list(rng.standard_normal((4, 9, 4)))
    base = theory.sketch_moments(sketches, [300] * 4)
    truth = np.array([1.0, 4.0, 16.0, 64.0])
    found, first, second = [], [], []
    for _ in range(4000):
        losses = truth * rng.chisquare(6, 4) / 6
        weights = theory.sketch_weights(replace(base, losses=losses))
        first.append(weights.loss_products - truth * weights.values)
        second.append(weights.squared_loss_products - truth * weights.values**2)
        found.append(weights.values)
    for differences in (np.array(first), np.array(second)):
        assert np.all(np.abs(differences.mean(axis=0)) < 4 * differences.std(axis=0) / np.sqrt(4000))
    # With the weights themselves in place of their averages, the second product is off by far more than that.
    assert np.array(found).std(axis=0).min() > 0.005


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
    inverses = [np.linalg.inv(Z[:, :4].T @ Z[:, :4]) * 25 / 30 for Z in sketches]
    terms = [loss * (1 / 25 + 1 / (p - 4)) * inverse for loss, p, inverse in zip(losses, COUNTS, inverses, strict=True)]
    np.testing.assert_allclose(theory.partition_covariances(moments), terms)
    covariance = theory.partition_covariance(moments, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(covariance.matrix, 0.25 * terms[0] + 0.09 * terms[1] + 0.04 * terms[2])
    parts = [share * term for share, term in zip((0.25, 0.09, 0.04), terms, strict=True)]
    shares = np.array([np.trace(part @ np.linalg.inv(sum(parts))) for part in parts])
    assert covariance.degrees_of_freedom == pytest.approx(16 / np.sum(shares**2 / 28))
    whole = theory.whole_covariance(moments.sketches, 210)
    grams = [Z[:, :4].T @ Z[:, :4] for Z in sketches]
    loss = losses.mean()
    expected = np.linalg.inv(sum(grams)) * 3 * 85 / 90 + 206 / (9 * 30) * sum(np.linalg.inv(A) for A in grams)
    np.testing.assert_allclose(whole.matrix, loss / 206 * expected)
    partitions = design("heterogeneous")
    exact = theory.moments_of(partitions)
    average = theory.average_covariance(exact, [0.5, 0.3, 0.2])
    squares = zip([0.25, 0.09, 0.04], exact, strict=True)
    each = [s * part.loss / (part.row_count - 4) * np.linalg.inv(part.gram) for s, part in squares]
    np.testing.assert_allclose(average.matrix, sum(each))
    shares = np.array([np.trace(part @ np.linalg.inv(sum(each))) for part in each])
    freedoms = np.array(COUNTS) - 4
    assert average.degrees_of_freedom == pytest.approx(16 / np.sum(shares**2 / freedoms))
    with pytest.raises(InputError, match="partition 1 has 4 rows for 4 columns and shows no noise"):
        theory.average_covariance([partitions[0], (partitions[1][0][:4], partitions[1][1][:4])])
