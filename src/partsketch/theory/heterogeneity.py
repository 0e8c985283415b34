"""Do the partitions share their coefficients? An F test that does not take the noise for constant.

The statistic is what separate fits gain over one fit, `T = ℓ − Σ ℓ_i`. Each partition's part of it is judged by its own
noise (Brown and Forsythe's test, for vectors), so noise may differ between partitions. Within a partition noise may
depend on the features. Then fits vary by a factor Ψ more than constant noise has it, which no factor or sketch shows:

- Fits to sketches vary by the sketch far more than by the noise of the rows, and the law of the sketch is known. The
  part of the rows is taken 25 times as large as constant noise has it; the test is then on the safe side.
- Exact factors alone do not allow the test: noise that depends on features cannot be told from unlike coefficients.
  Beside random partitions of the same rows it can, because those share their coefficients and have the same Ψ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partsketch.common.special import fdtrc
from partsketch.theory.arguments import FloatArray
from partsketch.theory.moments import PartitionMoments, pooled_moments
from partsketch.theory.simulated_tail import tail_probability
from partsketch.theory.sketch_moments import SketchMoments

#: Fits may vary so many times more than constant noise has it; of shuffled real tables House reaches 20.
_VARIABLE_NOISE = 25.0

#: The allowance for the noise of the rows may be so many times what sketches add; beyond that it decides the test.
_MOST_ALLOWANCE = 4.0

#: Residual sums of squares below this share of the target's are rounding.
ROUNDING = 1e-26

_FACTORS_ALONE = (
    "from one summary of each partition unlike coefficients cannot be told from noise that depends on the features; "
    "`partsketch diagnose` compares with random partitions of the same rows"
)


@dataclass(frozen=True)
class Heterogeneity:
    """A test of whether partitions share their coefficients.

    Attributes
    ----------
    statistic : float or None
        F, what separate fits gain over one fit, divided by what chance would give; None when there is no test.
    degrees_of_freedom, residual_degrees_of_freedom : float or None
        Of the F distribution.
    p_value : float or None
        Probability of an F at least as large when all partitions share their coefficients.
    reason : str
        Why there is no test; empty when there is one.
    """

    statistic: float | None
    degrees_of_freedom: float | None
    residual_degrees_of_freedom: float | None
    p_value: float | None
    reason: str = ""

    @classmethod
    def unavailable(cls, reason: str) -> Heterogeneity:
        """Return a test that was not made."""
        return cls(None, None, None, None, reason)


@dataclass(frozen=True)
class _Gain:
    """What separate fits gain: T over what constant noise would give, and the degrees of freedom of either."""

    ratio: float
    above: float
    below: float


def sketch_heterogeneity(moments: SketchMoments) -> Heterogeneity:
    """Test whether partitions share their coefficients, from one sketch of each (Extension of Claim 4.5).

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank. Samples of rows keep the noise of single rows, and are not tested.

    Returns
    -------
    Heterogeneity
        On the safe side: with homoskedastic rows it rejects less often than its level.
    """
    if len(moments.sketches) < 2:
        return Heterogeneity.unavailable("there is one partition only")
    if moments.law.keeps_rows:
        return Heterogeneity.unavailable("samples of rows keep the noise of single rows, whose law is not known")
    of_rows, freedom = moments.sizes - moments.ranks - 1, moments.row_counts - moments.ranks
    allowance = _VARIABLE_NOISE * of_rows / np.maximum(freedom, 0.5)
    if np.any(freedom <= 0) or np.any(allowance > _MOST_ALLOWANCE * moments.sampling):
        return Heterogeneity.unavailable(
            "the sketches are so large beside the partitions that the noise of the rows would decide the test; use "
            "a smaller sketch_size or fewer partitions, or `partsketch diagnose`"
        )
    gain = _gain(moments.sketches, moments.sampling + allowance)
    return _tested(gain) if gain is not None else Heterogeneity.unavailable("the sketches leave no residuals")


def constant_noise_heterogeneity(moments: SketchMoments) -> Heterogeneity:
    """Test whether partitions share their coefficients if noise is constant within each, from one sketch of each.

    Every fit is weighted by its own noise, so that a difference shows wherever it is large beside that (the test of
    Welch and James). It rejects more often than `sketch_heterogeneity`, also where noise depends on the features: for
    choices that cost little when they are made in vain.

    Parameters
    ----------
    moments : SketchMoments
        From `sketch_moments`; any rank. Samples of rows are not tested.

    Returns
    -------
    Heterogeneity
        With an F distribution of the same mean and variance; p-values below 1% are simulated, for in its tail that
        distribution rejects up to three times too often.
    """
    if len(moments.sketches) < 2:
        return Heterogeneity.unavailable("there is one partition only")
    if moments.law.keeps_rows:
        return Heterogeneity.unavailable("samples of rows keep the noise of single rows, whose law is not known")
    freedom, rows = moments.sizes - moments.ranks, moments.row_counts - moments.ranks
    losses = np.array([part.loss for part in moments.sketches])
    targets = np.array([float(part.factor[:, -1] @ part.factor[:, -1]) for part in moments.sketches])
    if np.any(rows <= 0) or np.any(losses <= ROUNDING * targets):
        return Heterogeneity.unavailable("a partition shows no noise of its own")
    # Noise of a fit by its own Gram matrix, over its residual variance: of the sketch, and of the rows.
    rotations = np.array([moments.law.rotation(int(count)) for count in moments.row_counts])
    of_rows = moments.sizes * (1 - moments.ranks / rotations) / rows
    noise = losses / freedom * (np.maximum(1 - moments.sizes / rotations, 0.0) + of_rows)
    scales = 1 / np.sqrt(noise)
    stacked = np.vstack([scale * part.factor for part, scale in zip(moments.sketches, scales, strict=True)])
    pooled = PartitionMoments(stacked, int(moments.sizes.sum()), moments.sketches[0].free_columns)
    above = float(moments.ranks.sum() - pooled.rank)
    if above <= 0:
        return Heterogeneity.unavailable("partitions have no direction in common")
    statistic = max(pooled.loss - float(np.sum(losses / noise)), 0.0)
    others = [_others(part, scale, pooled) for part, scale in zip(moments.sketches, scales, strict=True)]
    found = _welch_james(statistic, above, others, freedom)
    assert found.p_value is not None
    roots = [scale * part.root for part, scale in zip(moments.sketches, scales, strict=True)]
    return replace(found, p_value=tail_probability(statistic, found.p_value, roots, freedom))


def _others(part: PartitionMoments, scale: float, pooled: PartitionMoments) -> FloatArray:
    """Eigenvalues of what the other partitions add to the common fit, in directions that this one sees."""
    shares = np.linalg.svd(scale * part.root @ pooled.inverse_root, compute_uv=False)[: part.rank] ** 2
    return np.clip(1 - shares, 0.0, 1.0)


def _welch_james(statistic: float, above: float, others: Sequence[FloatArray], freedom: FloatArray) -> Heterogeneity:
    """Judge a sum of squares in units of estimated variances, of so many degrees of freedom each.

    With M_j what others add, the mean is larger by `2 Σ tr M_j²/f_j` than that of a chi-square, and the variance by
    `12 Σ tr M_j²/f_j + 2 Σ (tr M_j)²/f_j`: Welch's terms, for one variance and several directions per partition.
    """
    known = np.maximum(freedom - 2, 1.0)
    squares = float(np.sum([np.sum(values**2) / f for values, f in zip(others, known, strict=True)]))
    lengths = float(np.sum([np.sum(values) ** 2 / f for values, f in zip(others, known, strict=True)]))
    mean, variance = above + 2 * squares, 2 * above + 12 * squares + 2 * lengths
    spread = above * variance / mean**2
    below = (2 * above - 4 + 4 * spread) / (spread - 2) if spread > 2 else np.inf
    below = max(float(below), 4.5)
    ratio = statistic / mean * (below / (below - 2) if np.isfinite(below) else 1.0)
    p_value = float(fdtrc(above, min(below, 1e9), ratio))
    return Heterogeneity(ratio, above, min(below, 1e9), p_value)


def partition_heterogeneity(
    partitions: Sequence[PartitionMoments], random_partitions: Sequence[PartitionMoments] = ()
) -> Heterogeneity:
    """Test whether partitions share their coefficients, beside random partitions of the same rows.

    Parameters
    ----------
    partitions : sequence of PartitionMoments
        Exact moments; any rank.
    random_partitions : sequence of PartitionMoments
        Exact moments of a random partitioning of the same rows. Without them there is no test.

    Returns
    -------
    Heterogeneity
        `F` is the gain of separate fits over that in random partitions, each measured by the noise of its partitions.
    """
    if len(partitions) < 2:
        return Heterogeneity.unavailable("there is one partition only")
    if len(random_partitions) < 2:
        return Heterogeneity.unavailable(_FACTORS_ALONE)
    found = _gain(partitions, np.ones(len(partitions)))
    chance = _gain(random_partitions, np.ones(len(random_partitions)))
    if found is None or chance is None or chance.ratio <= 0:
        return Heterogeneity.unavailable("the partitions leave no residuals to judge differences by")
    # Where noise depends on few directions, fewer degrees of freedom are behind either gain.
    share = _direction_share(random_partitions)
    gain = _Gain(found.ratio / chance.ratio, found.above * share, min(chance.above * share, chance.below))
    return _tested(gain)


def constant_noise_agreement(partitions: Sequence[PartitionMoments]) -> float | None:
    """Return the p-value of shared coefficients if noise is constant within each partition; None if nothing is left.

    A small one says that coefficients differ, or that noise depends on the features: it does not tell which.

    Parameters
    ----------
    partitions : sequence of PartitionMoments
        Exact moments of two or more partitions, any rank.
    """
    gain = _gain(partitions, np.ones(len(partitions)))
    return None if gain is None else _tested(gain).p_value


def _tested(gain: _Gain) -> Heterogeneity:
    return Heterogeneity(gain.ratio, gain.above, gain.below, float(fdtrc(gain.above, gain.below, gain.ratio)))


def _gain(parts: Sequence[PartitionMoments], variation: FloatArray) -> _Gain | None:
    """Return the gain of separate fits whose variances are `variation_i` times the residual variance of each.

    With v_i those variances, `E T = Σ v_i (r_i − h_i)`, h_i the leverage of partition i in the common fit, and
    `Var T = 2 [Σ v_i² (r_i − 2 h_i) + Σ_ij v_i v_j tr(H_i H_j)]`; the estimate of E T has `m_i − r_i` degrees of
    freedom from each partition. Degrees of freedom follow (Satterthwaite); squares of estimates are corrected for
    their noise.
    """
    pooled = pooled_moments(list(parts))
    ranks = np.array([float(part.rank) for part in parts])
    freedom = np.array([float(part.row_count) for part in parts]) - ranks
    if np.any(freedom <= 0):
        return None
    inverse_root = pooled.inverse_root
    roots = (part.root @ inverse_root for part in parts)
    grams = np.stack([root.T @ root for root in roots])
    shares = np.trace(grams, axis1=1, axis2=2)
    losses = np.array([part.loss for part in parts])
    # In units of the largest: weights may be such that squares of losses are beyond doubles.
    unit = 2.0 ** np.frexp(losses.max())[1] if losses.max() > 0 else 1.0
    noise = losses / unit / freedom * variation
    parts_of_mean = noise * (ranks - shares)
    mean = float(parts_of_mean.sum())
    targets = sum(float(part.factor[:, -1] @ part.factor[:, -1]) for part in parts)
    # Residuals that are rounding of the target tell nothing of noise.
    if mean <= 0 or float(losses.sum()) <= ROUNDING * targets:
        return None
    squares = noise**2 * freedom / (freedom + 2)
    # Σ_ij v_i v_j tr(H_i H_j) is tr M² with M = Σ v_i H_i: no matrix of all pairs.
    together = np.tensordot(noise, grams, axes=1)
    crossed = float(np.sum(together * together.T)) + float((squares - noise**2) @ np.einsum("iab,iba->i", grams, grams))
    variance = float(squares @ (ranks - 2 * shares)) + crossed
    above = min(mean**2 / variance, float(ranks.sum() - pooled.rank)) if variance > 0 else 1.0
    below = mean**2 / float(np.sum(parts_of_mean**2 / (freedom + 2))) - 2
    return _Gain(max(pooled.loss - float(losses.sum()), 0.0) / unit / mean, above, max(below, 1.0))


def _direction_share(parts: Sequence[PartitionMoments]) -> float:
    """Return which share of its degrees of freedom the gain of random partitions has, from their scores.

    Noise in few directions leaves `(tr Ψ)²/tr Ψ²` of r, and noise with heavy tails makes the lengths of scores vary
    more than those of Gaussian ones; the smaller of the two is taken. It is an estimate from the scores of k partitions
    and too large by chance as often as too small, so one partition's worth of it, a k-th, is not counted on.
    """
    pooled = pooled_moments(list(parts))
    rank, freedom = max(pooled.rank, 1), len(parts) - 1
    scores = np.stack(
        [(part.root @ pooled.inverse_root).T @ (part.factor[:, -1] - part.root @ pooled.solution) for part in parts]
    )
    scatter, lengths = scores.T @ scores / freedom, np.sum(scores**2, axis=1)
    trace, square = float(np.trace(scatter)), float(np.sum(scatter * scatter))
    if freedom < 2 or trace <= 0:
        return 1.0 / rank
    # Without bias for Gaussian scores: the square of an estimated covariance is larger than that of the true one.
    unbiased = freedom**2 / ((freedom - 1) * (freedom + 2)) * (square - trace**2 / freedom)
    directions = trace**2 / unbiased if unbiased > 0 else float(rank)
    variance = float(np.var(lengths, ddof=1))
    even = 2 * float(np.square(lengths.mean())) / variance if variance > 0 else float(rank)
    counted = freedom / len(parts)
    return float(np.clip(counted * min(directions, even, rank) / rank, 1 / rank, 1.0))
