"""Draws without rows against explicit sketches: the same law, by two-sample Kolmogorov-Smirnov tests.

8,000 draws a side see a difference of about 4% in probability at the level used, 1e-5: a right program passes all of
the 58 comparisons with probability 99.9%, whatever the seed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from partsketch import simulate, theory
from tests.theory.designs import DESIGNS, design, excesses, explicit_sketches, fits, together

DRAWS = 8000
LEVEL = 1e-5


@pytest.mark.parametrize("name", DESIGNS)
def test_partition_whole_and_stacked_draws_follow_the_law(name: str) -> None:
    rng = np.random.default_rng(51)
    partitions = design(name)
    moments = theory.moments_of(partitions)
    sizes = (8, 10, 12)
    sketches = [explicit_sketches(together(part), m, DRAWS, rng) for part, m in zip(partitions, sizes, strict=True)]
    everything = np.vstack([together(part) for part in partitions])
    explicit = {
        "partition": np.mean([fits(drawn) for drawn in sketches], axis=0),
        "stack": fits(np.concatenate(sketches, axis=1)),
        "whole": np.mean([fits(explicit_sketches(everything, 8, DRAWS, rng)) for _ in range(3)], axis=0),
    }
    for method, coefficients in explicit.items():
        size = 8 if method == "whole" else sizes
        drawn = simulate.draw_excess_losses(method, moments, size, DRAWS, np.random.default_rng(52))
        assert ks_2samp(drawn, excesses(partitions, coefficients)).pvalue > LEVEL
        drawn = simulate.draw_coefficients(method, moments, size, DRAWS, np.random.default_rng(53))
        for column in range(coefficients.shape[1]):
            assert ks_2samp(drawn[:, column], coefficients[:, column]).pvalue > LEVEL


@pytest.mark.parametrize("sketch_size", [3, 5, 9])
def test_bartlett_sketches_have_the_law_of_explicit_ones(sketch_size: int) -> None:
    # m below, at and above q = 5: entries of the Gram matrix, and the fit where one exists.
    rng = np.random.default_rng(54)
    rows = together(design("heterogeneous")[1])
    moments = theory.PartitionMoments.from_triangular(rows, len(rows))
    drawn = simulate.draw_sketches(moments, sketch_size, DRAWS, rng)
    explicit = explicit_sketches(rows, sketch_size, DRAWS, rng)
    assert drawn.shape == (DRAWS, min(sketch_size, 5), 5)
    grams = [Z.transpose(0, 2, 1) @ Z for Z in (drawn, explicit)]
    for i, j in ((0, 0), (0, 3), (2, 4), (4, 4)):
        assert ks_2samp(grams[0][:, i, j], grams[1][:, i, j]).pvalue > LEVEL
    if sketch_size > 5:
        assert ks_2samp(fits(drawn)[:, 0], fits(explicit)[:, 0]).pvalue > LEVEL
