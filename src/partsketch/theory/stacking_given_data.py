"""Excess loss of the stacked fit predicted from the data, for uneven and unlike partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray, require_sketch_size, sizes_for
from partsketch.theory.excess_loss import excess_loss
from partsketch.theory.moments import PartitionLike, moments_of, pooled_moments
from partsketch.theory.stacking import stack_weights


def stacked_excess_loss_given_data(
    partitions: Sequence[PartitionLike], sketch_size: int | Sequence[int], weights: ArrayLike | None = None
) -> float:
    """Approximate excess loss of one fit on all stacked Gaussian sketches (Extension of Theorem 3.1).

    In coordinates where G is the identity let `K_i` be the Gram matrix of partition i, `e_i` its residuals under exact
    least squares and `s_i = X_iᵀe_i`. The inverse of the stacked Gram matrix A is close to
    `Q = (Σ K_i/(1 + γ_i))⁻¹` with `γ_i = tr(K_i Q)/m_i` (its deterministic equivalent, from random matrix theory), and
    the excess loss to `E tr(A⁻² Σ A_i ‖e_i‖²/m_i) + Σ s_iᵀQ²s_i/m_i`, the first term being a derivative of Q. Each m_i
    is lowered by `tr(K_i)/r`, one row in all, which makes the result exact for one partition; for alike partitions
    with sketch rows in proportion it is `ℓ r/(Σm_i − r − 1)`.

    With weights ω_i all this is about the rows `√ω_i [X_i y_i]` and measured by the unweighted G, and what the weighted
    fit to all rows loses itself is added: nothing is assumed of the partitions.

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data; the rank of all rows together may be below d.
    sketch_size : int or sequence of int
        Rows m_i of each sketch; valid for Σm_i > r + 1, and reliable when no partition decides a direction alone with
        few more sketch rows than such directions.
    weights : array of shape (k,), optional
        Weights ω_i of the sketches, fixed before sketching; equal by default.

    Returns
    -------
    float
        Approximate expected excess loss.
    """
    moments = exact = moments_of(partitions)
    given = stack_weights(weights, len(moments))
    if np.ptp(given) > 0:
        moments = [replace(part, factor=np.sqrt(w) * part.factor) for part, w in zip(exact, given, strict=True)]
    pooled = pooled_moments(moments)
    sizes = sizes_for(len(moments), sketch_size)
    require_sketch_size(float(sizes.sum()), pooled.rank)
    whitened = [part.root @ pooled.inverse_root for part in moments]
    residuals = [part.factor[:, -1] - part.root @ pooled.solution for part in moments]
    grams = np.stack([product.T @ product for product in whitened])
    counted = sizes - np.trace(grams, axis1=1, axis2=2) / max(pooled.rank, 1)
    inverse, inflations = _equivalent_inverse(grams, counted)
    variances = np.array([float(residual @ residual) for residual in residuals]) / counted
    products = grams @ inverse
    changes = variances / inflations - response_of_inflations(products, variances, counted, inflations) / inflations**2
    metric = np.tensordot(1 / given, grams, axes=1)
    sketching = float(changes @ np.einsum("ab,iba->i", metric @ inverse, products))
    scores = np.stack([product.T @ residual for product, residual in zip(whitened, residuals, strict=True)]) @ inverse
    aimed = excess_loss(exact, pooled.solution) if np.ptp(given) > 0 else 0.0
    return sketching + float(np.sum(np.einsum("ia,ab,ib->i", scores, metric, scores) / counted)) + aimed


def response_of_inflations(
    products: FloatArray, variances: FloatArray, counted: FloatArray, inflations: FloatArray
) -> FloatArray:
    """Return how γ answers when A_i is scaled by 1 + t v_i: the derivative at t = 0.

    With `P_ij = tr(K_i Q K_j Q)` it solves `(I − diag(1/m) P diag(1/(1 + γ)²)) x = v γ − diag(1/m) P v/(1 + γ)`. P is a
    product of matrices with as many columns as Q has entries; where partitions are more, only these are worked on.
    """
    left = products.reshape(len(products), -1) / counted[:, None]
    right = products.transpose(0, 2, 1).reshape(len(products), -1)
    response = variances * (inflations - 1) - left @ (right.T @ (variances / inflations))
    right = right / inflations[:, None] ** 2
    if left.shape[1] >= len(left):
        return np.asarray(np.linalg.solve(np.eye(len(left)) - left @ right.T, response))
    inner = np.eye(left.shape[1]) - right.T @ left
    return np.asarray(response + left @ np.linalg.solve(inner, right.T @ response))


def _equivalent_inverse(grams: FloatArray, counted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Find the fixed point of `Q = (Σ K_i/(1 + γ_i))⁻¹`, `γ_i = tr(K_i Q)/m_i`; returns Q and 1 + γ."""
    inflations = np.ones(len(counted))
    for _ in range(500):
        inverse: FloatArray = np.asarray(np.linalg.inv(np.tensordot(1 / inflations, grams, axes=1)), dtype=np.float64)
        updated = 1 + np.einsum("iab,ba->i", grams, inverse) / counted
        if np.max(np.abs(updated / inflations - 1)) < 1e-10:
            return inverse, updated
        if not np.all(updated < 1e8):
            break
        inflations = updated
    raise InputError(
        "the stacked sketches have too few rows for directions that few partitions decide: use a larger sketch_size."
    )
