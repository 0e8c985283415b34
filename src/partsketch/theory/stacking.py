"""One fit on all sketches stacked: its excess loss and the covariance of its coefficients, from the sketches alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from partsketch.errors import InputError
from partsketch.theory.approximations import rotation_rows
from partsketch.theory.arguments import FloatArray, require_sketch_size
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.covariance import CoefficientCovariance
from partsketch.theory.moments import PartitionMoments, moments_of, require_full_rank


@dataclass(frozen=True, eq=False)
class StackedFit:
    """The stacked fit and what its error is made of.

    Attributes
    ----------
    pooled : PartitionMoments
        Moments of the stacked sketches; `solution` is the fit.
    shares : array of shape (k,)
        Leverage `tr(A⁺A_i)` that each partition's sketch has in the stacked fit; they sum to the rank.
    ratios : array of shape (k,)
        `p_i/m_i`, times the sampling share of a finite rotation: sketch noise per unit of leverage.
    counted : array of shape (k,)
        Sketch rows that count, `m_i` less a share of one row.
    noise_variance : float
        Estimate of σ².
    row_count : int
        All rows, n.
    """

    pooled: PartitionMoments
    shares: FloatArray
    ratios: FloatArray
    counted: FloatArray
    noise_variance: float
    row_count: int

    @property
    def openness(self) -> FloatArray:
        """One minus the mean leverage of a sketch row of each partition: what its own fit leaves to be seen."""
        return np.asarray(1 - self.shares / self.counted)


def stacked_fit(
    sketches: Sequence[PartitionMoments], row_counts: Sequence[int], sketch: str = "gaussian"
) -> StackedFit:
    """Solve `min Σ ‖S_i (X_i a − y_i)‖²` and estimate what its error needs (Extension of Theorem 3.1).

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`; single sketches may have fewer rows than columns, only Σm_i > r + 1 is needed.
    row_counts : sequence of int
        Rows p_i behind each sketch.
    sketch : str
        Kind of sketch, as in `rotation_rows`.

    Returns
    -------
    StackedFit
        For `certify_stacked` and `stacked_covariance`.
    """
    parts = moments_of(list(sketches))
    if len(row_counts) != len(parts):
        raise InputError(f"{len(parts)} sketches came with {len(row_counts)} row_counts: pass one count per sketch.")
    counts = np.asarray(row_counts, dtype=np.float64)
    sizes = np.array([float(part.row_count) for part in parts])
    stacked = np.vstack([part.factor for part in parts])
    pooled = PartitionMoments(stacked, int(sizes.sum()), parts[0].free_columns, int(counts.sum()))
    rank, total = pooled.rank, float(counts.sum())
    require_sketch_size(float(sizes.sum()), rank)
    if total <= rank:
        raise InputError(f"{total:g} rows of rank {rank} leave nothing to estimate the noise from: use more rows.")
    shares = np.array([np.sum((part.root @ pooled.inverse_root) ** 2) for part in parts])
    # One row's worth of leverage is lost to the fluctuations of A, shared out like the leverage itself: for a single
    # partition this turns m − r into the exact m − r − 1.
    counted = sizes - shares / max(rank, 1)
    _require_openness(shares, counted)
    rotations = np.array([rotation_rows(sketch, int(count)) for count in counts])
    finite = np.isfinite(rotations)
    sampling = np.where(finite, 1 - sizes / np.where(finite, rotations, 1.0), 1.0)
    shrink = 1 - rank / float(rotations.sum())
    residual_weight = float(np.sum(counts / sizes * (sizes - shares))) * (total - rank) / total
    return StackedFit(
        pooled=pooled,
        shares=shares,
        ratios=counts / sizes * np.maximum(sampling, 0.0),
        counted=counted,
        noise_variance=pooled.loss * shrink / residual_weight,
        row_count=int(total),
    )


def _require_openness(shares: FloatArray, counted: FloatArray) -> None:
    for index, (share, rows) in enumerate(zip(shares, counted, strict=True)):
        if share >= rows:
            raise InputError(
                f"the stacked fit reproduces the sketch of partition {index} almost exactly, so nothing can be said of "
                "its error: use a larger sketch_size there."
            )


def certify_stacked(fit: StackedFit, sketches: Sequence[PartitionMoments]) -> CertificateEstimate:
    """Approximate the expected excess loss of the stacked fit (Extension of Theorem 3.1).

    Given the sketched features the error has covariance `A⁻¹VA⁻¹` with `V = Σ v_i A_i`, `v_i = ℓ̂ p_i/(n m_i)`; its
    product with the unknown G is estimated as by leaving out one sketch row at a time. For one partition, and for
    alike partitions with sketch rows in proportion, it is `ℓ̂ r/(Σm_i − r − 1)`; uneven and unlike partitions are
    allowed for, under a noise of one variance.

    Parameters
    ----------
    fit : StackedFit
        From `stacked_fit`.
    sketches : sequence of PartitionMoments
        The same sketches.

    Returns
    -------
    CertificateEstimate
        Marked "approximate"; the standard error is that of the estimated noise variance alone.
    """
    rank, rows = fit.pooled.rank, fit.row_count
    loss = fit.noise_variance * (rows - rank)
    sizes = np.array([float(part.row_count) for part in sketches])
    variances = loss / rows * fit.ratios * sizes / fit.counted
    whitened = [part.root @ fit.pooled.inverse_root for part in sketches]
    noise = np.sum([v * product.T @ product for v, product in zip(variances, whitened, strict=True)], axis=0)
    overlaps = np.array([float(np.sum((product @ noise) * product)) for product in whitened])
    terms = (overlaps - variances * fit.shares**2 / fit.counted) / fit.openness**2
    excess = float(terms.sum())
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=excess * math.sqrt(2 / (fit.pooled.row_count - rank + 2)),
        relative_excess_loss=excess / loss if loss > 0 else math.nan,
        minimal_loss=loss,
        divergence=float(rank),
        noise_variance=fit.noise_variance,
        sketch_terms=terms,
        averaging_term=0.0,
        kind="approximate",
        reason="exact theory covers averages of fits; the stacked fit has an approximate one",
    )


def stacked_covariance(
    fit: StackedFit, sketches: Sequence[PartitionMoments], names: Sequence[str] | None = None
) -> CoefficientCovariance:
    """Covariance of the stacked coefficients around the true ones (Extension of Theorem 3.1; approximate).

    `σ̂² [Ĝ⁻¹ + (n − d)/n · A⁻¹ (Σ A_i p_i/m_i) A⁻¹]`, with `Ĝ = Σ A_i/(1 − leverage_i)`, the mean leverage of a sketch
    row of i; for alike partitions and equal sizes it is `σ̂² [1 + (n − d)/(M − d − 1)] Ĝ⁻¹` with `M = Σm_i`.

    Parameters
    ----------
    fit : StackedFit
        From `stacked_fit`; the stacked sketches must have full rank.
    sketches : sequence of PartitionMoments
        The same sketches.
    names : sequence of str, optional
        Column names, for the message about dependent columns.

    Returns
    -------
    CoefficientCovariance
        With `Σm_i − d` degrees of freedom.
    """
    require_full_rank(fit.pooled, None, names)
    rank, inverse_root = fit.pooled.rank, fit.pooled.inverse_root
    whitened = [part.root @ inverse_root for part in sketches]
    middle = np.sum([ratio * product.T @ product for ratio, product in zip(fit.ratios, whitened, strict=True)], axis=0)
    opened = np.sum([product.T @ product / o for o, product in zip(fit.openness, whitened, strict=True)], axis=0)
    inner = np.linalg.inv(opened) + middle * (fit.row_count - rank) / fit.row_count
    return CoefficientCovariance(
        matrix=fit.noise_variance * inverse_root @ inner @ inverse_root.T,
        degrees_of_freedom=float(fit.pooled.row_count - rank),
        noise_variance=fit.noise_variance,
    )
