"""One penalised regression on a factor, for many penalties: ridge regression, the lasso, elastic nets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.questions.descent import minimise

FloatArray = NDArray[np.float64]

#: A column that varies by less than this part of its spread in all rows is constant but for rounding.
_NOTHING = 1e-12
#: With a larger condition number, penalty included, rounding of the factor is seen in coefficients.
_LARGEST_CONDITION = 1e6


@dataclass(frozen=True, eq=False)
class Penalised:
    """A penalised regression on a factor in the coordinates of a panel.

    Attributes
    ----------
    factor
        Of the features (the ones first, if free is 1) and the target.
    free
        1 with an intercept.
    weight
        Weight of the rows behind it.
    units
        Of the features without the ones, and of the target.
    """

    factor: FloatArray
    free: int
    weight: float
    units: FloatArray

    @property
    def inner(self) -> FloatArray:
        """The factor of the columns around their means; of a column that does not vary, only rounding is left."""
        inner = self.factor[self.free :, self.free :].copy()
        # A column that varies inside one fold only is constant outside it: a penalty makes its coefficient zero.
        inner[:, np.linalg.norm(inner, axis=0) <= _NOTHING * np.sqrt(self.weight)] = 0.0
        return inner

    def largest_alpha(self, l1_ratio: float) -> float:
        """Return the penalty from which on all coefficients are zero; for ridge, that of the largest curvature."""
        root, right = self.inner[:, :-1], self.inner[:, -1]
        if l1_ratio:
            pull = np.abs(root.T @ right) * self.units[:-1] * self.units[-1]
            return float(pull.max(initial=0.0) / (self.weight * l1_ratio))
        return float(np.linalg.norm(root * self.units[:-1], 2) ** 2)

    def solve(self, alphas: FloatArray, l1_ratio: float) -> FloatArray:
        """Return coefficients in these coordinates, the intercept first if there is one, shape (alphas, columns)."""
        slopes = self._lasso(alphas, l1_ratio) if l1_ratio else self._ridge(alphas)
        if not self.free:
            return slopes
        first = self.factor[0]
        levels = (first[-1] - slopes @ first[1:-1]) / first[0]
        return np.column_stack([levels, slopes])

    def _ridge(self, alphas: FloatArray) -> FloatArray:
        """Solve by a factor with the penalty as further rows, all penalties at once."""
        root, right = self.inner[:, :-1], self.inner[:, -1]
        height, width = root.shape
        rows = np.zeros((len(alphas), height + width, width + 1))
        rows[:, :height, :width], rows[:, :height, width] = root, right
        rows[:, height:, :width] = np.sqrt(alphas)[:, None, None] * np.diag(1.0 / self.units[:-1])
        factors = np.asarray(np.linalg.qr(rows, mode="r"))[:, :width]
        least = factors[np.argmin(alphas), :, :width]
        # In units of the columns' own lengths: a column in another unit does no harm.
        if np.linalg.cond(least / np.linalg.norm(least, axis=0)) > _LARGEST_CONDITION:
            raise InputError(
                f"Columns nearly determine one another, and rounding hides the path at the penalty {alphas.min():.3g}: "
                "leave out the smallest alphas, or ask for fit(alpha=...) at each."
            )
        return np.asarray(np.linalg.solve(factors[:, :, :width], factors[:, :, width:])[..., 0])

    def _lasso(self, alphas: FloatArray, l1_ratio: float) -> FloatArray:
        root, right = np.ascontiguousarray(self.inner[:, :-1]), np.ascontiguousarray(self.inner[:, -1])
        columns, target = self.units[:-1], self.units[-1]
        found, current = [], np.zeros(root.shape[1])
        for alpha in alphas:
            absolute = self.weight * alpha * l1_ratio / (target * columns)
            squares = self.weight * alpha * (1 - l1_ratio) / columns**2
            current = minimise(root, right, absolute, squares, current)
            found.append(current)
        return np.array(found)
