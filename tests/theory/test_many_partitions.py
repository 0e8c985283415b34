"""Of thousands of partitions every set of matrices counts: how many exist at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from partsketch.theory.around_exact import partition_covariance_around_exact, stacked_covariance_around_exact
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.sketch_moments import SketchMoments, moments_of_parts
from partsketch.theory.stacked_certificate import stacked_covariance
from partsketch.theory.stacking import StackedFit, stacked_fit

PARTITIONS, COLUMNS = 4000, 8


def _moments() -> SketchMoments:
    part = PartitionMoments(np.random.default_rng(0).normal(size=(24, COLUMNS + 1)), 24, 0, 200)
    return moments_of_parts([part] * PARTITIONS, [200] * PARTITIONS, "gaussian")


def _fit(moments: SketchMoments) -> StackedFit:
    return stacked_fit(moments.sketches, [200] * PARTITIONS)


@pytest.mark.parametrize(
    ("work", "most"),
    [
        # Gram matrices, departures, covariances, and the sketches stacked or pairs of them; nine before they were few.
        (lambda moments: stacked_covariance(_fit(moments)), 6),
        (lambda moments: stacked_covariance_around_exact(_fit(moments)), 6),
        # Gram matrices and covariances; six before.
        (partition_covariance_around_exact, 4.5),
    ],
)
def test_matrices_that_exist_at_once(work: Callable[[SketchMoments], object], most: float) -> None:
    moments = _moments()
    tracemalloc.start()
    try:
        work(moments)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * PARTITIONS * COLUMNS**2 * 8
