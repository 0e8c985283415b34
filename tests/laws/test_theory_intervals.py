"""Intervals and the heterogeneity test, from explicit sketches of three kinds, at m = d + 8.

250 data sets with 5 coefficients each: at 90% the standard error of a coverage is 0.85 points (1,250 nearly independent
intervals), so 2.5 points are three of them.
"""

from __future__ import annotations

import numpy as np
import pytest

from partsketch import theory
from partsketch.theory.sketch_moments import moments_of_parts
from tests.theory.designs import FloatArray, read_all, sketch_matrix

SETS, COLUMNS, PARTITIONS, ROWS = 250, 5, 5, 150
LEVELS = (0.90, 0.95, 0.99)
TRUTH = np.arange(1.0, COLUMNS + 1)


def covered(centre: FloatArray, covariance: theory.CoefficientCovariance) -> list[float]:
    ends = [theory.confidence_intervals(centre, covariance, level) for level in LEVELS]
    return [float(np.mean((end[:, 0] <= TRUTH) & (end[:, 1] >= TRUTH))) for end in ends]


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal", "srht", "sparse_sign"])
def test_coverage_of_sketched_fits(kind: str) -> None:
    rng = np.random.default_rng(41)
    designs = [rng.standard_normal((ROWS, COLUMNS)) * (1.7 if i == 0 else 1.0) for i in range(PARTITIONS)]
    counts = [ROWS] * PARTITIONS
    hits: dict[str, list[list[float]]] = {"average": [], "spread": [], "weighted": [], "stacked": []}
    p_values = []
    sets = [
        [
            sketch_matrix(kind, COLUMNS + 8, ROWS, rng)
            @ np.column_stack([X, X @ TRUTH + 2 * rng.standard_normal(ROWS)])
            for X in designs
        ]
        for _ in range(SETS)
    ]
    for sketches in read_all(sets):
        moments = moments_of_parts(sketches, counts, kind)
        thetas = moments.coefficients
        weights = theory.sketch_weights(moments)
        hits["average"].append(covered(thetas.mean(axis=0), theory.partition_covariance(moments)))
        hits["spread"].append(covered(thetas.mean(axis=0), theory.spread_covariance(thetas)))
        hits["weighted"].append(covered(weights.values @ thetas, theory.partition_covariance(moments, weights)))
        stacked = theory.stacked_fit(moments.sketches, counts, sketch=kind)
        hits["stacked"].append(covered(stacked.pooled.solution, theory.stacked_covariance(stacked)))
        p_values.append(theory.sketch_heterogeneity(moments).p_value)
    for coverage in hits.values():
        np.testing.assert_allclose(np.mean(coverage, axis=0), LEVELS, atol=0.025)
    # A test at 5% that is on the safe side; the standard error over 250 sets is 1.4 points.
    assert np.mean(np.array(p_values) < 0.05) < 0.05


def test_coverage_of_exact_average_and_whole_fits() -> None:
    rng = np.random.default_rng(42)
    designs = [rng.standard_normal((40, COLUMNS)) * (3.0 if i == 0 else 1.0) for i in range(3)]
    everything = np.vstack(designs)
    hits: dict[str, list[list[float]]] = {"exact": [], "average": [], "whole": []}
    for _ in range(SETS):
        targets = [X @ TRUTH + rng.standard_normal(40) for X in designs]
        parts = theory.moments_of(list(zip(designs, targets, strict=True)))
        pooled = theory.pooled_moments(parts)
        hits["exact"].append(covered(pooled.solution, theory.exact_covariance(pooled)))
        average = np.mean([part.solution for part in parts], axis=0)
        hits["average"].append(covered(average, theory.average_covariance(parts)))
        data = np.column_stack([everything, np.concatenate(targets)])
        sketches = [theory.read_sketch(rng.standard_normal((14, 120)) @ data / np.sqrt(14)) for _ in range(3)]
        centre = np.mean([sketch.solution for sketch in sketches], axis=0)
        hits["whole"].append(covered(centre, theory.whole_covariance(sketches, 120)))
    for coverage in hits.values():
        np.testing.assert_allclose(np.mean(coverage, axis=0), LEVELS, atol=0.025)
