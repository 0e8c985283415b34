"""What an average of fits to sketches of all rows loses, from the sketches alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.sketch_law import SketchLaw
from partsketch.theory.approximations import law_of, noise_factor, rotation_rows
from partsketch.theory.arguments import require_sketch_size
from partsketch.theory.certificate import CertificateEstimate
from partsketch.theory.chi_squares import (
    deviation_from_estimate,
    freedom_of,
    log_moments,
    mean_of_inverses,
    ratio_confidence,
)
from partsketch.theory.confidence import ConfidenceDistribution
from partsketch.theory.moments import PartitionMoments


def certify_whole(
    sketches: Sequence[PartitionMoments], row_count: int, sketch: str | SketchLaw = "gaussian"
) -> CertificateEstimate:
    """Estimate the excess loss of β̄ from its k sketches of all rows (Theorem 3.1).

    `ℓ̂ r/(m − r − 1)/k` with `ℓ̂` the mean of `ρ_i m/(m − r)`: unbiased given the data for Gaussian sketches, without a
    noise model. Sketches that sample a rotation of P rows lose `(P − m)/(P − r)` of that, and nothing once m = P.

    Parameters
    ----------
    sketches : sequence of PartitionMoments
        From `read_sketch`, all of the same number of rows m > r + 1.
    row_count : int
        Rows n behind them.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`; for samples of rows `certify_row_samples` assumes less.

    Returns
    -------
    CertificateEstimate
        Of kind "estimated" for Gaussian sketches, "approximate" for others, "exact" when nothing is left out. Its
        intervals are exact for one Gaussian sketch, but for a product of chi-squares being taken for one.
    """
    if len({(part.row_count, part.rank) for part in sketches}) != 1:
        raise InputError("sketches of the whole data must agree in rows and rank: pass sketches of the same rows.")
    m, rank, k = sketches[0].row_count, sketches[0].rank, len(sketches)
    require_sketch_size(m, rank)
    rotation = rotation_rows(sketch, row_count)
    if m >= rotation:
        return nothing_lost(float(np.mean([part.loss for part in sketches])), rank, row_count, k)
    loss = float(np.mean([part.loss for part in sketches])) * m / (m - rank) * (1 - rank / rotation)
    excess = loss * rank * noise_factor(m, rank, rotation) / k
    in_noise = k * (m - rank) * _widening(m, rank, rotation)
    relative, absolute, single = _confidences(loss, rank, m, k, rotation)
    in_gram = 4 + k * (single - 4) if single > 4 else 0.0
    law = law_of(sketch)
    return CertificateEstimate(
        excess_loss=excess,
        standard_error=deviation_from_estimate(excess, min(rank, rotation - m), in_gram, in_noise),
        relative_excess_loss=rank * noise_factor(m, rank, rotation) / k,
        minimal_loss=loss,
        divergence=float(rank),
        noise_variance=loss / (row_count - rank) if row_count > rank else math.nan,
        sketch_terms=np.full(k, excess / k),
        averaging_term=0.0,
        kind="estimated" if law.is_exact else "approximate",
        reason="unbiased, whatever the data" if law.is_exact else law.reason,
        confidence=absolute,
        relative_confidence=relative,
    )


def nothing_lost(loss: float, rank: int, row_count: int, sketches: int) -> CertificateEstimate:
    """Return the certificate of sketches with as many rows as there are."""
    nothing = ConfidenceDistribution("point", (0.0,))
    return CertificateEstimate(
        excess_loss=0.0,
        standard_error=0.0,
        relative_excess_loss=0.0,
        minimal_loss=loss,
        divergence=float(rank),
        noise_variance=loss / (row_count - rank) if row_count > rank else math.nan,
        sketch_terms=np.zeros(sketches),
        averaging_term=0.0,
        kind="exact",
        reason="the sketches have as many rows as there are",
        confidence=nothing,
        relative_confidence=nothing,
    )


def _widening(m: int, rank: int, rotation: float) -> float:
    """Return by how much more is known of ℓ from m rows of a rotation of P rows than from m Gaussian rows."""
    return 1.0 if math.isinf(rotation) else (rotation - rank + 2) / (rotation - m)


def _confidences(
    loss: float, rank: int, m: int, k: int, rotation: float
) -> tuple[ConfidenceDistribution, ConfidenceDistribution, float]:
    """Return the laws of the excess loss divided by ℓ, and of the excess loss itself, ℓ being estimated.

    And the degrees of freedom of the scale of one fit's error, m − r + 1 for a Gaussian sketch.

    One fit loses `ℓ · χ²_r/χ²_{m−r+1}` when the sketch is Gaussian, and with m rows of a random rotation of P rows
    `ℓ (1 − b) β χ²_{P−m}/χ²_{m−r+1}` with beta variates 1 − b of (P−m, m−r) and β of (r, P−m−r) half degrees of
    freedom; `1 − b` and the estimate of ℓ, which is a multiple of b, are dependent. Errors of k fits point to random
    directions: their average loses the mean of k such scales, divided by k, times χ²_r.
    """
    finite = math.isfinite(rotation)
    left = rotation - m
    # With fewer rows left out than columns it is they that bound the number of directions.
    above, other = min(rank, left), max(rank, left)
    mean, variance = log_moments(float(m - rank + 1))
    mean = -mean
    if finite:
        of_left, of_rest = log_moments(other), log_moments(rotation - rank)
        mean, variance = mean + of_left[0] - of_rest[0], variance + max(of_left[1] - of_rest[1], 0.0)
    single = freedom_of(variance)
    averaged, growth = mean_of_inverses(single, k)
    scale = rank * (left / (rotation - rank) if finite else 1.0) / (m - rank + 1) / k
    # The log-mean of one scale, of which the average of k is `growth` times an inverse chi-square.
    scale *= math.exp(mean + log_moments(single)[0]) * growth
    centre, spread = (-log_moments(averaged)[0], log_moments(averaged)[1])
    relative = ratio_confidence(scale, above, centre, spread)
    of_loss = log_moments(k * (m - rank) * _widening(m, rank, rotation))
    shared = 2 * log_moments(rotation - rank)[1] / k if finite else 0.0
    absolute = ratio_confidence(loss * scale, above, centre - of_loss[0], spread + of_loss[1] + shared)
    return relative, absolute, single
