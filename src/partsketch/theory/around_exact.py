"""Covariance of a sketched fit around the answer of exact least squares on the same rows, not around the truth.

For a Gaussian sketch of all rows `Sy` given `SX` is normal with mean `SX a*` and variance `ℓ/m`: the residuals of
exact least squares are orthogonal to X, so their sketch is independent of that of X. The t intervals and F tests of the
sketched regression, with m − r degrees of freedom, are therefore exact for a*, whatever the data. With m rows of a
uniformly random rotation of P rows the sketched residuals have a direction that is uniform given `SX`, so t and F are
exact again, with `A⁻¹ − (m/P) G⁻¹` in place of `A⁻¹`; only G has to be estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import triangular_inverse
from partsketch.common.linalg.helpers import shared_map
from partsketch.common.sketch_law import SketchLaw
from partsketch.theory.approximations import rotation_rows
from partsketch.theory.arguments import FloatArray
from partsketch.theory.covariance import CoefficientCovariance, satterthwaite
from partsketch.theory.moments import PartitionMoments, moments_of
from partsketch.theory.sampled_rows import RowSample, left_out_one_by_one
from partsketch.theory.sketch_moments import SketchMoments
from partsketch.theory.stacked_certificate import unlike_covariance
from partsketch.theory.stacking import StackedFit
from partsketch.theory.turned_grams import parts_of
from partsketch.theory.weights import SketchWeights, given_weights

#: Of a Gram matrix in units of its columns: the inverse of a larger one has fewer than eight digits.
_LARGEST_INVERSE = 1e8


def whole_covariance_around_exact(
    sketches: Sequence[PartitionMoments], row_count: int, sketch: str | SketchLaw = "gaussian"
) -> CoefficientCovariance:
    """`s² Σ A_i⁺ /k²` of β̄ around a*, with `s² = Σ ρ_i / (k (m − r))` (proof of Theorem 3.1).

    Independent sketches combine as independent regressions with one noise variance do: given the sketched features β̄
    is normal around a*, and independent of s².

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`, all of m > r rows and of one rank, which may be below d.
    row_count : int
        Rows n behind them.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`.

    Returns
    -------
    CoefficientCovariance
        With k(m − r) degrees of freedom. Gaussian sketches: t intervals and F tests are exact for any data. Others:
        `(P − m)/(P − r − 1)` of it, zero once m = P; approximate.
    """
    parts = moments_of(list(sketches))
    if len({(part.row_count, part.rank) for part in parts}) != 1:
        raise InputError("sketches of the whole data must agree in rows and rank: pass sketches of the same rows.")
    k, m, rank = len(parts), parts[0].row_count, parts[0].rank
    if m <= rank:
        raise InputError(f"sketches of {m} rows and rank {rank} show no residuals: use a larger sketch_size.")
    rotation = rotation_rows(sketch, row_count)
    left = 1.0 if math.isinf(rotation) else min(1.0, max(0.0, (rotation - m) / max(rotation - rank - 1, 1.0)))
    variance = sum(part.loss for part in parts) / (k * (m - rank))
    matrix = np.sum([part.inverse_gram for part in parts], axis=0) * (variance * left / k**2)
    return CoefficientCovariance(matrix, float(k * (m - rank)), variance * m / max(row_count - rank, 1))


def stacked_covariance_around_exact(fit: StackedFit) -> CoefficientCovariance:
    """`A⁻¹ (Σ v_i A_i + c_i c_iᵀ/m_i) A⁻¹` of the stacked fit around a* (Extension of Theorem 3.1; approximate).

    What sketching adds, and nothing else: neither one noise variance nor shared coefficients are assumed. For one
    partition it is exact, as `whole_covariance_around_exact`.

    Parameters
    ----------
    fit : StackedFit
        From `stacked_fit`; the rank may be below d.

    Returns
    -------
    CoefficientCovariance
        With the degrees of freedom of Satterthwaite, the fewest of any coefficient.
    """
    root, noise = fit.pooled.inverse_root, np.maximum(fit.variances, 0.0)
    # What weights change is the noise of the rows; without them nothing.
    parts = (fit.sampling * noise)[:, None, None] * fit.errors
    parts += fit.gaps
    parts += fit.followed
    matrix = root @ (parts.sum(axis=0) + unlike_covariance(fit)) @ root.T
    diagonals = np.einsum("ja,iab,jb->ij", root, parts, root)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = diagonals.sum(axis=0) ** 2 / np.sum(diagonals**2 / fit.noise_freedom[:, None], axis=0)
    known = freedom[np.isfinite(freedom)]
    return CoefficientCovariance(
        matrix=matrix,
        degrees_of_freedom=float(known.min()) if known.size else math.inf,
        noise_variance=fit.minimal_loss / (fit.row_count - fit.pooled.rank),
    )


def partition_covariance_around_exact(
    moments: SketchMoments, weights: ArrayLike | SketchWeights | None = None
) -> CoefficientCovariance:
    """Covariance of θ̄ around a*, from the sketches alone (Extension of Theorem 3.3; approximate).

    Each θ_i is normal around the fit a_i of its rows with covariance `ρ_i/(m_i − d) A_i⁻¹`, exactly. That the average
    of the a_i is not a* adds `Σ σ_i² (w_i G_i⁻¹ − G⁻¹) G_i (w_i G_i⁻¹ − G⁻¹)`, an average over the noise of rows that
    share one coefficient vector.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; singular partitions are refused.
    weights : array of shape (k,) or SketchWeights, optional
        Averaging weights that sum to one, or what `sketch_weights` returned; equal by default.

    Returns
    -------
    CoefficientCovariance
        With Satterthwaite's degrees of freedom.
    """
    moments.require_full_rank()
    chosen = weights if isinstance(weights, SketchWeights) else given_weights(moments, weights)
    grams = np.stack([part.gram for part in moments.sketches])
    grams /= moments.inverse_scales[:, None, None]
    pooled, pooled_root = _pooled_inverse(moments, grams)
    noise = moments.losses / np.maximum(moments.row_counts - moments.ranks, 1.0)
    terms = np.empty_like(grams)

    def add_terms(some: slice) -> None:
        inverses = np.stack([root @ root.T for root in moments.inverse_roots[some]])
        sketching = inverses * (chosen.squared_loss_products * moments.noise_factors)[some, None, None]
        if pooled_root is None:
            away = chosen.values[some, None, None] * inverses - pooled
            differing = away @ grams[some] @ away.transpose(0, 2, 1)
        else:
            differing = np.stack([differing_of(number, pooled_root) for number in range(len(grams))[some]])
        terms[some] = sketching + noise[some, None, None] * differing

    def differing_of(number: int, pooled_root: FloatArray) -> FloatArray:
        # Products of factors, which are orthogonal or nearly so, before they meet an inverse: nothing large cancels.
        half = moments.sketches[number].root / math.sqrt(moments.inverse_scales[number])
        own = moments.inverse_roots[number]
        away = chosen.values[number] * ((half @ own) @ own.T) - (half @ pooled_root) @ pooled_root.T
        return np.asarray(away.T @ away)

    shared_map(add_terms, parts_of(len(grams), grams.shape[-1]))
    # The square of an estimate with f degrees of freedom is too large by (f + 2)/f.
    freedom = satterthwaite(terms, moments.sizes - moments.ranks + 2)
    return CoefficientCovariance(terms.sum(axis=0), freedom, moments.noise_variance)


def _pooled_inverse(moments: SketchMoments, grams: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Return the inverse of the sum of Gram matrices; with a root of it, from factors, where squares lose digits."""
    total = grams.sum(axis=0)
    sizes = np.sqrt(np.diagonal(total))
    try:
        inverse = np.linalg.inv(total / np.outer(sizes, sizes))
        if np.linalg.norm(inverse) < _LARGEST_INVERSE:
            return np.asarray(inverse / np.outer(sizes, sizes)), None
    except np.linalg.LinAlgError:
        pass
    parts = zip(moments.sketches, np.sqrt(moments.inverse_scales), strict=True)
    rows = np.vstack([part.root / (scale * sizes) for part, scale in parts])
    try:
        root = triangular_inverse(np.asarray(np.linalg.qr(rows, mode="r"))) / sizes[:, None]
    except np.linalg.LinAlgError as error:
        raise InputError("columns nearly determine one another, and rounding hides what sketches add.") from error
    return root @ root.T, root


def sampled_covariance_around_exact(samples: Sequence[RowSample]) -> CoefficientCovariance:
    """Covariance around a* of an average of fits to samples of rows, found by leaving out one row at a time.

    Parameters
    ----------
    samples : sequence of RowSample
        As in `certify_row_samples`; samples in which single rows decide a direction are refused.

    Returns
    -------
    CoefficientCovariance
        Approximate; with the degrees of freedom that the squares of the changes show, the fewest of any coefficient.
    """
    changes: list[FloatArray] = []
    for sample in samples:
        basis, centred, share = left_out_one_by_one(sample)
        features = PartitionMoments(sample.rows, len(sample.rows))
        lead = features.inverse_root @ (sample.rows[:, :-1] @ features.inverse_root).T @ basis
        changes.append(centred @ lead.T * math.sqrt(share))
    every = np.vstack(changes) / len(samples)
    squares = every**2
    total = squares.sum(axis=0)
    spread = np.sum((squares - squares.mean(axis=0)) ** 2, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = 2 * total**2 / spread
    most = float(sum(len(sample.rows) - sample.rank for sample in samples))
    known = freedom[np.isfinite(freedom)]
    return CoefficientCovariance(every.T @ every, min(most, float(known.min(initial=most))), math.nan)
