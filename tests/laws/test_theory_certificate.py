"""Certificates made from explicit sketches alone: unbiased, and with a standard error that is right.

Each case draws 1,200 sets of sketches. The mean is compared within four standard errors. The stated standard error is
compared through its root mean square (the variance estimate is what is unbiased) with the standard deviation of the
estimates, within 15%: that deviation is itself known to about 4% (kurtosis up to 8), so the check has room for the
promise and not much more.
"""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import theory
from tests.theory.designs import (
    FloatArray,
    Partition,
    design,
    excesses,
    explicit_sketches,
    sketch_matrix,
    together,
)

SETS = 1200


def linear(name: str, rows: int, seed: int) -> list[Partition]:
    """The designs with one coefficient vector and equal noise, longer, as the certificate's second term assumes."""
    rng = np.random.default_rng(seed)
    partitions = []
    for X, _ in design(name, seed):
        longer = np.vstack([X] * (rows // len(X) + 1))[:rows] * (1 + 0.2 * rng.random((rows, 1)))
        partitions.append((longer, longer @ np.array([1.0, -2.0, 0.5, 3.0]) + rng.standard_normal(rows)))
    return partitions


def draw_sets(partitions: list[Partition], sizes: tuple[int, ...], rng: np.random.Generator) -> list[list[FloatArray]]:
    drawn = [explicit_sketches(together(part), m, SETS, rng) for part, m in zip(partitions, sizes, strict=True)]
    return [list(sketches) for sketches in zip(*drawn, strict=True)]


@pytest.mark.parametrize(
    ("name", "sizes", "weights"),
    [
        ("identical", (24, 24, 24), None),
        ("identical", (12, 12, 12), None),
        ("heterogeneous", (20, 28, 16), (0.3, 0.3, 0.4)),
    ],
)
def test_partition_certificate(name: str, sizes: tuple[int, ...], weights: tuple[float, ...] | None) -> None:
    rng = np.random.default_rng(21)
    partitions = linear(name, 100, 31)
    counts = [len(y) for _, y in partitions]
    certificates = [
        theory.certify_partition(theory.sketch_moments(sketches, counts), weights)
        for sketches in draw_sets(partitions, sizes, rng)
    ]
    moments = theory.moments_of(partitions)
    # Given the data, the estimate aims at the exact sketching term plus σ̃² (D − d), σ̃² from the exact losses.
    sketching = theory.partition_excess_loss(moments, sizes, weights)
    sketching -= theory.unsketched_average_excess_loss(moments, weights)
    variance = sum(part.loss for part in moments) / (sum(counts) - 4 * len(counts))
    divergence = theory.divergence(moments, weights)
    for attribute, target in (
        ("excess_loss", sketching + variance * (divergence - 4)),
        ("divergence", divergence),
        ("noise_variance", variance),
    ):
        values = np.array([getattr(certificate, attribute) for certificate in certificates])
        assert abs(values.mean() - target) < 4 * values.std(ddof=1) / np.sqrt(SETS)
    estimates = np.array([certificate.excess_loss for certificate in certificates])
    stated = np.sqrt(np.mean([certificate.standard_error**2 for certificate in certificates]))
    assert stated == pytest.approx(estimates.std(ddof=1), rel=0.15)


def test_partition_certificate_is_unbiased_for_the_expected_loss() -> None:
    # Noise is redrawn with every set: the mean is B_θ. 1,200 sets, four standard errors (about 2.5% of B_θ).
    rng = np.random.default_rng(22)
    designs = [X for X, _ in linear("heterogeneous", 100, 32)]
    estimates = []
    for _ in range(SETS):
        sketches = []
        for X in designs:
            y = X @ np.ones(4) + 2 * rng.standard_normal(len(X))
            sketches.append(rng.standard_normal((20, len(X))) @ np.column_stack([X, y]) / np.sqrt(20))
        estimates.append(theory.certify_partition(theory.sketch_moments(sketches, [100] * 3)).excess_loss)
    expected = theory.expected_partition_excess_loss_given_design([X.T @ X for X in designs], [100] * 3, 20, 4.0)
    assert abs(np.mean(estimates) - expected) < 4 * np.std(estimates, ddof=1) / np.sqrt(SETS)


def test_partition_certificate_with_singular_partitions() -> None:
    # The bias of minimum-norm averaging is estimated; noise is redrawn, so the target is the mean exact excess loss.
    rng = np.random.default_rng(23)
    designs = [X for X, _ in linear("singular", 100, 33)]
    estimates, targets, stated = [], [], []
    for _ in range(SETS):
        partitions = [(X, X @ np.array([1.0, -2.0, 0.5, 3.0]) + rng.standard_normal(len(X))) for X in designs]
        sketches = [rng.standard_normal((24, 100)) @ together(part) / np.sqrt(24) for part in partitions]
        certificate = theory.certify_partition(theory.sketch_moments(sketches, [100] * 3))
        estimates.append(certificate.excess_loss)
        stated.append(certificate.standard_error)
        targets.append(theory.partition_excess_loss(partitions, 24))
    assert certificate.kind == "approximate"
    # Approximate by construction: within 5% (the standard error of the mean is below 1%).
    assert np.mean(estimates) == pytest.approx(np.mean(targets), rel=0.05)
    assert np.sqrt(np.mean(np.square(stated))) == pytest.approx(np.std(estimates), rel=0.15)


def test_whole_certificate() -> None:
    rng = np.random.default_rng(24)
    partitions = design("heterogeneous")
    everything = np.vstack([together(part) for part in partitions])
    pairs = explicit_sketches(everything, 14, 2 * SETS, rng).reshape(SETS, 2, 14, 5)
    certificates = [theory.certify_whole([theory.read_sketch(Z) for Z in pair], len(everything)) for pair in pairs]
    estimates = np.array([certificate.excess_loss for certificate in certificates])
    expected = theory.whole_excess_loss(theory.pooled_moments(partitions).loss, 4, 14, 2)
    assert abs(estimates.mean() - expected) < 4 * estimates.std(ddof=1) / np.sqrt(SETS)
    pooled = theory.pooled_moments(partitions)
    fits = np.array([np.mean([theory.read_sketch(Z).solution for Z in pair], axis=0) for pair in pairs])
    excess = np.sum(((fits - pooled.solution) @ pooled.root.T) ** 2, axis=1)
    stated = np.sqrt(np.mean([certificate.standard_error**2 for certificate in certificates]))
    # Of the difference between estimate and loss, whose own deviation has heavy tails at m = d + 10.
    assert stated == pytest.approx((excess - estimates).std(ddof=1), rel=0.2)


@pytest.mark.parametrize("kind", ["srht", "sparse_sign"])
def test_certificate_of_other_sketches_is_close(kind: str) -> None:
    # 1,200 sets, noise redrawn: the mean realised excess loss is known to about 2%, so 8% is four of them.
    rng = np.random.default_rng(25)
    designs = [X for X, _ in linear("heterogeneous", 100, 34)]
    estimates, realised = [], []
    for _ in range(SETS):
        partitions = [(X, X @ np.ones(4) + rng.standard_normal(100)) for X in designs]
        sketches = [sketch_matrix(kind, 24, 100, rng) @ together(part) for part in partitions]
        moments = theory.sketch_moments(sketches, [100] * 3, sketch=kind)
        certificate = theory.certify_partition(moments)
        assert certificate.kind == "approximate"
        estimates.append(certificate.excess_loss)
        realised.append(excesses(partitions, moments.coefficients.mean(axis=0)[None])[0])
    assert np.mean(estimates) == pytest.approx(np.mean(realised), rel=0.08)
