"""How far the fit to all sketches stacked is from exact least squares, without assuming that partitions are alike.

Unweighted, the stacked fit `a_s` aims at exact least squares a* whatever the partitions are. With `u_j = y_j − X_j a*`
its error is `A⁻¹ Σ_j [(S_jX_j)ᵀ S_ju_j − X_jᵀu_j]` to first order, and the rows of a Gaussian sketch give each bracket
the covariance `Ω_j = (G_j ‖u_j‖² + g_j g_jᵀ)/m_j`, with `g_j = X_jᵀu_j` and `Σ g_j = 0`. Everything here is in
coordinates in which the stacked Gram matrix A is the identity.

The residuals of the stacked fit are smaller than u_j, and its gradients differ from g_j. Both are corrected: with `B_j`
the Gram matrix of sketch j, `t_j = tr B_j`, and Ω = ΣΩ_j,

    E ‖û_j‖²  = ‖u_j‖² − 2 tr Ω_j + tr(B_jΩ)
    E ĝ_jĝ_jᵀ = g_jg_jᵀ − [g_jg_jᵀ(B_j + t_j) + transposed]/m_j + Ω_j − Ω_jB_j − B_jΩ_j + B_jΩB_j

The first is exact for a single sketch, where it says `E ρ = ℓ (1 − r/m)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.helpers import shared_map
from partsketch.theory.arguments import FloatArray, require_sketch_size
from partsketch.theory.moments import PartitionMoments
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.turned_grams import parts_of

# The system for the losses has one unknown per partition; beyond this many its off-diagonal terms, which are of the
# order of the columns over all sketch rows, are left out.
LARGEST_SYSTEM = 512

_PASSES = 2


@dataclass(frozen=True, eq=False)
class PooledScatter:
    """The stacked fit and the scatter of its error, in coordinates in which the stacked Gram matrix is the identity.

    Attributes
    ----------
    pooled : PartitionMoments
        Moments of the stacked sketches; `solution` is the stacked fit.
    grams : array of shape (k, r, r)
        `B_j`, which sum to the identity.
    leverages : array of shape (k,)
        `t_j = tr B_j`.
    gradients : array of shape (k, r)
        `ĝ_j`, which sum to zero.
    losses : array of shape (k,)
        Estimates of `‖y_j − X_j a*‖²`.
    scatter : array of shape (k, r, r)
        Estimates of `Ω_j`.
    overfit : array of shape (k,)
        `tr Ω_j`; their sum is what the residuals of the stacked fit are too small by, and nearly what that fit loses.
    """

    pooled: PartitionMoments
    grams: FloatArray
    leverages: FloatArray
    gradients: FloatArray
    losses: FloatArray
    scatter: FloatArray
    overfit: FloatArray

    @property
    def minimal_loss(self) -> float:
        """Estimate of ℓ, the loss of exact least squares, whatever the partitions are."""
        return self.pooled.loss + float(self.overfit.sum())


def pooled_sketch(moments: SketchMoments) -> PartitionMoments:
    """Moments of all sketches stacked: the fit on Σm_i rows."""
    stacked = np.vstack([part.factor for part in moments.sketches])
    first = moments.sketches[0]
    pooled = PartitionMoments(stacked, int(moments.sizes.sum()), first.free_columns, int(moments.row_counts.sum()))
    require_sketch_size(float(moments.sizes.sum()), pooled.rank)
    return pooled


def in_pooled_coordinates(
    factors: Sequence[FloatArray], pooled: PartitionMoments
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Gram matrices, gradients and losses of sketches under the pooled fit, in its coordinates.

    One after another: of thousands of partitions every list of matrices is a good part of the memory.
    """
    grams = np.empty((len(factors), pooled.rank, pooled.rank))
    gradients, losses = np.empty(grams.shape[:2]), np.empty(len(factors))
    inverse_root, solution = pooled.inverse_root, pooled.solution

    def turn(some: slice) -> None:
        for i in range(len(factors))[some]:
            factor = factors[i]
            root = factor[:, :-1] @ inverse_root
            residual = factor[:, -1] - factor[:, :-1] @ solution
            grams[i], gradients[i], losses[i] = root.T @ root, root.T @ residual, residual @ residual

    shared_map(turn, parts_of(len(factors), pooled.rank))
    return grams, gradients, losses


def pooled_scatter(moments: SketchMoments) -> PooledScatter:
    """Stack the sketches and estimate the scatter of the stacked fit (Extension of Theorem 3.1).

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank, any coefficients, any noise.

    Returns
    -------
    PooledScatter
        Correct to second order in one over the sketch rows.
    """
    pooled = pooled_sketch(moments)
    grams, gradients, observed = in_pooled_coordinates([part.factor for part in moments.sketches], pooled)
    leverages = np.trace(grams, axis1=1, axis2=2)
    rates = moments.sampling / moments.sizes
    squares = np.zeros_like(grams)
    losses = _losses(observed, grams, leverages, squares, rates)
    for _ in range(_PASSES):
        squares = _squared_gradients(gradients, _scatter(grams, losses, squares, rates), grams, leverages, rates)
        losses = _losses(observed, grams, leverages, squares, rates)
    # A_j and the estimated loss of j share rows: their product exceeds the product of means by 2 g_j g_jᵀ/m_j.
    squares *= (1 - 2 * rates)[:, None, None]
    scatter = _scatter(grams, losses, squares, rates)
    overfit = np.trace(scatter, axis1=1, axis2=2)
    if float(overfit.sum()) < 0:
        raise InputError("the sketches are too small to tell noise from differences: use a larger sketch_size.")
    return PooledScatter(pooled, grams, leverages, gradients, losses, scatter, overfit)


def _scatter(grams: FloatArray, losses: FloatArray, squares: FloatArray, rates: FloatArray) -> FloatArray:
    """Return `(ℓ_j B_j + g_j g_jᵀ)/m_j`, without lists of matrices in between."""
    found = grams * losses[:, None, None]
    found += squares
    found *= rates[:, None, None]
    return found


def _squared_gradients(
    gradients: FloatArray, scatter: FloatArray, grams: FloatArray, leverages: FloatArray, rates: FloatArray
) -> FloatArray:
    """Estimate `g_j g_jᵀ` from `ĝ_j ĝ_jᵀ`, for some partitions at a time."""
    total = scatter.sum(axis=0)
    found = np.empty_like(grams)

    def estimate(some: slice) -> None:
        mixed = scatter[some] @ grams[some]
        noise = scatter[some] - mixed - _transposed(mixed) + grams[some] @ total @ grams[some]
        squares = np.einsum("ji,jk->jik", gradients[some], gradients[some]) - noise
        lost = (squares @ grams[some] + squares * leverages[some, None, None]) * rates[some, None, None]
        found[some] = squares + lost + _transposed(lost)

    shared_map(estimate, parts_of(len(grams), grams.shape[-1]))
    return found


def _losses(
    observed: FloatArray, grams: FloatArray, leverages: FloatArray, squares: FloatArray, rates: FloatArray
) -> FloatArray:
    """Solve `E ‖û_j‖² = ‖u_j‖² − 2 tr Ω_j + tr(B_jΩ)` for the losses, the squared gradients given."""
    flat = grams.reshape(len(grams), -1)
    known = 2 * rates * np.trace(squares, axis1=1, axis2=2)
    known -= flat @ np.tensordot(rates, squares, axes=1).ravel()
    if len(grams) > LARGEST_SYSTEM:
        return np.asarray((observed + known) / (1 - rates * leverages))
    system = np.diag(1 - 2 * rates * leverages) + flat @ (flat * rates[:, None]).T
    return np.asarray(np.linalg.solve(system, observed + known))


def _transposed(matrices: FloatArray) -> FloatArray:
    return np.swapaxes(matrices, -1, -2)
