"""What an averaged fit may lose, as a distribution: draws of its error from fixed random numbers.

Write g for the error of the averaged fit and ĝ for its distance to the stacked one; lengths are measured by the stacked
Gram matrix. Around μ, what averaging costs by itself, both are Gaussian (see `excess_law`); ĝ is known, and μ is fixed
and unknown. It is taken for a Gaussian vector of variance τ² in every direction, and τ² has the confidence
distribution that the length of ĝ gives it: `ĝᵀĝ` is a sum of chi-squares times `Q + τ²`, and τ is zero where that
cannot be reached. The length is what is lost; `ĝᵀ(Q + τ²)⁻¹ĝ` would tell more of τ if μ were the same in all
directions, but where it is not, as in files sorted by the target, it follows those that ĝ tells best and not those that
cost most.
Draws of τ, of the size of the noise, of g given ĝ and of what stands for the unknown Gram matrix give the distribution
of `gᵀG⁻¹g`, the excess loss of this fit.

Where ĝ is beyond doubt in a direction, μ is not drawn towards zero there: rows sorted by the target give μ one
direction of many, and a variance shared with all the others would take a good part of it. For alike partitions g − ĝ is
independent of ĝ: nothing is asked of μ. For very unlike ones τ is large, and g is ĝ but
for the error of the stacked fit. In between, when μ may be zero, a draw with μ > 0 can only be too large. So the lower
ends take μ = 0 as long as that is not rejected at about their own level, and may then miss as much more often than
their share as the upper ends miss less often, as far as the draws have μ = 0: both together cover as often as they say.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.special import fdtri
from partsketch.theory.arguments import FloatArray
from partsketch.theory.confidence import PROBABILITIES, ConfidenceDistribution
from partsketch.theory.excess_law import ExcessLaw, directions_of
from partsketch.theory.unlike_coefficients import BEYOND

#: Draws behind an interval: the 0.5% tail of one interval is known to about 16% of itself.
DRAWS = 8192

_SEED = 20140
#: Draws at a time: so many numbers of one vector of each, which stay in the cache, but no fewer draws than these, which
#: would make poor use of the matrices of many directions, and no more.
_NUMBERS_AT_ONCE, _LEAST_AT_ONCE, _MOST_AT_ONCE = 2**15, 512, 2048
#: Of up to so many directions, two threads work on draws.
_FEW_DIRECTIONS = 128
#: Partitions whose own parts are drawn: that of one among so many is no more than 3% of what is lost.
_MOST_DRAWN = 32
#: Chance that ĝ is taken to be beyond doubt in some direction where μ is zero.
_CHANCE = 0.05


@dataclass(frozen=True)
class GramNoise:
    """How the stacked Gram matrix stands for the exact one.

    Attributes
    ----------
    freedom : float
        Degrees of freedom.
    nearness : float
        Share of the loss that fits have on their own partitions, as the sketches show it.
    own : tuple of OwnPart
        What the sketches do not show of that, by partition.
    """

    freedom: float
    nearness: float
    own: tuple[OwnPart, ...] = ()


@dataclass(frozen=True)
class OwnPart:
    """What the sketch of a partition does not show of the loss that its own fit has there.

    Attributes
    ----------
    mean : float
        In the mean, in units of loss.
    sketch_size, rank : int
        m and r.
    sampling : float
        How much of the variance of a Gaussian sketch this one has: less where it is a good part of all rows.
    """

    mean: float
    sketch_size: int
    rank: int
    sampling: float

    def drawn(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draw it: a fit loses `m/χ²` times what its sketch shows, with m − r + 1 degrees of freedom."""
        shown = rng.chisquare(self.sketch_size - self.rank + 1, count) / self.sketch_size
        hidden = (1 / shown - 1) * (self.sketch_size - self.rank - 1) / (self.rank + 1)
        return np.asarray(self.mean * (1 + np.sqrt(self.sampling) * (hidden - 1)))


@dataclass(frozen=True, eq=False)
class _Directions:
    """The law in the principal directions of the variance of ĝ.

    Attributes
    ----------
    seen, variances : arrays of shape (r,)
        ĝ and its variances.
    certain : array of bool of shape (r,)
        Where ĝ is beyond doubt.
    turns, crossed, slope, rest, told : arrays of shape (r, r)
        The directions; C in them, and divided by the deviations of ĝ; a root of the variance that ĝ does not tell; K.
    """

    seen: FloatArray
    variances: FloatArray
    certain: NDArray[np.bool_]
    turns: FloatArray
    crossed: FloatArray
    slope: FloatArray
    rest: FloatArray
    told: FloatArray


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws of `‖g‖²` with μ drawn and with μ = 0, whether μ is zero, and the noise over its estimate.

    And by how much ĝ says that the part of own sketches is larger than in the mean.
    """

    lengths: FloatArray
    lengths_without: FloatArray
    none: NDArray[np.bool_]
    noise: FloatArray
    own: FloatArray


def excess_distributions(
    law: ExcessLaw, gram: GramNoise, minimal_loss: float
) -> tuple[ConfidenceDistribution, ConfidenceDistribution | None, float]:
    """Return the distribution of the excess loss, of it relative to the minimal loss, and its standard deviation."""
    rng = np.random.Generator(np.random.PCG64(_SEED))
    directions = _directions(law)
    under_way: list[Future[_Draws]] = []
    # The numbers are drawn in one order, whatever is made of them where, and while something is made of others. Of many
    # directions two would take memory.
    beside = 2 if len(directions.seen) <= _FEW_DIRECTIONS else 1
    fitting = 2 ** (max(_NUMBERS_AT_ONCE // len(directions.seen), 1).bit_length() - 1)
    at_once = max(_LEAST_AT_ONCE, min(_MOST_AT_ONCE, fitting))
    with ThreadPoolExecutor(beside) as pool:
        for number in range(DRAWS // at_once):
            if number >= beside:
                under_way[number - beside].result()
            under_way.append(pool.submit(_draws, law, directions, _chances(law, directions, rng, at_once)))
    parts = [one.result() for one in under_way]
    found = _Draws(*(np.concatenate([getattr(one, name) for one in parts]) for name in _Draws.__annotations__))
    # What sketches show of the loss on their own partitions is what it is there; elsewhere it is a fraction.
    scale = gram.freedom / rng.chisquare(gram.freedom, len(found.lengths))
    scale += gram.nearness * (1 - scale)
    # The mean of 1/noise is one, that of the noise may be infinite.
    own = float(np.mean(np.maximum(law.own + found.own, 0.0)))
    scale += own / max(float(np.mean(found.lengths / found.noise)), 1e-300) * _own_over_mean(gram.own, rng, len(scale))
    drawn, without = found.lengths * scale, found.lengths_without * scale
    remaining = max(law.loss_variance - law.loss_coupling**2 * 2 / law.freedom, 0.0)
    losses = found.noise**law.loss_coupling * np.exp(np.sqrt(remaining) * rng.standard_normal(len(drawn)))
    none, minimal = float(np.mean(found.none)), minimal_loss * losses
    excess = distribution_of(drawn, without, none, law.equal_tails)
    relative = distribution_of(drawn / minimal, without / minimal, none, law.equal_tails)
    # The far tail of a scale of few degrees of freedom has no variance; beyond 1 in 2,000 it is left out.
    kept = np.minimum(drawn, excess.quantile(PROBABILITIES[-1]))
    return excess, relative, float(np.std(kept))


def _own_over_mean(parts: tuple[OwnPart, ...], rng: np.random.Generator, count: int) -> FloatArray:
    """Draw what sketches do not show of the losses on their own partitions, over its mean."""
    mean = sum(part.mean for part in parts)
    if not mean > 0:
        return np.ones(count)
    # Of many partitions each has a small share, and the mean stands for those with the smallest.
    largest = sorted(parts, key=lambda part: -part.mean)[:_MOST_DRAWN]
    drawn = sum(part.drawn(rng, count) - part.mean for part in largest)
    return np.asarray(1 + drawn / mean)


def _directions(law: ExcessLaw) -> _Directions:
    variances, turns = directions_of(law.spread, law.fit)
    seen, crossed = turns.T @ law.distance, law.crossed @ turns
    slope = crossed / np.sqrt(variances)
    with np.errstate(over="ignore", invalid="ignore"):
        left = law.fit - slope @ slope.T
    if not np.isfinite(left).all():
        raise InputError(BEYOND)
    values, axes = np.linalg.eigh((left + left.T) / 2)
    # Each direction is tested by itself, at a share of the chance.
    doubt = float(fdtri(1.0, min(law.seen_freedom, 1e9), 1 - _CHANCE / len(seen)))
    certain = seen**2 > doubt * variances
    rest = axes * np.sqrt(np.maximum(values, 0.0))
    return _Directions(seen, variances, certain, turns, crossed, slope, rest, turns.T @ law.told @ turns)


@dataclass(frozen=True, eq=False)
class _Chances:
    """Random numbers of some draws: two sizes of noise, three vectors of normals, and chi-squares."""

    noise: FloatArray
    seen_noise: FloatArray
    normals: FloatArray
    squares: FloatArray


def _chances(law: ExcessLaw, given: _Directions, rng: np.random.Generator, count: int) -> _Chances:
    # What ĝ does not tell has a noise of its own: that of other partitions.
    noise = law.freedom / rng.chisquare(law.freedom, count)
    seen_noise = law.seen_freedom / rng.chisquare(law.seen_freedom, count)[:, None]
    normals = rng.standard_normal((3, count, len(given.seen)))
    # Chi-squares of one degree of freedom: squares of normals are drawn in a quarter of the time of a gamma.
    squares = np.square(rng.standard_normal((count, int((~given.certain).sum()))))
    return _Chances(noise, seen_noise, normals, squares)


def _draws(law: ExcessLaw, given: _Directions, chances: _Chances) -> _Draws:
    """Draw g given ĝ: draw both, and correct g by the regression on what ĝ was drawn wrong."""
    open_directions, noise, seen_noise = ~given.certain, chances.noise, chances.seen_noise
    first, second, third = chances.normals
    rest = (np.sqrt(noise)[:, None] * second) @ given.rest.T
    of_distance = given.variances * seen_noise
    between, none = variance_between(given.seen[open_directions], of_distance[:, open_directions], chances.squares)
    # Where ĝ is beyond doubt, μ is what ĝ and its error say: as with a between of any size.
    of_noise = np.sqrt(of_distance) * first
    away, fixed = given.seen - of_noise, np.sqrt(between) * third
    told = given.crossed @ np.where(given.certain, 0.0, given.seen / given.variances)
    known: FloatArray | float = 0.0
    if given.certain.any():
        sure = np.where(given.certain, away, 0.0)
        known = np.where(given.certain, np.sqrt(seen_noise) * first, 0.0) @ given.slope.T + sure @ given.turns.T
        wrong = np.where(given.certain, 0.0, away - fixed) / (of_distance + between)
        fixed = np.where(given.certain, away, fixed)
    else:
        wrong = (away - fixed) / (of_distance + between)
    error = rest + (np.sqrt(seen_noise) * first) @ given.slope.T + (seen_noise * wrong) @ given.crossed.T
    error += (fixed + between * wrong) @ given.turns.T
    without = _squared(rest + told + known)
    own = told_of(given.seen, of_distance + between, given.told, open_directions) * seen_noise[:, 0]
    return _Draws(np.where(none, without, _squared(error)), without, none, noise, own)


def told_of(seen: FloatArray, variances: FloatArray, told: FloatArray, some: NDArray[np.bool_]) -> FloatArray:
    """Return `ĝᵀS⁻¹KS⁻¹ĝ − tr S⁻¹K` for diagonal S, in some directions; noise of the size ν makes νK of K."""
    slopes = some * seen / variances
    return np.asarray(np.einsum("ij,ij->i", slopes @ told, slopes) - (some / variances) @ np.diagonal(told))


def _squared(rows: FloatArray) -> FloatArray:
    """Return the squared length of every row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def variance_between(
    seen: FloatArray, variances: FloatArray, chances: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Solve `Σ seen² = Σ (variances + τ²) chances` for every draw; τ² = 0, and true, where it cannot be reached."""
    left = float(seen @ seen) - np.einsum("ij,ij->i", variances, chances)
    none = ~(left > 0)
    between = np.where(none, 0.0, left) / np.where(none, 1.0, chances.sum(axis=1))
    return between[:, None], none


def distribution_of(drawn: FloatArray, without: FloatArray, none: float, equal_tails: bool) -> ConfidenceDistribution:
    """Return the distribution of what was drawn; lower ends may make up for upper ends where chance explains it all."""
    chances = np.asarray(PROBABILITIES)
    drawn, without = np.sort(drawn), np.sort(without)
    values = np.quantile(drawn, chances)
    # What the upper ends miss if μ is zero; the quantiles are those of 1 − chances in reverse.
    missed = 1 - np.searchsorted(without, values[::-1]) / len(without)
    # The less the draws say that it is, the less lower ends may make up for that.
    more = 0.0 if equal_tails else none * np.maximum(chances - missed, 0.0)
    lowest = np.minimum(np.quantile(without, np.minimum(chances + more, 1.0)), values)
    values = np.where(chances < min(none / 1.5, 0.5), lowest, values)
    return ConfidenceDistribution("quantiles", tuple(float(value) for value in np.maximum.accumulate(values)))
