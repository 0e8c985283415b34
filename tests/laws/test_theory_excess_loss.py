"""The excess-loss formulas against explicit Gaussian sketches.

Sample sizes: the excess loss of one draw has a relative standard deviation of at most 1.05 in these designs, so 10,000
draws give a standard error of at most 1.05% and four of them stay below 4.3%: an error of that size in a formula is
seen, and each test asserts that it would be. Sketch sizes leave m − r − 1 ≥ 11, far from the infinite variance at
m ≤ r + 3. The tolerance is four standard errors of the draws themselves.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from partsketch import theory
from tests.theory.designs import (
    COEFFICIENTS,
    COLUMNS,
    DESIGNS,
    FloatArray,
    design,
    excesses,
    explicit_sketches,
    fits,
    together,
)

DRAWS = 10_000


def agrees(draws: FloatArray, expected: float) -> None:
    error = float(draws.std(ddof=1) / np.sqrt(len(draws)))
    assert 4 * error < 0.043 * expected, "too few draws to see an error of 4.3%"
    assert abs(float(draws.mean()) - expected) < 4 * error


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(("sizes", "weights"), [((20, 20, 20), (1 / 3, 1 / 3, 1 / 3)), ((16, 24, 20), (0.5, 0.2, 0.3))])
def test_partition_excess_loss_given_the_data(name: str, sizes: tuple[int, ...], weights: tuple[float, ...]) -> None:
    rng = np.random.default_rng(1)
    partitions = design(name)
    average = sum(
        weight * fits(explicit_sketches(together(part), size, DRAWS, rng))
        for weight, part, size in zip(weights, partitions, sizes, strict=True)
    )
    agrees(excesses(partitions, np.asarray(average)), theory.partition_excess_loss(partitions, sizes, weights))


@pytest.mark.parametrize("name", DESIGNS)
def test_whole_excess_loss_given_the_data(name: str) -> None:
    rng = np.random.default_rng(2)
    partitions = design(name)
    if name == "singular":
        for X, _ in partitions:
            X[:, 2] = X[:, 1]
    everything = np.vstack([together(part) for part in partitions])
    betas = (
        fits(explicit_sketches(everything, 16, DRAWS, rng)) + fits(explicit_sketches(everything, 16, DRAWS, rng))
    ) / 2
    pooled = theory.pooled_moments(partitions)
    assert pooled.rank == (COLUMNS - 1 if name == "singular" else COLUMNS)
    agrees(excesses(partitions, betas), theory.whole_excess_loss(pooled.loss, pooled.rank, 16, 2))


def test_quantiles_of_a_single_sketch() -> None:
    # Shares of 10,000 draws are known to half a point; m = d + 2, where the mean is unusable.
    rng = np.random.default_rng(3)
    partitions = design("heterogeneous")
    everything = np.vstack([together(part) for part in partitions])
    losses = excesses(partitions, fits(explicit_sketches(everything, COLUMNS + 2, DRAWS, rng)))
    pooled = theory.pooled_moments(partitions)
    for probability in (0.1, 0.5, 0.9, 0.99):
        limit = theory.single_sketch_excess_loss_quantile(pooled.loss, COLUMNS, COLUMNS + 2, probability)
        error = np.sqrt(probability * (1 - probability) / DRAWS)
        assert abs(np.mean(losses <= limit) - probability) < 4 * error


def test_expected_over_sketches_and_noise() -> None:
    # One S serves all 10,000 draws' own noise vectors: y is redrawn with every S.
    rng = np.random.default_rng(4)
    partitions = design("heterogeneous")
    designs = [part[0] for part in partitions]
    everything = np.vstack(designs)
    weights, sizes, sigma = np.array([0.2, 0.5, 0.3]), (18, 24, 20), 1.5
    noise = [sigma * rng.standard_normal((DRAWS, len(X))) for X in designs]
    exact = COEFFICIENTS + np.concatenate(noise, axis=1) @ np.linalg.pinv(everything).T
    theta = np.zeros((DRAWS, COLUMNS))
    average = np.zeros((DRAWS, COLUMNS))
    for X, E, weight, size in zip(designs, noise, weights, sizes, strict=True):
        average += weight * (COEFFICIENTS + E @ np.linalg.pinv(X).T)
        for start in range(0, DRAWS, 2000):
            S = rng.standard_normal((2000, size, len(X))) / np.sqrt(size)
            sketched = np.concatenate([S @ X, S @ (X @ COEFFICIENTS + E[start : start + 2000])[:, :, None]], axis=2)
            theta[start : start + 2000] += weight * fits(sketched)
    grams = [X.T @ X for X in designs]
    counts = [len(X) for X in designs]
    losses = np.sum(((theta - exact) @ everything.T) ** 2, axis=1)
    agrees(losses, theory.expected_partition_excess_loss_given_design(grams, counts, sizes, sigma**2, weights))
    losses = np.sum(((average - exact) @ everything.T) ** 2, axis=1)
    agrees(losses, theory.expected_unsketched_average_excess_loss(grams, sigma**2, weights))


def test_expected_over_sketches_noise_and_gaussian_design() -> None:
    # Everything is redrawn: n = 72, d = 2, k = 3. β̄ and θ̄ share design and noise, so their difference shows the gap.
    rng = np.random.default_rng(5)
    n, d, k, m, draws = 72, 2, 3, 9, 20_000
    X = rng.standard_normal((draws, n, d))
    y = rng.standard_normal((draws, n, 1))
    data = np.concatenate([X, y], axis=2)
    exact = fits(data)
    theta = np.mean(
        [fits(rng.standard_normal((draws, m, n // k)) @ data[:, i * n // k : (i + 1) * n // k]) for i in range(k)],
        axis=0,
    )
    beta = np.mean([fits(rng.standard_normal((draws, m, n)) @ data) for _ in range(k)], axis=0)

    def losses(coefficients: FloatArray) -> FloatArray:
        return np.asarray(np.sum((X @ (coefficients - exact)[:, :, None]) ** 2, axis=(1, 2)))

    divergence = theory.gaussian_design_divergence(n, d, k)
    agrees(losses(beta), theory.expected_whole_excess_loss(n, d, m, k, 1.0))
    agrees(losses(theta), theory.expected_partition_excess_loss(n, d, m, k, 1.0, divergence))
    gap = losses(beta) - losses(theta)
    error = float(gap.std(ddof=1) / np.sqrt(draws))
    expected = theory.gaussian_design_gap(n, d, m, k, 1.0)
    printed = d * (theory.printed_gap_factor(k, n, d, m) + 1)
    assert abs(gap.mean() - expected) < 4 * error
    assert abs(gap.mean() - printed) > 14 * error
    grams = [data[:, i * n // k : (i + 1) * n // k, :d] for i in range(k)]
    products = [rows.transpose(0, 2, 1) @ rows for rows in grams]
    values = sum(np.einsum("aij,aji->a", G, np.linalg.inv(H)) for G in products for H in products) / k**2
    agrees(np.asarray(values), divergence)


def test_high_probability_bound_holds_with_its_probability() -> None:
    # 1,500 draws of k = 3 sketches; with δ = 0.2 the failures may reach 20% + 4·1.03%. The noise average is exact:
    # σ² Σ tr(G A⁻¹XᵀSᵀSSᵀSXA⁻¹)/k² − σ²d. The two events behind the bound are each checked at their own 1 − δ/(2k).
    rng = np.random.default_rng(6)
    n, k, delta, draws = 180, 3, 0.2, 1500
    partitions = design("identical")
    # ‖E P‖ = ‖R P‖ for the factor R of all rows E; what is p × p is cheaper than what is m × n.
    factor = np.linalg.qr(np.vstack([part[0] for part in partitions]))[1]
    m = 5 * theory.smallest_sketch_size(COLUMNS, k, delta)
    total = np.zeros(draws)
    for X, _ in partitions:
        whitener = np.linalg.qr(X)[1]
        deviation = np.sqrt(2 * np.log(2 * k / delta))
        for start in range(0, draws, 500):
            S = rng.standard_normal((500, m, len(X))) / np.sqrt(m)
            sketched = S @ (X @ np.linalg.inv(whitener))
            gram = sketched.transpose(0, 2, 1) @ sketched
            moved = factor @ np.linalg.inv(whitener) @ np.linalg.solve(gram, sketched.transpose(0, 2, 1) @ S)
            total[start : start + 500] += np.sum(moved**2, axis=(1, 2)) / k**2
            smallest = np.sqrt(np.linalg.eigvalsh(gram)[:, 0])
            assert np.mean(smallest * np.sqrt(m) < np.sqrt(m) - np.sqrt(COLUMNS) - deviation) < delta / (2 * k) + 0.03
    bound = theory.high_probability_excess_loss(
        n, COLUMNS, m, k, 1.0, theory.divergence([X.T @ X for X, _ in partitions]), delta
    )
    assert np.mean(total - COLUMNS > bound) <= delta + 4 * np.sqrt(delta * (1 - delta) / draws)
    assert np.quantile(total - COLUMNS, 0.5) > bound / 20, "a bound that loose would hide any mistake"


def test_law_of_the_excess_loss_of_one_sketch() -> None:
    # 5,000 draws: a Kolmogorov-Smirnov p-value above 1e-4 with this seed; a wrong degree of freedom gives below 1e-8.
    rng = np.random.default_rng(7)
    partitions = design("identical")
    everything = np.vstack([together(part) for part in partitions])
    losses = excesses(partitions, fits(explicit_sketches(everything, 10, 5000, rng)))
    pooled = theory.pooled_moments(partitions)
    grid = np.linspace(0.005, 0.995, 199)
    limits = np.array([theory.single_sketch_excess_loss_quantile(pooled.loss, COLUMNS, 10, p) for p in grid])
    assert kstest(np.interp(losses, limits, grid), "uniform").pvalue > 1e-4
