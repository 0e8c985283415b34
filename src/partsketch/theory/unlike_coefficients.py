"""What unlike coefficients of partitions add to the error of the stacked fit, and to the cost of averaging.

In the coordinates of `PooledScatter`, E is the covariance of `Σ B_i (a_i − a*)`, a_i the coefficients of partition i.
"""

from __future__ import annotations

import math

import numpy as np

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray
from partsketch.theory.pooled_scatter import PooledScatter
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.turned_grams import parts_of
from partsketch.theory.weights import SketchWeights

BEYOND = (
    "a sketch is so nearly dependent in directions that others decide that the error cannot be reckoned: use "
    "method='stack', or leave columns out."
)


def unlike_scatter(moments: SketchMoments, scatter: PooledScatter) -> FloatArray:
    """Estimate E: by how much the error of the stacked fit by its residuals is larger than by those of the fits.

    The difference of the traces is tr E and noise of variance `Σ 2 (v_i t_i)² (r_i − t_i)/((m_i − t_i)(m_i − r_i))`. A
    trace is never below zero: its mean is taken, with all that are below set to zero.
    """
    own = moments.losses * moments.noise_factors * moments.inverse_scales
    free, freedom = moments.sizes - moments.ranks, moments.sizes - scatter.leverages
    unlike = scatter.scatter.sum(axis=0) - np.tensordot(own, scatter.grams, axes=1)
    if not np.isfinite(unlike).all():
        raise InputError(BEYOND)
    squares = 2 * (scatter.leverages * own) ** 2 / (1 + 2 / free)
    doubt = math.sqrt(np.sum(squares * np.maximum(moments.ranks - scatter.leverages, 0.0) / freedom / free))
    values, turns = np.linalg.eigh((unlike + unlike.T) / 2)
    values = np.maximum(values, 0.0)
    total = float(values.sum())
    # Where noise hides E in every direction, none of them is known to have it.
    amount = mean_above_zero(float(np.trace(unlike)), doubt) / total if total > 0 else 0.0
    return np.asarray((turns * (amount * values)) @ turns.T)


def mean_above_zero(mean: float, deviation: float) -> float:
    """Return the mean of a normal variate of which values below zero are taken for zero."""
    if deviation <= 0:
        return max(mean, 0.0)
    ratio = mean / deviation
    density = math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    return mean * math.erfc(-ratio / math.sqrt(2)) / 2 + deviation * density


def error_of_rows(
    moments: SketchMoments, weights: SketchWeights, scatter: PooledScatter, inverses: FloatArray, variances: FloatArray
) -> tuple[FloatArray, float]:
    """Return E and the variance of μ per direction that the noise of the rows gives to shared coefficients.

    Coefficients of p rows then differ by `P_it_i`, t_i of covariance `v_i B_i m_i/(p_i − r_i)`.
    """
    noise = variances * moments.sizes / np.maximum(moments.row_counts - moments.ranks, 1.0)
    grams, ranks, leverages = scatter.grams, moments.ranks, scatter.leverages
    together = np.tensordot(noise, grams, axes=1)
    energies = noise * (ranks - 2 * leverages) + np.tensordot(grams, together, axes=((1, 2), (0, 1)))
    unlike = np.tensordot((energies + noise) / moments.sizes, grams, axes=1)
    rank = grams.shape[-1]
    for some in parts_of(len(grams), rank):
        divided = grams[some] / moments.sizes[some, None, None]
        unlike -= np.tensordot(2 * noise[some], divided @ grams[some], axes=1)
        # Σ B_iTB_i/m_i as one product of matrices below one another.
        unlike += (together @ grams[some]).reshape(-1, rank).T @ divided.reshape(-1, rank)
    if weights.estimated:
        return unlike, 0.0
    inverse_traces = moments.inverse_scales * np.trace(inverses, axis1=1, axis2=2)
    costs = weights.values**2 * inverse_traces - 2 * weights.values * ranks + leverages
    return unlike, max(float(noise @ costs), 0.0) / rank
