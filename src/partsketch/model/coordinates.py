"""Coordinates in which a regression is solved: columns measured from a centre, in units of about their spread.

Where a column lies and in which unit it is written must not change the coefficients of the others, nor what a singular
fit chooses, nor what a certificate says. So everything between the summaries and the model works in these coordinates;
units are powers of two, which lose no digit. Predictions are made around the centre too: the intercept of a column of
time stamps is a difference of huge numbers, the value at the centre is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from partsketch.summaries.summary import Summary, common_centre

FloatArray = NDArray[np.float64]

#: Targets of other sizes than these are measured in units of their spread; all others as they are.
_SMALLEST, _LARGEST = 1e-60, 1e60


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Centre and unit of the columns of a regression: features (the intercept first, if there is one), then targets.

    Attributes
    ----------
    features
        How many of the columns are features.
    free
        1 with an intercept, else 0.
    centre
        What is taken off each column.
    unit
        What each column is then divided by, a power of two.
    """

    features: int
    free: int
    centre: FloatArray
    unit: FloatArray

    @property
    def locations(self) -> FloatArray:
        """What was taken off the features, in their units."""
        return np.asarray((self.centre / self.unit)[: self.features])

    def coefficients(self, values: FloatArray) -> FloatArray:
        """Return coefficients of the columns as they are from those in these coordinates, shape (features, targets)."""
        units, target_units = self.unit[: self.features, None], self.unit[self.features :]
        raw = values / units * target_units
        if self.free:
            raw = raw.copy()
            raw[0] = self.levels(values) - self.centre[1 : self.features] @ raw[1:]
        return np.asarray(raw)

    def levels(self, values: FloatArray) -> FloatArray:
        """Return what is predicted of each target at the centre of the features; zeros without an intercept."""
        if not self.free:
            return np.zeros(values.shape[1])
        return np.asarray(values[0] * self.unit[self.features :] + self.centre[self.features :])

    def standard_errors(self, covariance: FloatArray, target: int) -> FloatArray:
        """Return standard errors of the coefficients as they are, from a covariance in these coordinates."""
        errors = np.sqrt(np.diagonal(covariance)) / self.unit[: self.features]
        if self.free and self.locations.any():
            weights = np.concatenate([[1.0], -self.locations[1:]])
            errors[0] = np.sqrt(max(float(weights @ covariance @ weights), 0.0))
        return np.asarray(errors * self.unit[self.features + target])

    def scaling(self, target: int) -> FloatArray:
        """Return T for the value at the centre in place of the intercept: units alone."""
        return np.asarray(np.diag(1.0 / self.unit[: self.features]) * self.unit[self.features + target])

    def transformation(self, target: int) -> FloatArray:
        """Return T with a = T a' + constant for the coefficients of one target: for covariances."""
        matrix = np.diag(1.0 / self.unit[: self.features])
        if self.free:
            matrix[0, 1:] = -self.locations[1:]
        return np.asarray(matrix * self.unit[self.features + target])


def standardise(
    summaries: Sequence[Summary], features: tuple[str, ...], targets: tuple[str, ...], free: int
) -> tuple[Coordinates, tuple[Summary, ...]]:
    """Return coordinates for a regression, and the summaries of its columns in them."""
    columns = features + targets
    chosen = [summary.columns.index(name) for summary in summaries[:1] for name in columns]
    # Without a column of ones in the regression nothing can be taken off.
    centre = common_centre(summaries) if free else np.zeros(len(summaries[0].columns))
    rows = [summary.rows.moved(-centre) for summary in summaries]
    picked = [type(part)(part.high[:, chosen], part.low[:, chosen]) for part in rows]
    unit = spread_units([part.high for part in picked], sum(summary.weight_sum for summary in summaries), free)
    spread = unit[len(features) :]
    unit[len(features) :] = np.where((spread > _LARGEST) | (spread < _SMALLEST), spread, 1.0)
    coordinates = Coordinates(len(features), free, centre[chosen], unit)
    return coordinates, tuple(
        replace(summary, matrix=part.high / unit, low=part.low / unit, centre=np.zeros(len(columns)), columns=columns)
        for summary, part in zip(summaries, picked, strict=True)
    )


def spread_units(matrices: Sequence[FloatArray], weight: float, free: int) -> FloatArray:
    """Return powers of two close to the spreads of the columns in all matrices together; one for none."""
    stacked = np.vstack(matrices)
    largest = np.abs(stacked).max(axis=0, initial=0.0)
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)
    scaled = np.ldexp(stacked, -exponents)
    squares = np.einsum("ij,ij->j", scaled, scaled)
    count = float(weight)
    if free:
        ones = scaled[:, 0]
        around = scaled - ones[:, None] * ((ones @ scaled) / max(squares[0], 1e-300))
        left = np.einsum("ij,ij->j", around, around)
        # What a constant column leaves is rounding.
        squares = np.where(left > 1e-24 * squares, left, squares)
        count = squares[0] * 4.0 ** float(exponents[0])
    with np.errstate(all="ignore"):
        spread = 0.5 * np.log2(squares / max(count, 1e-300))
    # Spreads of small whole numbers are roots of fractions, half-way between two powers often: borders lie elsewhere.
    powers = np.where(np.isfinite(spread), np.floor(spread + 0.3) + exponents, 0.0)
    unit = np.ldexp(1.0, np.clip(powers, -1000, 1000).astype(np.int64))
    unit[:free] = 1.0
    return np.asarray(unit)
