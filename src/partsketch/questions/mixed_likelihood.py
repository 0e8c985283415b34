"""The likelihood of a model with random effects of the partitions, from their factors alone.

Rows of partition i are y = X β + Z b + e with b ~ N(0, σ² ΛΛᵀ) and e ~ N(0, σ²). Let R be the factor of [Z X y] of the
partition: its lower rows are orthogonal to Z and stay as they are; its first q rows have covariance
σ² (I + R_z ΛΛᵀ R_zᵀ) = σ² K Kᵀ, and divided by K they are rows like any others. So β and σ follow from one small least
squares for every Λ, and what is left is a function of Λ with a simple gradient: with T = K⁻¹ R and residuals r,
the derivative of the deviance by ΛΛᵀ is G = Σ (TᵀT − N C Nᵀ − s sᵀ/σ²), N = T_zᵀT_x, s = T_zᵀr, C = (Σ XᵀV⁻¹X)⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def triangles(matrices: FloatArray) -> FloatArray:
    """Return R of the QR decomposition of a matrix, or of each of several."""
    return np.asarray(np.linalg.qr(matrices, mode="r"))


@dataclass(frozen=True, eq=False)
class Profile:
    """The deviance at one Λ, with everything that follows for β and σ.

    Attributes
    ----------
    root
        Λ, lower triangular, shape (q, q).
    scaled
        T of every partition, shape (k, q, q + p + 1): random columns, features, target.
    coefficients
        Of the features, shape (p,).
    inverse
        Factor of C: C = inverse inverseᵀ.
    residual_sum
        Σ rᵀV⁻¹r at these coefficients.
    log_determinant
        log |V|, and with restricted likelihood log |XᵀV⁻¹X| beside it.
    freedom
        n − p with restricted likelihood, else n.
    is_restricted
        Whether the likelihood is that of what is left after the features (REML).
    """

    root: FloatArray
    scaled: FloatArray
    coefficients: FloatArray
    inverse: FloatArray
    residual_sum: float
    log_determinant: float
    freedom: int
    is_restricted: bool

    @property
    def variance(self) -> float:
        """The residual variance σ² that fits best."""
        return self.residual_sum / self.freedom

    @property
    def deviance(self) -> float:
        """Minus twice the log-likelihood, in the coordinates of the factors."""
        return self.log_determinant + self.freedom * (1 + float(np.log(2 * np.pi * self.variance)))

    @cached_property
    def products(self) -> FloatArray:
        """Products N = ZᵀV⁻¹X of every partition, shape (k, q, p)."""
        size = len(self.root)
        return np.asarray(np.swapaxes(self.scaled[:, :, :size], 1, 2) @ self.scaled[:, :, size:-1])

    @cached_property
    def scores(self) -> FloatArray:
        """Scores s = ZᵀV⁻¹r of every partition, shape (k, q)."""
        size = len(self.root)
        residuals = self.scaled[:, :, -1] - self.scaled[:, :, size:-1] @ self.coefficients
        return np.asarray(np.einsum("kij,ki->kj", self.scaled[:, :, :size], residuals))

    @cached_property
    def determinant_slope(self) -> FloatArray:
        """Derivative of the log determinants by ΛΛᵀ."""
        random = self.scaled[:, :, : len(self.root)]
        slope = np.einsum("kij,kil->jl", random, random)
        if self.is_restricted:
            explained = self.products @ self.inverse
            slope = slope - np.einsum("kij,klj->il", explained, explained)
        return np.asarray(slope)

    @cached_property
    def residual_slope(self) -> FloatArray:
        """Derivative of the residual sum by ΛΛᵀ."""
        return np.asarray(-np.einsum("ki,kj->ij", self.scores, self.scores))

    @property
    def slope(self) -> FloatArray:
        """G: derivative of the deviance by ΛΛᵀ. At the best ΛΛᵀ it has no negative eigenvalue, and G Λ = 0."""
        return self.determinant_slope + self.residual_slope / self.variance


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The factors of k partitions, in coordinates in which the random columns have Σ ZᵀZ = k I.

    Attributes
    ----------
    upper
        First q rows of the factors of [Z X y], shape (k, q, q + p + 1).
    lower
        Factor of all other rows over [X y], shape (at most p + 1, p + 1).
    row_count
        n.
    is_restricted
        Whether the likelihood is restricted (REML).
    """

    upper: FloatArray
    lower: FloatArray
    row_count: int
    is_restricted: bool

    @property
    def size(self) -> int:
        """Number of random columns."""
        return int(self.upper.shape[1])

    def __call__(self, root: FloatArray) -> Profile:
        """Return the profile at Λ."""
        size, width = self.size, self.upper.shape[2] - self.size - 1
        spread = np.concatenate(
            [
                np.swapaxes(self.upper[:, :, :size] @ root, 1, 2),
                np.broadcast_to(np.eye(size), self.upper[:, :, :size].shape),
            ],
            axis=1,
        )
        factors = triangles(spread)
        scaled: FloatArray = np.asarray(np.linalg.solve(np.swapaxes(factors, 1, 2), self.upper), dtype=np.float64)
        rows = np.concatenate([self.lower, scaled[:, :, size:].reshape(-1, width + 1)])
        triangle = triangles(rows)
        inverse: FloatArray = np.asarray(np.linalg.inv(triangle[:width, :width]), dtype=np.float64)
        logarithms = 2 * float(np.log(np.abs(np.diagonal(factors, axis1=1, axis2=2))).sum())
        if self.is_restricted:
            logarithms += 2 * float(np.log(np.abs(np.diagonal(triangle)[:width])).sum())
        return Profile(
            root=root,
            scaled=scaled,
            coefficients=inverse @ triangle[:width, width],
            inverse=inverse,
            residual_sum=float(triangle[width, width] ** 2),
            log_determinant=logarithms,
            freedom=self.row_count - (width if self.is_restricted else 0),
            is_restricted=self.is_restricted,
        )


def make_likelihood(
    random: FloatArray, features: FloatArray, target: FloatArray, row_count: int, is_restricted: bool
) -> Likelihood:
    """Return the likelihood of factors Z (k, rows, q), X (k, rows, p) and y (k, rows)."""
    size = random.shape[2]
    factors = triangles(np.concatenate([random, features, target[:, :, None]], axis=2))
    rest = factors[:, size:, size:].reshape(-1, features.shape[2] + 1)
    return Likelihood(factors[:, :size], triangles(rest), row_count, is_restricted)
