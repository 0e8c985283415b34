"""Certificates of sketches of all rows: exact laws, finite rotations, and nothing lost when nothing is left out."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import InputError, theory
from partsketch.theory.arguments import FloatArray

LEVELS = (0.9, 0.95, 0.99)
D = 4


def rows(count: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, D))
    return np.column_stack([X, X.sum(axis=1) + rng.standard_t(3, count)])


@pytest.mark.parametrize("size", [D + 4, D + 8, 40])
def test_relative_interval_of_one_gaussian_sketch_is_its_exact_law(size: int) -> None:
    rng = np.random.default_rng(1)
    certificate = theory.certify_whole([theory.read_sketch(rng.standard_normal((size, D + 1)))], 1000)
    assert certificate.relative_confidence is not None
    for probability in (0.005, 0.1, 0.5, 0.975):
        exact = theory.single_sketch_excess_loss_quantile(1.0, D, size, probability)
        assert certificate.relative_confidence.quantile(probability) == pytest.approx(exact, rel=1e-6)
    assert certificate.relative_excess_loss == pytest.approx(D / (size - D - 1))


@pytest.mark.parametrize(("size", "sketches"), [(D + 4, 1), (D + 4, 5), (D + 8, 1), (D + 8, 5), (4 * D, 3)])
def test_intervals_of_gaussian_sketches_cover(size: int, sketches: int) -> None:
    # 4,000 fits: at 90% the standard error is 0.5 points. The certificate depends on ρ alone, so that one is made and
    # scaled: all of them share the shape of their intervals.
    rng = np.random.default_rng(2)
    draws = 4000
    data = rows(60)
    factor = np.linalg.qr(data, mode="r")
    exact = theory.pooled_moments([(data[:, :D], data[:, D])])
    Z = rng.standard_normal((draws, sketches, size, D + 1)) / np.sqrt(size) @ factor
    fits = np.linalg.pinv(Z[..., :D]) @ Z[..., D:]
    residuals = np.sum((Z[..., D:] - Z[..., :D] @ fits) ** 2, axis=(2, 3)).mean(axis=1)
    lost = (fits[..., 0].mean(axis=1) - exact.solution) @ exact.root.T
    excess = np.sum(lost**2, axis=1)
    one = theory.certify_whole([theory.read_sketch(sketch) for sketch in Z[0]], len(data))
    assert one.confidence is not None
    assert one.relative_confidence is not None
    for level in LEVELS:
        low, high = (end * residuals / residuals[0] for end in one.confidence.interval(level))
        assert np.mean((excess >= low) & (excess <= high)) == pytest.approx(level, abs=0.015 + 0.005)
        low, high = (end * exact.loss for end in one.relative_confidence.interval(level))
        assert np.mean((excess >= low) & (excess <= high)) == pytest.approx(level, abs=0.015 + 0.005)
    # The mean estimate is unbiased; four standard errors of the difference.
    claims = one.excess_loss * residuals / residuals[0]
    assert abs(np.mean(claims - excess)) < 4 * np.std(claims - excess) / np.sqrt(draws)


@pytest.mark.parametrize("size", [12, 20, 28])
def test_a_random_rotation_has_the_stated_law(size: int) -> None:
    # 4,000 rotations of 32 rows: the mean is known to 2%, coverage at 90% to 0.5 points.
    rng = np.random.default_rng(3)
    data = rows(32)
    exact = theory.pooled_moments([(data[:, :D], data[:, D])])
    rotations = np.linalg.qr(rng.standard_normal((4000, 32, size)))[0].transpose(0, 2, 1)
    Z = rotations @ data * np.sqrt(32 / size)
    fits = (np.linalg.pinv(Z[..., :D]) @ Z[..., D:])[..., 0]
    excess = np.sum(((fits - exact.solution) @ exact.root.T) ** 2, axis=1)
    residuals = np.sum((Z[..., D] - np.einsum("srd,sd->sr", Z[..., :D], fits)) ** 2, axis=1)
    one = theory.certify_whole([theory.read_sketch(Z[0])], 32, "srht")
    expected = exact.loss * D * (32 - size) / ((size - D - 1) * (32 - D))
    assert excess.mean() == pytest.approx(expected, rel=0.08)
    claims = one.excess_loss * residuals / residuals[0]
    assert claims.mean() == pytest.approx(expected, rel=0.02)
    assert one.confidence is not None
    assert one.relative_confidence is not None
    for level in LEVELS:
        low, high = (end * residuals / residuals[0] for end in one.confidence.interval(level))
        assert np.mean((excess >= low) & (excess <= high)) == pytest.approx(level, abs=0.015 + 0.005)
        low, high = (end * exact.loss for end in one.relative_confidence.interval(level))
        assert np.mean((excess >= low) & (excess <= high)) == pytest.approx(level, abs=0.015 + 0.005)


@pytest.mark.parametrize(("kind", "size", "count"), [("srht", 64, 50), ("row_sample", 50, 50)])
def test_as_many_rows_as_there_are_lose_nothing(kind: str, size: int, count: int) -> None:
    sketch = theory.read_sketch(np.vstack([rows(50), np.zeros((size - 50, D + 1))]))
    for sketches in ([sketch], [sketch] * 3):
        certificate = theory.certify_whole(sketches, count, kind)
        assert (certificate.kind, certificate.excess_loss, certificate.standard_error) == ("exact", 0.0, 0.0)
        assert certificate.confidence is not None
        assert certificate.confidence.interval(0.99) == (0.0, 0.0)
        assert certificate.minimal_loss == pytest.approx(sketch.loss)
        exact = theory.exact_covariance(theory.PartitionMoments(rows(50), 50))
        covariance = theory.whole_covariance(sketches, count, kind)
        np.testing.assert_allclose(covariance.matrix, exact.matrix, rtol=1e-9)
        assert covariance.degrees_of_freedom == 46


def test_covariance_of_a_row_sample_is_that_of_its_rows() -> None:
    # Least squares on m rows with constant noise has the covariance σ² (X_sᵀX_s)⁻¹, exactly; σ² is the estimate.
    sample = rows(400, 5)[:80]
    sketch = theory.read_sketch(sample * np.sqrt(400 / 80))
    covariance = theory.whole_covariance([sketch], 400, "row_sample")
    X = sample[:, :D]
    written_out = covariance.noise_variance * np.linalg.inv(X.T @ X)
    # Terms of the order d/n are approximate: 4/400.
    np.testing.assert_allclose(covariance.matrix, written_out, rtol=0.02)
    gaussian = theory.whole_covariance([sketch], 400)
    assert np.all(np.diag(gaussian.matrix) > 1.1 * np.diag(written_out))


def test_unequal_sketches_are_refused() -> None:
    with pytest.raises(InputError, match="must agree in rows and rank"):
        theory.certify_whole([theory.read_sketch(rows(20)), theory.read_sketch(rows(30))], 210)
