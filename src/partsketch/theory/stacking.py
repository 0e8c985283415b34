"""One fit on all sketches stacked: what its error is made of, whatever the partitions are, from the sketches alone.

With e = y − Xa* the residuals of exact least squares, rows (x, e) of sketch i are independent with second moments
`G_i/m_i`, `c_i/m_i` and `‖e_i‖²/m_i`; `c_i = X_iᵀe_i` is zero only where partition i has the coefficients of all rows,
but Σ c_i = 0 always. The stacked fit is off by `A⁻¹ Σ x e`, and a partition's part of that sum has the covariance
`v_i G_i + c_i c_iᵀ/m_i`, `v_i = ‖e_i‖²/m_i`. So neither one noise variance nor one coefficient vector is assumed: the
v_i and c_i of each partition are estimated from its own sketch.

A weighted fit solves `min Σ ω_i ‖S_i (X_i a − y_i)‖²`. It aims at another vector than a* where partitions do not share
their coefficients, and so its error is known only where they do. Then `c_i` is noise: it is taken over the noise of the
rows instead of being estimated, as part of the `gaps`.

Weights that follow unlike noise make the fit aim at the true coefficients α, and with unlike noise a* is not the best
estimate of α. What the residuals of the weighted fit show of `a* − α` is the step `Ĝ⁻¹ Σ κ_i (S_iX_i)ᵀ(S_iy_i − S_iX_i
a_w)`, κ_i = 1/φ_i a sketch row's share of the rows (m_i/p_i if S is orthogonal): the best linear unbiased prediction of
a* (Goldberger). It is zero wherever the weights are the κ_i, so wherever noise is alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import SketchLaw
from partsketch.theory.approximations import rotation_rows
from partsketch.theory.arguments import FloatArray, require_sketch_size
from partsketch.theory.gram_pairs import GramPairs
from partsketch.theory.measured_noise import MeasuredNoise
from partsketch.theory.moments import PartitionMoments, moments_of
from partsketch.theory.pooled_scatter import in_pooled_coordinates
from partsketch.theory.stack_checks import require_openness, require_rows, require_told_apart
from partsketch.theory.stack_step import gaps_to_exact, no_matrices, price_of_following, step_towards_exact
from partsketch.theory.turned_grams import parts_of

#: Estimates of v_i and c_i need each other; the second round changes them by less than a hundredth.
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class StackedFit:
    """The stacked fit and what its error is made of, in coordinates in which the Gram matrix of all sketches is one.

    Attributes
    ----------
    pooled : PartitionMoments
        Moments of the stacked sketches; `solution` is the fit, `inverse_root` leads back from the coordinates.
    grams : array of shape (k, r, r)
        Gram matrix `A_i` of each sketch; they sum to the identity.
    sizes, row_counts : arrays of shape (k,)
        Rows m_i of each sketch and rows p_i behind it.
    variances : array of shape (k,)
        Estimates of `v_i = ‖e_i‖²/m_i`; one may come out negative where its sketch shows little.
    departures : array of shape (k, r, r)
        Estimates of `c_i c_iᵀ`, which is zero where partition i shares the coefficients of all rows.
    sampling : array of shape (k,)
        Share of the Gaussian law's variance that remains when the rotation has finitely many rows; else 1.
    minimal_loss : float
        Estimate of ℓ.
    weights : array of shape (k,)
        ω_i; the sketches, and all of the above but `minimal_loss`, are those of `√ω_i Z_i`.
    gaps : array of shape (k, r, r)
        For a weighted fit: covariance that the noise of each partition's rows gives to what the weighted fit to all
        rows and exact least squares differ by. Zero for equal weights.
    step : array of shape (d,)
        From the weighted fit towards exact least squares; zero for equal weights and where columns are dependent.
    followed : array of shape (k, r, r)
        What weights that follow estimated noise add to the covariance of the error, and what its estimate misses for
        the same reason (Kackar and Harville; Kenward and Roger). Zero for weights that do not.
    turns : array of shape (k, r, r)
        `P_i`, what the step makes of each partition's part of the error: the fit is off by `Σ P_i Σ x e`.
    measured : array of shape (k,) or None
        Degrees of freedom of noise that was measured on the rows; None where the sketches had to show it.
    """

    pooled: PartitionMoments
    grams: FloatArray
    sizes: FloatArray
    row_counts: FloatArray
    variances: FloatArray
    departures: FloatArray
    sampling: FloatArray
    minimal_loss: float
    weights: FloatArray
    gaps: FloatArray
    step: FloatArray
    turns: FloatArray
    followed: FloatArray
    measured: FloatArray | None = None

    @property
    def solution(self) -> FloatArray:
        """The fit: that to the weighted sketches, and the step towards exact least squares."""
        return np.asarray(self.pooled.solution + self.step)

    @property
    def errors(self) -> FloatArray:
        """`P_i A_i P_iᵀ`: covariance of the fit's error for one unit of noise in a partition's sketch."""
        # Without weights there is no step, and thousands of partitions need no second set of matrices.
        return self.grams if not np.ptp(self.weights) else self.turns @ self.grams @ self.turns.transpose(0, 2, 1)

    @property
    def metric(self) -> FloatArray:
        """The Gram matrix of all rows, unweighted, as the sketches have it; the identity for equal weights."""
        return np.asarray(np.tensordot(1 / self.weights, self.grams, axes=1))

    @property
    def shares(self) -> FloatArray:
        """Leverage `tr(A⁻¹A_i)` that each partition's sketch has in the stacked fit; they sum to the rank."""
        return np.asarray(np.trace(self.grams, axis1=1, axis2=2))

    @property
    def counted(self) -> FloatArray:
        """Sketch rows that count: one in all is lost to the fluctuations of A, shared out like the leverage.

        For a single partition this turns m − r into the exact m − r − 1.
        """
        return np.asarray(self.sizes - self.shares / max(self.pooled.rank, 1))

    @property
    def openness(self) -> FloatArray:
        """One minus the mean leverage of a sketch row of each partition: what its own fit leaves to be seen."""
        return np.asarray(1 - self.shares / self.counted)

    @property
    def freedom(self) -> FloatArray:
        """Degrees of freedom `m_i − tr(A⁻¹A_i)` behind each variance; infinite where a sketch holds all rows."""
        with np.errstate(divide="ignore"):
            return np.asarray((self.sizes - self.shares) / self.sampling)

    @property
    def noise_freedom(self) -> FloatArray:
        """Degrees of freedom behind the noise of each partition, in its sketch or measured on its rows."""
        return np.asarray(self.sizes - self.shares) if self.measured is None else self.measured

    @property
    def row_count(self) -> int:
        """All rows, n."""
        return int(self.row_counts.sum())


def stacked_fit(
    sketches: Sequence[PartitionMoments],
    row_counts: Sequence[int],
    sketch: str | SketchLaw = "gaussian",
    weights: ArrayLike | None = None,
    following: ArrayLike | None = None,
    measured: MeasuredNoise | None = None,
) -> StackedFit:
    """Solve `min Σ ω_i ‖S_i (X_i a − y_i)‖²` and estimate what its error needs (Extension of Theorem 3.1).

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`; single sketches may have fewer rows than columns, only Σm_i > r + 1 is needed.
    row_counts : sequence of int
        Rows p_i behind each sketch.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`.
    weights : array of shape (k,), optional
        ω_i, as from `information_weights`; equal by default. Unequal ones assume that partitions share their
        coefficients.
    following : array of shape (k,), optional
        How far the weights follow estimated noise, as `StackChoice` has it; by default not at all.
    measured : MeasuredNoise, optional
        Noise as measured on the rows, for weighted fits; by default it is estimated from the sketches.

    Returns
    -------
    StackedFit
        For `certify_stacked` and `stacked_covariance`.
    """
    parts = moments_of(list(sketches))
    if len(row_counts) != len(parts):
        raise InputError(f"{len(parts)} sketches came with {len(row_counts)} row_counts: pass one count per sketch.")
    counts = np.asarray(row_counts, dtype=np.float64)
    rotations = np.array([rotation_rows(sketch, int(count)) for count in counts])
    # A sketch with more rows than its rotation holds all of them, and zeros.
    sizes = np.minimum([float(part.row_count) for part in parts], rotations)
    given = stack_weights(weights, len(parts))
    heights = [len(part.factor) for part in parts]
    stacked = np.vstack([part.factor for part in parts]) * np.repeat(np.sqrt(given), heights)[:, None]
    pooled = PartitionMoments(stacked, int(sizes.sum()), parts[0].free_columns, int(counts.sum()))
    rank = pooled.rank
    require_sketch_size(float(sizes.sum()), rank)
    require_rows(counts.sum(), rank)
    finite = np.isfinite(rotations)
    sampling = np.where(finite, 1 - sizes / np.where(finite, rotations, 1.0), 1.0)
    grams, scores, losses = in_pooled_coordinates(np.split(stacked, np.cumsum(heights)[:-1]), pooled)
    del stacked
    require_openness(np.trace(grams, axis1=1, axis2=2), sizes, rank)
    weighted = bool(np.ptp(given) > 0)
    if not weighted or measured is None:
        require_told_apart(grams, sizes, rank)
    variances, departures = _second_moments(grams, scores, losses, sizes, 0 if weighted else _ROUNDS)
    metric = np.tensordot(1 / given, grams, axes=1)
    noise, known = np.maximum(variances, 0.0) * sizes / counts, measured if weighted else None
    if known is not None:
        noise = given * known.variances
        variances = _measured_variances(noise, grams, counts, rotations) / sizes
    turns, step = np.broadcast_to(np.eye(rank), grams.shape), np.zeros(rank)
    gaps = before = gaps_to_exact(grams, given, noise, turns) if weighted else no_matrices(grams)
    if weighted and rank == len(pooled.solution):
        behind = 1 + np.maximum(counts / sizes - counts / rotations, 0)
        turns, step = step_towards_exact(grams, scores, metric, 1 / (given * behind))
        gaps = gaps_to_exact(grams, given, noise, turns)
    return StackedFit(
        pooled=pooled,
        grams=grams,
        sizes=sizes,
        row_counts=counts,
        variances=variances,
        departures=departures,
        sampling=np.maximum(sampling, 0.0),
        # A rotation of P rows makes residuals of a sketch larger by P/(P − r).
        minimal_loss=float(variances @ (sizes / given)) * (1 - rank / float(rotations.sum()))
        - float(np.einsum("iab,ba->", before, metric)),
        weights=given,
        gaps=gaps,
        step=pooled.inverse_root @ step,
        turns=turns,
        followed=price_of_following(grams, noise * (1 + sampling * counts / sizes), sizes, following, known),
        measured=None if known is None else known.freedom,
    )


def _measured_variances(noise: FloatArray, grams: FloatArray, counts: FloatArray, rotations: FloatArray) -> FloatArray:
    """Return `m_i v_i` of rows with this noise.

    A fit with leverage h_i leaves p_i − h_i degrees of freedom of them; in a sketch of a rotation of P_i rows residuals
    are larger, by P_i/(P_i − h_i).
    """
    shares = np.trace(grams, axis1=1, axis2=2)
    return np.asarray(noise * (counts - shares) / (1 - shares / rotations))


def stack_weights(weights: ArrayLike | None, count: int) -> FloatArray:
    """Return the weights of the sketches; they have no scale of their own, and get the mean one."""
    if weights is None:
        return np.ones(count)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (count,) or not np.all(np.isfinite(values)) or np.any(values <= 0):
        raise InputError(f"weights must be {count} positive numbers, one per sketch.")
    return np.asarray(values / values.mean())


def _second_moments(
    grams: FloatArray, scores: FloatArray, losses: FloatArray, sizes: FloatArray, rounds: int
) -> tuple[FloatArray, FloatArray]:
    """Estimate v_i and c_i c_iᵀ from the residuals of the stacked fit (A = I).

    Residuals are `e − xδ` with `δ = Σ x e`, so with `K_i = v_i A_i + c_i c_iᵀ/m_i` the covariance of partition i's part
    of δ, `E‖ê_i‖² = m_i v_i − 2 tr K_i + tr(A_i Σ K_j)`: k equations for the v_i, exact for fixed features and c = 0
    (Rao's MINQUE): without rounds that is taken. Likewise the scores `Σ x ê` of a partition are `c_i (1 − leverage)` in
    the mean, with the covariance that `_score_noise` has.
    """
    shares = np.trace(grams, axis1=1, axis2=2)
    pairs, left = GramPairs(grams), sizes - 2 * shares
    open_rows = (1 - shares / sizes)[:, None, None]
    departures = np.zeros_like(grams)
    variances = pairs.solve(left, losses)
    for _ in range(rounds if len(grams) > 1 else 0):
        total = np.tensordot(variances, grams, axes=1) + np.tensordot(1 / sizes, departures, axes=1)
        for some in parts_of(len(grams), grams.shape[-1]):
            covariances = variances[some, None, None] * grams[some] + departures[some] / sizes[some, None, None]
            squares = np.einsum("ia,ib->iab", scores[some], scores[some])
            departures[some] = (squares - _score_noise(grams[some], covariances, total)) / open_rows[some] ** 2
        missed = 2 * np.trace(departures, axis1=1, axis2=2) / sizes
        missed = missed - np.einsum("iab,ba->i", grams, np.tensordot(1 / sizes, departures, axes=1))
        variances = pairs.solve(left, losses + missed)
    return variances, departures


def _score_noise(grams: FloatArray, covariances: FloatArray, total: FloatArray) -> FloatArray:
    """Covariance of `s_i − A_i Σ s_j` for independent s_i with these covariances, which have this sum."""
    crossed = grams @ covariances
    return np.asarray(covariances - crossed - crossed.transpose(0, 2, 1) + grams @ total @ grams, dtype=np.float64)
