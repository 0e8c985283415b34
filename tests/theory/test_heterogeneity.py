"""The test of unlike coefficients: its statistic written out, false alarms, power, and when it is not made."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from benchmarks.coverage_whole import partitions_for_test, rejections, sketch_test

from partsketch import theory
from partsketch.theory.heterogeneity import constant_noise_agreement

#: Every kind of noise with few partitions or with many.
FEW, MANY = ("differs", "heavy, grows"), ("constant", "grows")


@pytest.mark.parametrize(
    ("shape", "kind"), [*(((3, 200, 5, 13), kind) for kind in FEW), *(((32, 50, 5, 13), kind) for kind in MANY)]
)
def test_sketches_raise_no_false_alarms(shape: tuple[int, int, int, int], kind: str) -> None:
    # 200 data sets: at 5% the standard error is 1.5 points. One noise variance for all and for the rows, as the test
    # once had it, gives 18% at k = 32 with constant noise.
    assert rejections("sketches", shape, kind, 0.0, 200) <= 0.05 + 0.045


@pytest.mark.parametrize(
    ("shape", "kind"), [*(((3, 200, 5, 0), kind) for kind in MANY), *(((16, 80, 5, 0), kind) for kind in FEW)]
)
def test_factors_beside_random_partitions_raise_no_false_alarms(shape: tuple[int, int, int, int], kind: str) -> None:
    # 200 data sets; without random partitions half of those with growing noise are said to differ.
    assert rejections("factors", shape, kind, 0.0, 200) <= 0.05 + 0.045


def test_unlike_coefficients_are_found() -> None:
    # 60 data sets each; coefficients differ by the standard deviation of the noise, or a third of it with all rows.
    assert rejections("sketches", (8, 200, 5, 13), "constant", 1.0, 60) > 0.95
    assert rejections("factors", (8, 200, 5, 0), "constant", 0.3, 60) > 0.95
    assert rejections("factors", (8, 200, 5, 0), "grows", 0.5, 60) > 0.95


def test_growing_noise_looks_like_unlike_coefficients_to_factors_alone() -> None:
    rng = np.random.default_rng(1)
    chances = []
    for _ in range(100):
        parts = partitions_for_test(rng, 8, 200, 5, "grows", 0.0)
        chances.append(constant_noise_agreement([theory.PartitionMoments(rows, len(rows)) for rows in parts]))
    # That is why factors alone are not tested: of 100 data sets with shared coefficients far more than 5 are rejected.
    assert np.mean(np.array(chances) < 0.05) > 0.25


def test_the_statistic_written_out() -> None:
    rng = np.random.default_rng(8)
    parts = partitions_for_test(rng, 3, 50, 4, "grows", 0.5)
    moments = [theory.PartitionMoments(rows, len(rows)) for rows in parts]
    everything = np.vstack(parts)
    gram = everything[:, :4].T @ everything[:, :4]

    def loss(rows: np.ndarray) -> float:
        return float(np.linalg.lstsq(rows[:, :4], rows[:, 4])[1][0])

    def ratio(some: list[np.ndarray]) -> float:
        leverages = [float(np.trace(np.linalg.solve(gram, rows[:, :4].T @ rows[:, :4]))) for rows in some]
        chance = sum(loss(rows) / (len(rows) - 4) * (4 - h) for rows, h in zip(some, leverages, strict=True))
        return (loss(everything) - sum(loss(rows) for rows in some)) / chance

    shuffled = np.array_split(rng.permutation(everything), 3)
    found = theory.partition_heterogeneity(moments, [theory.PartitionMoments(rows, len(rows)) for rows in shuffled])
    assert found.statistic == pytest.approx(ratio(parts) / ratio(shuffled))
    assert found.degrees_of_freedom is not None
    assert found.residual_degrees_of_freedom is not None
    # The share of directions that the scores of random partitions point in, whichever of two estimates is smaller.
    solution, root = np.linalg.solve(gram, everything[:, :4].T @ everything[:, 4]), np.linalg.cholesky(gram)
    scores = np.array([np.linalg.solve(root, r[:, :4].T @ (r[:, 4] - r[:, :4] @ solution)) for r in shuffled])
    scatter, lengths = scores.T @ scores / 2, np.sum(scores**2, axis=1)
    squares = 2**2 / (1 * 4) * (np.sum(scatter**2) - np.trace(scatter) ** 2 / 2)
    directions = np.trace(scatter) ** 2 / squares if squares > 0 else 4.0
    # Two thirds of it: what three partitions show is not counted on in full.
    share = np.clip(2 / 3 * min(directions, 2 * lengths.mean() ** 2 / lengths.var(ddof=1), 4.0) / 4, 0.25, 1.0)
    assert share < 1
    hats = [np.linalg.solve(gram, rows[:, :4].T @ rows[:, :4]) for rows in parts]
    noise = np.array([loss(rows) / 46 for rows in parts])
    own = np.array([np.trace(hat) for hat in hats])
    pairs = np.array([[np.trace(one @ other) for other in hats] for one in hats])
    # A squared estimate of a variance with 46 degrees of freedom is 48/46 times its square in the mean.
    variance = np.sum(noise**2 * 46 / 48 * (4 - 2 * own)) + noise @ pairs @ noise
    variance -= np.sum(noise**2 * 2 / 48 * np.diagonal(pairs))
    above = min(np.sum(noise * (4 - own)) ** 2 / variance, 8)
    assert found.degrees_of_freedom == pytest.approx(above * share)
    assert found.p_value is not None
    # Sketches of 30 of 5,000 rows: the noise of the rows adds 25 times (30 − 4 − 1)/(5000 − 4).
    tested = theory.sketch_heterogeneity(theory.sketch_moments([rows[:30] for rows in parts], [5000] * 3))
    sketched = [rows[:30] for rows in parts]
    everything = np.vstack(sketched)
    gram = everything[:, :4].T @ everything[:, :4]
    assert tested.statistic == pytest.approx(ratio(sketched) / (1 + 25 * 25 / 4996))
    # Degrees of freedom below (Satterthwaite): the noise of each partition has 30 − 4, a squared estimate 2 more.
    shares = np.array([np.trace(np.linalg.solve(gram, rows[:, :4].T @ rows[:, :4])) for rows in sketched])
    chance = np.array([loss(rows) for rows in sketched]) * (4 - shares)
    below = chance.sum() ** 2 / np.sum(chance**2 / 28) - 2
    assert tested.residual_degrees_of_freedom == pytest.approx(below)
    assert tested.statistic is not None
    assert tested.degrees_of_freedom is not None
    assert tested.p_value == pytest.approx(scipy.stats.f.sf(tested.statistic, tested.degrees_of_freedom, below))


def test_the_p_value_falls_with_the_difference() -> None:
    chances = []
    for spread in (0.0, 0.5, 1.0):
        rng = np.random.default_rng(3)
        chance = sketch_test(partitions_for_test(rng, 6, 500, 5, "constant", spread), 20, rng).p_value
        assert chance is not None
        chances.append(chance)
    assert chances[0] > 0.01 > chances[1] > chances[2]


def test_no_test_where_nothing_honest_can_be_said() -> None:
    rng = np.random.default_rng(4)
    parts = partitions_for_test(rng, 4, 60, 5, "constant", 0.0)
    moments = [theory.PartitionMoments(rows, len(rows)) for rows in parts]
    alone = theory.partition_heterogeneity(moments)
    assert alone.p_value is None
    assert "partsketch diagnose" in alone.reason
    large = theory.sketch_heterogeneity(theory.sketch_moments([rows[:40] for rows in parts], [60] * 4))
    assert large.p_value is None
    assert "smaller sketch_size" in large.reason
    sampled = theory.sketch_heterogeneity(theory.sketch_moments(parts, [6000] * 4, sketch="row_sample"))
    assert sampled.p_value is None
    assert "single rows" in sampled.reason
    assert theory.partition_heterogeneity(moments[:1]).reason == "there is one partition only"
    exact = [np.column_stack([rows[:, :5], rows[:, :5].sum(axis=1)]) for rows in parts]
    noiseless = theory.sketch_heterogeneity(theory.sketch_moments(exact, [6000] * 4))
    assert noiseless.p_value is None
