"""Draws without rows: factors for many k from one pass, determinism, refusals (their law is checked in tests/laws)."""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import InputError, simulate, theory
from tests.theory.designs import design


@pytest.mark.parametrize("remainder", ["spread", "drop"])
def test_factors_from_one_pass_equal_separate_fits(remainder: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((103, 3)), rng.standard_normal(103)
    for k, moments in simulate.partition_factors(X, y, [1, 4, 10, 40], remainder).items():
        rows = range(103) if remainder == "spread" else range(k * (103 // k))
        for part, picked in zip(moments, np.array_split(np.array(rows), k), strict=True):
            expected = theory.PartitionMoments.from_rows(X[picked], y[picked])
            assert (part.row_count, part.rank) == (expected.row_count, expected.rank)
            np.testing.assert_allclose(part.solution, expected.solution, atol=1e-10)
            assert part.loss == pytest.approx(expected.loss, abs=1e-10)


@pytest.mark.parametrize("method", simulate.METHODS)
def test_a_seed_decides_the_draws(method: str) -> None:
    draws = [simulate.draw_coefficients(method, design("singular"), 12, 5, np.random.default_rng(9)) for _ in range(2)]
    np.testing.assert_array_equal(draws[0], draws[1])
    losses = simulate.draw_excess_losses(method, design("singular"), 12, 5, np.random.default_rng(9))
    expected = [theory.excess_loss(design("singular"), row) for row in draws[0]]
    np.testing.assert_allclose(losses, expected)


def test_weights_and_sketch_counts_are_used() -> None:
    partitions = design("identical")
    only_first = simulate.draw_coefficients(
        "partition", partitions, 10, 3, np.random.default_rng(0), weights=[1.0, 0.0, 0.0]
    )
    alone = simulate.draw_coefficients("partition", partitions[:1], 10, 3, np.random.default_rng(0))
    np.testing.assert_allclose(only_first, alone)
    many = simulate.draw_excess_losses("whole", partitions, 10, 300, np.random.default_rng(0), n_sketches=100)
    few = simulate.draw_excess_losses("whole", partitions, 10, 300, np.random.default_rng(0), n_sketches=1)
    assert many.mean() < few.mean() / 20


def test_refusals() -> None:
    rng = np.random.default_rng(0)
    partitions = design("identical")
    with pytest.raises(InputError, match="use one of partition, whole, stack"):
        simulate.draw_coefficients("mean", partitions, 9, 2, rng)
    with pytest.raises(InputError, match="sketch_size 3 is below the rank 4 of partition 0"):
        simulate.draw_coefficients("partition", partitions, 3, 2, rng)
    with pytest.raises(InputError, match="sketch_size 3 is below the rank 4 of the data"):
        simulate.draw_coefficients("whole", partitions, 3, 2, rng)
    with pytest.raises(InputError, match="the sketches have 3 rows together, below the rank 4"):
        simulate.draw_coefficients("stack", partitions, 1, 2, rng)
    with pytest.raises(InputError, match="use 'spread' or 'drop'"):
        simulate.partition_factors(np.ones((4, 1)), np.ones(4), [2], "round")
    with pytest.raises(InputError, match="k = 5 partitions need at least as many rows, not 4"):
        simulate.partition_factors(np.ones((4, 1)), np.ones(4), [5])
    with pytest.raises(InputError, match="draws must be an integer of at least 1"):
        simulate.draw_coefficients("stack", partitions, 9, 0, rng)
