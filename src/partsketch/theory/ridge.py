"""Ridge on sketches: the penalty that makes a sketched fit shrink as much as the exact one (extension of Section 3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.theory.arguments import FloatArray, require_count, require_non_negative


def _eigenvalues(root: ArrayLike) -> FloatArray:
    matrix = np.asarray(root, dtype=np.float64)
    if matrix.ndim != 2 or not np.all(np.isfinite(matrix)):
        raise InputError("root must be a finite matrix with one column per feature: pass rows, a factor or a sketch.")
    return np.asarray(np.linalg.svd(matrix, compute_uv=False) ** 2)


def effective_dimension(root: ArrayLike, penalty: float) -> float:
    """`d_λ = tr(G (G + λI)⁻¹)`, the dimensions that a ridge penalty λ leaves free.

    Parameters
    ----------
    root : array with d columns
        Any matrix with `rootᵀ root = G`: the rows, their triangular factor, or a sketch.
    penalty : float
        λ ≥ 0 in `‖Xa − y‖² + λ‖a‖²`.

    Returns
    -------
    float
        Between 0 and the rank (the rank itself for λ = 0).
    """
    require_non_negative("penalty", penalty)
    values = _eigenvalues(root)
    if penalty == 0:
        return float(np.linalg.matrix_rank(np.asarray(root, dtype=np.float64)))
    return float(np.sum(values / (values + penalty)))


def sketched_ridge_penalty(penalty: float, effective_dimension: float, sketch_size: int) -> float:
    """`λ' = λ (1 − d_λ/m)`: the penalty to use on a sketch so that it shrinks like λ on the rows.

    A sketched ridge fit with penalty λ' behaves like an exact one with `λ'/(1 − d_λ/m)`; without the scaling shrinkage
    is too strong and averaging does not remove it. Approximate, with an error that falls with m.

    Parameters
    ----------
    penalty : float
        λ wanted on the rows of the partition.
    effective_dimension : float
        `d_λ` of the partition at λ.
    sketch_size : int
        Rows m of the sketch; valid for m > d_λ.

    Returns
    -------
    float
        λ'.
    """
    require_non_negative("penalty", penalty)
    require_non_negative("effective_dimension", effective_dimension)
    if sketch_size <= effective_dimension:
        raise InputError(
            f"sketch_size is {sketch_size}, not above the effective dimension {effective_dimension:.4g}: use a larger "
            "sketch or a larger penalty."
        )
    return penalty * (1 - effective_dimension / sketch_size)


def ridge_penalty_from_sketch(sketched_features: ArrayLike, penalty: float, free_columns: int = 0) -> float:
    """λ' from the sketch itself: the fixed point of `λ' = λ (1 − tr(A (A + λ'I)⁻¹)/m)`.

    The effective dimension of the sketch at λ' estimates that of the rows at λ, so no look at the data is needed.

    Parameters
    ----------
    sketched_features : array of shape (m, d)
        Feature part of a sketch scaled so that `E SᵀS` is the identity; `A` is its Gram matrix.
    penalty : float
        λ wanted on the rows.
    free_columns : int
        How many leading columns (the intercept) are not penalised: each counts as one dimension, and the others are
        taken as what these leave of them.

    Returns
    -------
    float
        λ' in (0, λ]; 0 when λ is 0.
    """
    require_non_negative("penalty", penalty)
    features = np.asarray(sketched_features, dtype=np.float64)
    if free_columns:
        basis = np.linalg.qr(features[:, :free_columns])[0]
        features = features[:, free_columns:] - basis @ (basis.T @ features[:, free_columns:])
    values = _eigenvalues(features)
    m = np.asarray(sketched_features).shape[0]
    require_count("sketch_size", m)
    if penalty == 0:
        return 0.0

    # In parts of λ: no penalty is so small that its own parts are no numbers.
    def excess(part: float) -> float:
        return float(part - (1 - (free_columns + np.sum(values / (values + part * penalty))) / m))

    # At λ' = 0 a sketch with no more rows than its rank solves the equation trivially; the root meant lies above it.
    low = 1e-12
    if excess(low) >= 0:
        raise InputError(
            f"penalty {penalty:g} is too small for a sketch of {m} rows of this data: use a larger sketch or penalty."
        )
    from scipy.optimize import brentq

    return penalty * float(brentq(excess, low, 1.0, xtol=1e-13, rtol=1e-12))
