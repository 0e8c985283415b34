"""What weights change in a stacked fit: the step towards exact least squares, and what following the noise costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.special import polygamma
from partsketch.theory.arguments import FloatArray
from partsketch.theory.measured_noise import MeasuredNoise


def no_matrices(grams: FloatArray) -> FloatArray:
    """Return zeros in the shape of these matrices that take no memory: there may be thousands."""
    return np.broadcast_to(np.zeros(1), grams.shape)


def gaps_to_exact(grams: FloatArray, weights: FloatArray, noise: FloatArray, turns: FloatArray) -> FloatArray:
    """Return the covariance of the weighted less the exact fit to all rows.

    That is `σ_i² D_i G_i D_iᵀ`, `D_i = ω_i P_i A_w⁻¹ − G⁻¹`, in coordinates in which `A_w = Σ ω_i A_i` is the identity;
    `noise` is `ω_i σ_i²`, and `grams` are `ω_i A_i`.
    """
    inverse = np.linalg.inv(np.tensordot(1 / weights, grams, axes=1))
    away = turns - inverse[None] / weights[:, None, None]
    return np.asarray(noise[:, None, None] * (away @ grams @ away.transpose(0, 2, 1)))


def step_towards_exact(
    grams: FloatArray, scores: FloatArray, metric: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return P_i and the step `Ĝ⁻¹ Σ κ_i/ω_i s_i` of the weighted fit, s_i its scores and `shares` the κ_i/ω_i.

    With s_i the sketched noise before the fit, scores are `s_i − A_i Σ s_j`, so that the error is `Σ P_i s_i`,
    `P_i = I + Ĝ⁻¹ (κ_i/ω_i I − Σ κ_j/ω_j A_j)`.
    """
    inverse, one = np.linalg.inv(metric), np.eye(len(metric))
    turns = one + inverse @ (shares[:, None, None] * one - np.tensordot(shares, grams, axes=1))
    return np.asarray(turns), np.asarray(inverse @ (shares @ scores))


def price_of_following(
    grams: FloatArray,
    noise: FloatArray,
    sizes: FloatArray,
    following: ArrayLike | None,
    measured: MeasuredNoise | None = None,
) -> FloatArray:
    """Return `2 λ_i e_i (A_i − A_i²)` times the noise of a sketch row, e_i the variance of log σ̂_i².

    A weight that follows the noise by λ_i is off by `−λ_i ε_i`, ε_i the error of log σ̂_i², and moves the fit by as much
    of its scores, whose covariance is `A_i − A_i²` (A = I). That is λ_i² e_i of it. And `Σ ω̂_i² v̂_i A_i` is short of
    (2λ_i − λ_i²) e_i of the same, for weights are large where v̂_i came out small.
    """
    if following is None:
        return no_matrices(grams)
    freedom = sizes - np.trace(grams, axis1=1, axis2=2) if measured is None else measured.freedom
    factors = 2 * np.asarray(following, dtype=np.float64) * polygamma(1, freedom / 2) * noise
    return np.asarray(factors[:, None, None] * (grams - grams @ grams))
