"""Orthogonal sketches: exact excess losses, and the least that any unbiased linear fit to given sketches can lose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.theory.approximations import noise_factor
from partsketch.theory.arguments import FloatArray, require_count, require_non_negative, sizes_for, weights_for
from partsketch.theory.excess_loss import unsketched_average_excess_loss
from partsketch.theory.moments import PartitionLike, moments_of, trace_products


def orthogonal_excess_loss(loss: float, rank: int, n: int, sketch_size: int, n_sketches: int) -> float:
    """Return the expected excess loss of the average of fits to orthogonal sketches of all rows (Theorem 3.1).

    `XᵀHᵀHX` is `G^½ B G^½` in law, B a matrix beta variate of (m, n − m) half degrees of freedom, and the mean of its
    inverse gives `ℓ r (n − m)/((n − r)(m − r − 1)) / k`: exact for any data.

    Parameters
    ----------
    loss, rank
        Minimal loss ℓ and rank r of all rows.
    n : int
        Rows of the data.
    sketch_size : int
        Rows m of each sketch; valid for m > r + 1. Nothing is lost from m = n on.
    n_sketches : int
        Number k of averaged fits.

    Returns
    -------
    float
        Never more than `whole_excess_loss`, which is for Gaussian sketches.
    """
    require_non_negative("loss", loss)
    require_count("rank", rank, 0)
    require_count("n", n)
    require_count("n_sketches", n_sketches)
    if sketch_size >= n:
        return 0.0
    return loss * rank * noise_factor(sketch_size, rank, n) / n_sketches


def orthogonal_partition_excess_loss(
    partitions: Sequence[PartitionLike], sketch_size: int | Sequence[int], weights: ArrayLike | None = None
) -> float:
    """Return the expected excess loss of the average of fits to orthogonal sketches of partitions, given the data.

    `Σ w_i² tr(G G_i⁺) ℓ_i (p_i − m_i)/((p_i − r_i)(m_i − r_i − 1)) + ‖X(ᾱ − a*)‖²`: exact for any data, as
    `partition_excess_loss` is for Gaussian sketches.

    Parameters
    ----------
    partitions : sequence of PartitionMoments or of pairs (X_i, y_i)
        The data.
    sketch_size : int or sequence of int
        Rows m_i of each sketch; valid for m_i > r_i + 1, or for m_i ≥ p_i, where nothing is lost.
    weights : array of shape (k,), optional
        Averaging weights that sum to one, fixed before sketching; equal by default.

    Returns
    -------
    float
        Expectation over the sketches.
    """
    moments = moments_of(partitions)
    shares, sizes = weights_for(len(moments), weights), sizes_for(len(moments), sketch_size)
    factors = [
        0.0 if size >= part.row_count else noise_factor(float(size), part.rank, part.row_count)
        for part, size in zip(moments, sizes, strict=True)
    ]
    terms = trace_products(moments).sum(axis=0) * np.array([part.loss for part in moments]) * factors
    return float(shares**2 @ terms) + unsketched_average_excess_loss(moments, shares)


def least_sketched_excess_loss(
    designs: Sequence[ArrayLike], sketches: Sequence[ArrayLike], noise_variances: ArrayLike = 1.0
) -> float:
    """Return the least expected excess loss of any unbiased linear fit to these sketches, over the noise of the rows.

    For `y_i = X_iα + ε_i`, ε_i of variance σ_i², every fit `B·(S_iy_i)` with `E â = α` for all α loses
    `E‖X(â − a*)‖² = tr(G B W Bᵀ) − 2 tr(G B C) + tr(G⁻¹ Σ σ_i² G_i)`, with `W = diag(σ_i² S_iS_iᵀ)` and
    `C_i = σ_i² S_iX_iG⁻¹`. Its minimum is returned. With one variance for all it is
    `σ² [tr(G (Σ X_iᵀS_iᵀ(S_iS_iᵀ)⁻¹S_iX_i)⁻¹) − d]`, the loss of generalised least squares (Gauss and Markov).

    Parameters
    ----------
    designs : sequence of arrays of shape (p_i, d)
        X_i, together of full rank.
    sketches : sequence of arrays of shape (m_i, p_i)
        The sketching matrices S_i themselves, each of full row rank; scale does not matter.
    noise_variances : float or array of shape (k,)
        σ_i², known to the fit that attains the bound.

    Returns
    -------
    float
        In units of squared loss.
    """
    features = [np.asarray(design, dtype=np.float64) for design in designs]
    matrices = [np.asarray(matrix, dtype=np.float64) for matrix in sketches]
    if len(features) == 0 or len(features) != len(matrices):
        raise InputError(f"{len(features)} designs came with {len(matrices)} sketching matrices: pass one of each.")
    _require_matrices("designs", features)
    rows = []
    for index, (matrix, design) in enumerate(zip(matrices, features, strict=True)):
        if matrix.ndim != 2 or matrix.shape[1] != len(design) or not np.isfinite(matrix).all():
            raise InputError(
                f"sketching matrix {index} has shape {matrix.shape} for {len(design)} rows: pass finite numbers, one "
                "column per row of its design."
            )
        if np.linalg.matrix_rank(matrix) < min(matrix.shape):
            raise InputError(f"sketching matrix {index} has dependent rows: leave out those that others give.")
        # With orthonormal rows in place of S_i the fit has the same to choose from, and W is diagonal.
        rows.append(np.linalg.qr(matrix.T)[0].T @ design)
    return least_orthogonal_excess_loss(rows, [design.T @ design for design in features], noise_variances)


def _require_matrices(name: str, matrices: Sequence[FloatArray]) -> None:
    columns = {matrix.shape[1:] for matrix in matrices}
    if len(columns) != 1 or matrices[0].ndim != 2 or not all(np.isfinite(matrix).all() for matrix in matrices):
        raise InputError(f"{name} must be matrices of finite numbers with the same columns.")


def _noise_of(noise_variances: ArrayLike, count: int) -> FloatArray:
    """Return one noise variance for each of the sketches."""
    noise = np.asarray(noise_variances, dtype=np.float64)
    if noise.shape not in ((), (1,), (count,)) or not (np.isfinite(noise).all() and np.all(noise > 0)):
        raise InputError(f"noise_variances must be positive, one for all or one for each of {count} partitions.")
    return np.asarray(np.broadcast_to(noise, (count,)))


def _require_rank(rows: Sequence[FloatArray]) -> None:
    """Refuse sketched features that do not determine all coefficients: no fit to them is unbiased."""
    rank, columns = int(np.linalg.matrix_rank(np.vstack(rows))), rows[0].shape[1]
    if rank < columns:
        raise InputError(
            f"the sketched features have rank {rank} for {columns} columns: no fit to them is unbiased; use more "
            "sketch rows, or leave dependent columns out."
        )


def least_orthogonal_excess_loss(
    sketched: Sequence[ArrayLike], grams: Sequence[ArrayLike], noise_variances: ArrayLike = 1.0
) -> float:
    """Return `least_sketched_excess_loss` from what orthonormal sketches made of the features.

    Parameters
    ----------
    sketched : sequence of arrays of shape (m_i, d)
        `H_iX_i`, H_i with orthonormal rows.
    grams : sequence of arrays of shape (d, d)
        G_i.
    noise_variances : float or array of shape (k,)
        σ_i².
    """
    rows = [np.asarray(part, dtype=np.float64) for part in sketched]
    exact: list[FloatArray] = [np.asarray(gram, dtype=np.float64) for gram in grams]
    if len(rows) == 0 or len(rows) != len(exact):
        raise InputError(f"{len(rows)} sketches came with {len(exact)} Gram matrices: pass one of each.")
    _require_matrices("sketched features and Gram matrices", [*rows, *exact])
    _require_rank(rows)
    noise = _noise_of(noise_variances, len(rows))
    total = np.sum(exact, axis=0)
    inverse = np.linalg.inv(total)
    seen = [part.T @ part for part in rows]
    # Bᵀ = W⁻¹ (C + SX Λᵀ) with BSX = I; W is σ_i² on the rows of sketch i, and C_i = σ_i² H_iX_i G⁻¹.
    weighted = np.sum([gram / variance for gram, variance in zip(seen, noise, strict=True)], axis=0)
    unweighted = np.sum(seen, axis=0)
    added = (np.eye(len(total)) - inverse @ unweighted) @ np.linalg.inv(weighted)
    loss = float(np.trace(inverse @ np.tensordot(noise, np.stack(exact), axes=1)))
    for gram, variance in zip(seen, noise, strict=True):
        part = inverse + added / variance
        loss += float(np.trace(total @ part @ gram @ (variance * part.T - 2 * variance * inverse)))
    return loss


def price_of_estimated_noise(
    sketched: Sequence[ArrayLike], gram: ArrayLike, noise_variances: ArrayLike, freedom: ArrayLike | None = None
) -> float:
    """Return what generalised least squares loses more because noise variances are estimated (Meier's approximation).

    A weight that is off by the factor `1 + δ_i` moves the fit by `δ_i A_w⁻¹ (H_iX_i)ᵀ(H_iy_i − H_iX_i a_w)/σ_i²`. With
    δ_i of variance 2/f_i and independent of the fit that adds, with `B_i = (H_iX_i)ᵀH_iX_i/σ_i²` and `A_w = ΣB_i`,

        Σ (2/f_i) tr[ G A_w⁻¹ (B_i − B_i A_w⁻¹ B_i) A_w⁻¹ ]

    to what it loses where noise is known. For one column alike it is Meier's `Σ (2/f_i) π_i (1 − π_i)` of the variance,
    π_i the share of the information.

    Parameters
    ----------
    sketched : sequence of arrays of shape (m_i, d)
        `H_iX_i`, H_i with orthonormal rows.
    gram : array of shape (d, d)
        G.
    noise_variances : array of shape (k,)
        σ_i².
    freedom : array of shape (k,), optional
        Degrees of freedom f_i behind the estimates; by default `m_i − tr(A_w⁻¹B_i)`, those of the residuals of the
        weighted fit.

    Returns
    -------
    float
        In units of squared loss.
    """
    rows = [np.asarray(part, dtype=np.float64) for part in sketched]
    if len(rows) == 0:
        raise InputError("there are no sketches: pass the sketched features of each partition.")
    _require_matrices("sketched features and gram", [*rows, np.asarray(gram, dtype=np.float64)])
    _require_rank(rows)
    noise = _noise_of(noise_variances, len(rows))
    parts = np.stack([part.T @ part / variance for part, variance in zip(rows, noise, strict=True)])
    inverse = np.linalg.inv(parts.sum(axis=0))
    shares = np.einsum("ab,iba->i", inverse, parts)
    given = np.array([len(part) for part in rows]) - shares if freedom is None else np.asarray(freedom, np.float64)
    if given.shape not in ((), (len(rows),)) or not np.all(given > 0):
        raise InputError("a partition has no degrees of freedom for its noise: use more sketch rows there.")
    measured = inverse @ np.asarray(gram, dtype=np.float64) @ inverse
    moved = np.einsum("ab,iba->i", measured, parts - parts @ inverse @ parts)
    return float(np.sum(2 / given * moved))
