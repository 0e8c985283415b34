"""What an averaged fit loses and what the sketches show of it, given the sketched features: the law, by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from partsketch import theory
from partsketch.theory.excess_law import LEVELS, ExcessLaw, FitInSketches, excess_laws
from partsketch.theory.partition_certificate import excess_scalars

COLUMNS, SIZE, PARTITIONS, DRAWS = 5, 15, 4, 400
#: Variances of the sketched residuals of each partition.
NOISE = {"alike": np.ones(PARTITIONS), "unlike": np.array([0.25, 1.0, 2.0, 8.0])}


def laws_and_losses(name: str) -> tuple[list[list[ExcessLaw]], NDArray[np.float64]]:
    """Draw the noise of the sketches again and again, with the same sketched features and shared coefficients."""
    rng = np.random.default_rng(8)
    features = [rng.standard_normal((SIZE, COLUMNS)) for _ in range(PARTITIONS)]
    root = np.linalg.qr(np.vstack(features), mode="r")
    found, losses = [], np.empty(DRAWS)
    for draw in range(DRAWS):
        errors = [np.sqrt(level) * rng.standard_normal(SIZE) for level in NOISE[name]]
        sketches = [np.column_stack(both) for both in zip(features, errors, strict=True)]
        moments = theory.sketch_moments(sketches, [1000] * PARTITIONS)
        weights, scatter = theory.given_weights(moments), theory.pooled_scatter(moments)
        scalars = excess_scalars(moments, weights, scatter)
        fit = FitInSketches(scalars.inverses, scalars.distance, 1.0, scalars.own, 0.0)
        found.append(list(excess_laws(moments, weights, scatter, fit)))
        # By the sketched Gram matrix, which the law is about; the true coefficients are zero.
        away = root @ moments.coefficients.mean(axis=0)
        losses[draw] = away @ away
    return found, losses


@pytest.mark.parametrize("name", NOISE)
def test_the_loss_given_what_the_sketches_show(name: str) -> None:
    """Mean and variance of `‖βĝ + ζ‖²`, 400 draws: the mean is known to 3%, the variance to about 15%."""
    found, losses = laws_and_losses(name)
    middle = [laws[len(LEVELS) // 2] for laws in found]
    means = np.array([law.along * law.length + law.rest for law in middle])
    variances = np.array(
        [
            4 * law.along * law.length * law.ahead
            + 2 * law.ahead**2
            + 2 * (law.rest - law.ahead) ** 2 / law.rest_dimensions
            + law.noise * law.rest**2
            for law in middle
        ]
    )
    left = losses - means
    # Slopes made from estimated variances are off by chance, which lowers the mean a little.
    assert abs(left.mean()) < 4 * left.std() / np.sqrt(DRAWS) + 0.05 * losses.mean()
    # Slopes from estimated variances leave a little more.
    assert 0.75 < np.mean(left**2) / np.mean(variances) < 1.5
    if name != "alike":
        # The distance to the stacked fit shows the noisy sketch's error, direction by direction.
        assert np.mean(left**2) < 0.8 * losses.var()


def test_levels_rise_and_alike_partitions_share_nothing_with_the_estimates() -> None:
    """E grows with the level, so ĝ tells less of g; for alike partitions residuals tell nothing of the error."""
    alike, noisy = (laws_and_losses(name)[0] for name in NOISE)
    for laws in (*alike, *noisy):
        assert laws[0].spread <= laws[1].spread <= laws[2].spread
    for found in (alike, noisy):
        means = [np.mean([laws[place].spread for laws in found]) for place in range(len(LEVELS))]
        assert means[0] < 0.99 * means[1] < 0.98 * means[2]
    shared = [np.mean([laws[0].noise_with_rest for laws in found]) for found in (alike, noisy)]
    # 2/m times the leverage that the noisy sketch has in its own direction; variances of 15 rows leave a little of 0.
    assert shared[0] < 0.01
    assert shared[1] > 4 * shared[0]
