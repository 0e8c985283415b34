"""Gaussian designs and the high-probability bound: values, monotony, refusals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partsketch import InputError, theory


def test_design_divergence_values() -> None:
    assert theory.gaussian_design_divergence(100, 4, 1) == 4
    assert theory.gaussian_design_divergence(3, 4, 1) == 4
    assert theory.gaussian_design_divergence(100, 4, 10) == pytest.approx(4 * 95 / 50)


def test_gap_only_widens_while_the_printed_one_rises_and_falls() -> None:
    n, d, m = 10_000, 20, 40
    counts = range(1, 477)
    gaps = [theory.gaussian_design_gap(n, d, m, k, 1.0) for k in counts]
    printed = [theory.printed_gap_factor(k, n, d, m) for k in counts]
    assert all(later < earlier for earlier, later in pairwise(gaps))
    peak = printed.index(max(printed))
    assert 0 < peak < len(printed) - 1
    assert printed[peak] > 1000


@given(d=st.integers(1, 500), k=st.integers(1, 1000), delta=st.floats(1e-9, 0.999))
def test_smallest_sketch_size_is_smallest(d: int, k: int, delta: float) -> None:
    size = theory.smallest_sketch_size(d, k, delta)
    limit = math.sqrt(d) + math.sqrt(2 * math.log(2 * k / delta))
    assert math.sqrt(size) > limit >= math.sqrt(size - 1)
    n = k * (d + 10)
    assert math.isfinite(theory.high_probability_excess_loss(n, d, size, k, 1.0, float(d), delta))
    with pytest.raises(InputError, match=f"use at least {size}"):
        theory.high_probability_excess_loss(n, d, size - 1, k, 1.0, float(d), delta)


def test_bound_exceeds_the_expected_loss() -> None:
    for m in (200, 1000, 5000):
        bound = theory.high_probability_excess_loss(10_000, 10, m, 2, 1.0, 11.0, 0.05)
        assert bound > theory.expected_partition_excess_loss(10_000, 10, m, 2, 1.0, 11.0)


def test_bound_written_out() -> None:
    t = math.sqrt(2 * math.log(2 * 4 / 0.1))
    factor = (math.sqrt(300) + math.sqrt(250) + t) ** 2 / (math.sqrt(300) - math.sqrt(5) - t) ** 2
    value = theory.high_probability_excess_loss(1000, 5, 300, 4, 2.0, 6.0, 0.1)
    assert value == pytest.approx(2.0 * (factor * 6.0 - 5))


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"n = 50 is not above k\(d \+ 1\) = 50"):
        theory.gaussian_design_divergence(50, 4, 10)
    with pytest.raises(InputError, match=r"n = 50 is not above"):
        theory.gaussian_design_gap(50, 4, 10, 10, 1.0)
    with pytest.raises(InputError, match=r"n = 50 is not above"):
        theory.printed_gap_factor(10, 50, 4, 10)
    with pytest.raises(InputError, match="sketch_size is 5"):
        theory.gaussian_design_gap(500, 4, 5, 10, 1.0)
    with pytest.raises(InputError, match="delta must lie strictly between 0 and 1"):
        theory.smallest_sketch_size(4, 2, 0.0)
    with pytest.raises(InputError, match="leave no more than d = 4 rows each"):
        theory.high_probability_excess_loss(8, 4, 500, 2, 1.0, 4.0, 0.1)
    with pytest.raises(InputError, match="d must be an integer of at least 1"):
        theory.smallest_sketch_size(0, 2, 0.1)


def test_expected_divergence_of_uneven_partitions() -> None:
    assert theory.gaussian_design_divergence_of_sizes([25] * 4, 3) == pytest.approx(
        theory.gaussian_design_divergence(100, 3, 4)
    )
    assert theory.gaussian_design_divergence_of_sizes([7], 3) == 3
    with pytest.raises(InputError, match="partition of 4 rows"):
        theory.gaussian_design_divergence_of_sizes([40, 4], 3)
    # 1,000 designs; without the − d − 1 it would be 3.8 where 4.88 is right, dozens of standard errors off.
    rng = np.random.default_rng(3)
    sizes, d = (40, 12, 20), 3
    drawn = []
    for _ in range(1000):
        designs = [rng.standard_normal((size, d)) @ np.diag([1.0, 3.0, 0.2]) for size in sizes]
        drawn.append(theory.divergence([X.T @ X for X in designs]))
    expected = theory.gaussian_design_divergence_of_sizes(sizes, d)
    assert abs(np.mean(drawn) - expected) < 4 * np.std(drawn) / np.sqrt(len(drawn))
