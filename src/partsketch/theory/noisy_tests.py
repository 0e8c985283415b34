"""Intervals by inverted tests, where noise is about as large as what the rows tell.

Sums of products T̃ = T + E as in `noisy_products`. Let φ be least squares without noise: u(φ) = QᵀT̃γ, γ = a − Qφ, is
then Qᵀ Eγ, normal with mean zero and the covariance V(φ) = (s²/2)(‖γ‖² I + Qᵀγ γᵀQ), exactly, however weak the rows
are. For the true coefficients the noise of the rows adds σ²G. The test of ℓᵀφ = c takes

    F(c) = min uᵀV⁻¹u    over all φ with ℓᵀφ = c,

twice the difference of the likelihoods, against χ² with one degree of freedom. Nuisance coefficients that are strongly
told make this the law of F; where they are told weakly the minimum is smaller, and the test too seldom rejects. All c
that are not rejected are the interval. For c → ∞ F tends to min λ²/s² over the eigenvalues λ of QᵀT̃Q: where one of
them is below √χ² · s nothing is excluded, and the interval is the whole line. That is no weakness of the test. Whatever
covers with 95% for all tables, those without a least squares fit included, must be unbounded that often (Gleser and
Hwang, 1987; Dufour, 1997).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from partsketch.common.special import ndtri
from partsketch.theory.arguments import FloatArray
from partsketch.theory.noisy_products import EDGE

#: Steps of the minimum, and what they may leave of it: a thousandth of a test at 95%.
_MOST_STEPS, _LEFT = 60, 1e-6
#: Doublings of an interval before an end is given up as not bounded, how many in turn must be rejected, and steps
#: towards the end then, until so much of its distance is left.
_DOUBLINGS, _REJECTED, _NARROWINGS, _WIDTH = 40, 3, 24, 1e-4


@dataclass(frozen=True, eq=False)
class NoisyTests:
    """Tests of linear functions of coefficients from noisy sums of products, in the eigenvectors of their Gram matrix.

    Attributes
    ----------
    eigenvalues
        Of the Gram matrix with noise, all above zero where intervals are bounded.
    moments, inside
        Products of the features with the target, and the target's own part among them.
    outside
        Square of what is left of the target's line outside of them.
    scatter
        Variance of the moments that the rows leave, σ² times eigenvalues above the edge of the noise.
    functions
        What is tested, one line each, times the coefficients.
    deviation
        s, of the noise of an entry on the diagonal.
    """

    eigenvalues: FloatArray
    moments: FloatArray
    inside: FloatArray
    outside: float
    scatter: FloatArray
    functions: FloatArray
    deviation: float

    def statistics(self, values: FloatArray) -> FloatArray:
        """Return F for each function having its value."""
        twice = replace(self, functions=np.vstack([self.functions] * 2))
        found = twice._minimum(np.vstack([self._nearest(values), self._weakest(values)]))
        return np.asarray(found.reshape(2, -1).min(axis=0))

    def intervals(self, levels: Sequence[float]) -> FloatArray:
        """Return the values that are not rejected: lower and upper ends, shape (levels, functions, 2)."""
        count = len(self.functions)
        reaches = np.array([float(ndtri(0.5 + level / 2)) for level in levels])
        found = np.tile([-math.inf, math.inf], (len(levels), count, 1))
        bounded = [place for place, reach in enumerate(reaches) if self.at_infinity > reach**2]
        if bounded:
            every = replace(self, functions=np.tile(self.functions, (2 * len(bounded), 1)))
            signs = np.tile(np.repeat([-1.0, 1.0], count), len(bounded))
            ends = every._ends(signs, np.repeat(reaches[bounded], 2 * count))
            found[bounded] = ends.reshape(len(bounded), 2, count).transpose(0, 2, 1)
        return np.asarray(found)

    @property
    def at_infinity(self) -> float:
        """What F tends to where a value goes to infinity; zero where an eigenvalue is not above zero."""
        return (max(float(self.eigenvalues[0]), 0.0) / self.deviation) ** 2

    @property
    def _best(self) -> FloatArray:
        return np.asarray(self.moments / self.eigenvalues)

    def _ends(self, signs: FloatArray, reaches: FloatArray) -> FloatArray:
        """Return the furthest values that are not rejected, each on its side of the fit."""
        middle = self.functions @ self._best
        toward = np.linalg.solve(self._curvature(self._best[None])[0][0], self.functions.T)
        furthest = reaches * np.sqrt(np.einsum("kp,pk->k", self.functions, toward))
        inner, outer, rejected = np.zeros(len(middle)), furthest, np.zeros(len(middle), dtype=int)
        below, above = -reaches, np.zeros(len(middle))
        for _ in range(_DOUBLINGS):
            excess = np.sqrt(self.statistics(middle + signs * furthest)) - reaches
            kept = excess <= 0
            # A value beyond one that was rejected may be kept again: what lies between is kept, too.
            rejected = np.where(kept, 0, rejected + 1)
            first = rejected == 1
            inner, below = np.where(kept, furthest, inner), np.where(kept, excess, below)
            outer, above = np.where(first, furthest, outer), np.where(first, excess, above)
            if (rejected >= _REJECTED).all():
                return np.asarray(middle + signs * self._narrowed(middle, signs, reaches, (inner, outer, below, above)))
            furthest = furthest * np.where(rejected >= _REJECTED, 1.0, 2.0)
        return np.asarray(np.where(rejected > 0, middle + signs * outer, signs * math.inf))

    def _narrowed(
        self, middle: FloatArray, signs: FloatArray, reaches: FloatArray, bracket: tuple[FloatArray, ...]
    ) -> FloatArray:
        """Return where the test begins to reject, between two distances: by secants, an idle end halved."""
        inner, outer, below, above = bracket
        moved = np.zeros(len(middle), dtype=int)
        for _ in range(_NARROWINGS):
            if (outer - inner <= _WIDTH * outer).all():
                break
            place = outer - above * (outer - inner) / (above - below)
            excess = np.sqrt(self.statistics(middle + signs * place)) - reaches
            kept = excess <= 0
            above = np.where(kept & (moved == 1), above / 2, np.where(kept, above, excess))
            below = np.where(~kept & (moved == -1), below / 2, np.where(kept, excess, below))
            inner, outer = np.where(kept, place, inner), np.where(kept, outer, place)
            moved = np.where(kept, 1, -1)
            # Where the end itself was met, only its other side moves by halves.
            if (np.abs(excess) <= _WIDTH * reaches).all():
                return place
        return outer

    def _nearest(self, values: FloatArray) -> FloatArray:
        """Return coefficients with these values, the nearest to the fit by the law at the fit."""
        best = self._best
        toward = np.linalg.solve(self._curvature(best[None])[0][0], self.functions.T).T
        away = values - self.functions @ best
        return np.asarray(best + toward * (away / np.einsum("kp,kp->k", toward, self.functions))[:, None])

    def _weakest(self, values: FloatArray) -> FloatArray:
        """Return coefficients with these values that the sums themselves tell the least of: a smallest eigenvector."""
        count = len(self.eigenvalues)
        length = np.concatenate([self.functions, values[:, None] - (self.functions @ self.inside)[:, None]], axis=1)
        # γ = a − Qφ in coordinates (Qᵀγ, outside): the value of the function is a linear condition on it.
        root = math.sqrt(self.outside)
        length[:, -1] /= root
        whole = np.column_stack([np.diag(self.eigenvalues), (self.moments - self.eigenvalues * self.inside) / root])
        free = np.linalg.svd(length[:, None, :])[2][:, 1:, :]
        least = np.linalg.svd(whole @ free.transpose(0, 2, 1))[2][:, -1, :]
        lines = np.einsum("kj,kji->ki", least, free)
        last = lines[:, -1]
        last = np.where(np.abs(last) < 1e-8, np.copysign(1e-8, last), last)
        found = self.inside - lines[:, :count] / last[:, None] * root
        away = values - np.einsum("kp,kp->k", self.functions, found)
        squares = np.einsum("kp,kp->k", self.functions, self.functions)
        return np.asarray(found + self.functions * (away / squares)[:, None])

    def _laws(self, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return Qᵀγ, the diagonal of V, the factor of its other part, and V⁻¹u at each point."""
        half = self.deviation**2 / 2
        away = self.inside - points
        diagonal = half * (self.outside + np.einsum("kp,kp->k", away, away))[:, None] + self.scatter
        factor = half / (1 + half * np.einsum("kp,kp->k", away / diagonal, away))
        scores = self.moments - self.eigenvalues * points
        solved = scores / diagonal
        solved = solved - factor[:, None] * (away / diagonal) * np.einsum("kp,kp->k", away, solved)[:, None]
        return away, diagonal, factor, solved

    def _values(self, points: FloatArray) -> FloatArray:
        solved = self._laws(points)[3]
        return np.asarray(np.einsum("kp,kp->k", self.moments - self.eigenvalues * points, solved))

    def _curvature(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return KᵀV⁻¹K and KᵀV⁻¹u, K the slope of V^(-1/2)u: half of curvature and slope of uᵀV⁻¹u."""
        away, diagonal, factor, solved = self._laws(points)
        quarter = self.deviation**2 / 4
        slope = quarter * (2 * solved[:, :, None] * away[:, None, :] + away[:, :, None] * solved[:, None, :])
        along = quarter * np.einsum("kp,kp->k", away, solved)[:, None] - self.eigenvalues
        every = np.arange(len(self.eigenvalues))
        slope[:, every, every] += along
        scaled = slope / diagonal[:, :, None]
        turned = np.einsum("kp,kpj->kj", away, scaled)
        products = slope.transpose(0, 2, 1) @ scaled - factor[:, None, None] * turned[:, :, None] * turned[:, None, :]
        return products, np.einsum("kpj,kp->kj", slope, solved)

    def _minimum(self, start: FloatArray) -> FloatArray:
        """Return the least uᵀV⁻¹u near a start: damped Gauss-Newton steps that leave the functions' values alone."""
        found = self._values(start)
        if len(self.eigenvalues) == 1:
            return found
        free = np.linalg.svd(self.functions[:, None, :])[2][:, 1:, :]
        points, damping = start.copy(), np.full(len(start), 1e-3)
        left, every = np.arange(len(start)), np.arange(free.shape[1])
        for _ in range(_MOST_STEPS):
            here = free[left]
            products, slopes = self._curvature(points[left])
            inside = here @ products @ here.transpose(0, 2, 1)
            inside[:, every, every] *= 1 + damping[left, None]
            downhill = np.einsum("kjp,kp->kj", here, slopes)
            steps = np.linalg.solve(inside, downhill[:, :, None])[:, :, 0]
            tried = points[left] - np.einsum("kjp,kj->kp", here, steps)
            reached = self._values(tried)
            better = reached < found[left]
            points[left[better]], found[left[better]] = tried[better], reached[better]
            damping[left] = np.clip(np.where(better, damping[left] / 10, damping[left] * 10), 1e-12, 1e12)
            left = left[np.einsum("kj,kj->k", downhill, steps) > _LEFT * (1 + found[left])]
            if not len(left):
                break
        return found


def noisy_tests(
    products: FloatArray,
    features: FloatArray,
    target: FloatArray,
    deviation: float,
    functions: FloatArray,
    variance: float,
) -> NoisyTests:
    """Prepare tests of functions of coefficients.

    Parameters
    ----------
    products, features, target, deviation
        As for `fit_noisy_products`.
    functions : ndarray
        One line each, times the coefficients of the features, shape (k, p).
    variance : float
        σ², of what the features leave of the target; zero for tests of least squares without noise.

    Returns
    -------
    NoisyTests
        The tests.
    """
    basis, upper = np.linalg.qr(features.T)
    gram = basis.T @ products @ basis
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    turned = basis @ vectors
    inside = turned.T @ target
    left = target - turned @ inside
    floor = EDGE * deviation / math.sqrt(2) * math.sqrt(len(values))
    return NoisyTests(
        eigenvalues=values,
        moments=turned.T @ (products @ target),
        inside=inside,
        outside=float(left @ left),
        scatter=variance * np.maximum(values, floor),
        functions=functions @ np.linalg.inv(upper) @ vectors,
        deviation=deviation,
    )
