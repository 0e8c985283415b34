"""Coordinates in which a regression is solved: columns measured from a centre, in units of about their spread.

Where a column lies and in which unit it is written must not change the coefficients of the others, nor what a singular
fit chooses, nor what a certificate says. So everything between the summaries and the model works in these coordinates;
units are powers of two, which lose no digit. Predictions are made around the centre too: the intercept of a column of
time stamps is a difference of huge numbers, the value at the centre is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.solve_many import tall_factors
from partsketch.model.scaled_summary import Scaled, divided
from partsketch.model.spread import spread_units
from partsketch.sketches.base import get_sketch, law_of_kind
from partsketch.summaries.summary import Summary, common_centre

if TYPE_CHECKING:
    from partsketch.common.linalg.double_double import DoubleDouble

FloatArray = NDArray[np.float64]

#: Numbers of summaries that are looked at together: 32 MB. All of so few are kept, in their units.
_NUMBERS_AT_ONCE = 2**22
#: Weights whose root may bring columns below what doubles hold with all digits, and the smallest size that is not.
TINY_WEIGHT, SMALLEST_SIZE = 1e-10, 2.0**-1020
#: Columns in this unit may be that small: there is none below.
_TINY_UNIT = 2.0**-1000
#: Share of a variance that rounding may change at most: errors are then known to half a percent.
LARGEST_ROUNDING = 1e-2
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

    @cached_property
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

    def inverse_root(self, root: FloatArray) -> FloatArray:
        """Return the root of the inverse Gram matrix of the features as they are, from that in these coordinates."""
        raw = root / self.unit[: self.features, None]
        if self.free and self.locations.any():
            raw[0] = root[0] - self.locations[1:] @ root[1:]
        return np.asarray(raw)

    def standard_errors(self, covariance: FloatArray, target: int, root: FloatArray | None = None) -> FloatArray:
        """Return standard errors of the coefficients as they are, from a covariance in these coordinates.

        With H, H Hᵀ the covariance, that of the intercept keeps its digits where errors of slopes cancel in it.
        """
        errors = np.sqrt(np.diagonal(covariance)) / self.unit[: self.features]
        if self.free and self.locations.any():
            errors[0] = np.linalg.norm(self._intercept(root)) if root is not None else self._intercept_error(covariance)
        return np.asarray(errors * self.unit[self.features + target])

    def _intercept(self, root: FloatArray) -> FloatArray:
        """Return the line of the intercept, from those of the value at the centre and the slopes."""
        return np.asarray(root[0] - self.locations[1:] @ root[1:])

    def _intercept_error(self, covariance: FloatArray) -> float:
        weights = np.concatenate([[1.0], -self.locations[1:]])
        with np.errstate(over="ignore", invalid="ignore"):
            square = weights @ covariance @ weights
            # No term is larger than the product of two such sums, and each is rounded to a double.
            added = np.square(np.abs(weights) @ np.sqrt(np.maximum(np.diagonal(covariance), 0.0)))
        if not np.isfinite(added):
            return float(np.inf)
        if np.finfo(np.float64).eps * added > LARGEST_ROUNDING * square:
            raise InputError(
                "columns nearly determine one another, and rounding hides how sure the intercept is: take a constant "
                "off columns that lie far from zero, or leave some out"
            )
        return float(np.sqrt(square))

    def errors_from_root(self, root: FloatArray, target: int) -> FloatArray:
        """Return the same from H alone: of many columns the product takes longer than a fit."""
        errors = np.sqrt(np.einsum("ij,ij->i", root, root)) / self.unit[: self.features]
        if self.free and self.locations.any():
            errors[0] = np.linalg.norm(self._intercept(root))
        return np.asarray(errors * self.unit[self.features + target])

    def scaling(self, target: int) -> FloatArray:
        """Return T for the value at the centre in place of the intercept: units alone."""
        return np.asarray(np.diag(1.0 / self.unit[: self.features]) * self.unit[self.features + target])

    def covariance(self, matrix: FloatArray, target: int, root: FloatArray | None = None) -> FloatArray:
        """Return T C Tᵀ for the T of `transformation`, which is diagonal but for its first row; H as above."""
        units = self.unit[self.features + target] / self.unit[: self.features]
        raw = matrix * units[:, None] * units
        if self.free and self.locations.any() and root is not None:
            line = self._intercept(root) * self.unit[self.features + target]
            raw[0] = raw[:, 0] = (root @ line) * units
            raw[0, 0] = line @ line
        elif self.free and self.locations.any():
            self._intercept_error(matrix)
            lead = np.concatenate([[1.0], -self.locations[1:]]) * self.unit[self.features + target]
            across = matrix @ lead
            raw[0] = raw[:, 0] = across * units
            raw[0, 0] = lead @ across
        return np.asarray(raw)

    def transformation(self, target: int) -> FloatArray:
        """Return T with a = T a' + constant for the coefficients of one target: for covariances."""
        matrix = np.diag(1.0 / self.unit[: self.features])
        if self.free:
            matrix[0, 1:] = -self.locations[1:]
        return np.asarray(matrix * self.unit[self.features + target])


def standardise(
    summaries: Sequence[Summary], features: tuple[str, ...], targets: tuple[str, ...], free: int
) -> tuple[Coordinates, Sequence[Summary]]:
    """Return coordinates for a regression, and the summaries of its columns in them."""
    columns = features + targets
    chosen = summaries[0].places(columns)
    # Without a column of ones in the regression nothing can be taken off.
    centre = common_centre(summaries) if free else np.zeros(len(summaries[0].columns))
    picked = _Picked(summaries, chosen, centre)
    weight = sum(summary.weight_sum for summary in summaries)
    if not np.isfinite(weight):
        raise InputError(
            "The weights add up to more than a double holds: divide all by a constant, which changes no coefficient."
        )
    rows = sum(summary.row_count for summary in summaries)
    unit = spread_units(picked.stacks, weight, free)
    if weight < TINY_WEIGHT * rows:
        _require_digits(columns, picked, rows, " times the roots of the weights", ", or all weights,")
    elif unit.min(initial=1.0) <= _TINY_UNIT:
        _require_digits(columns, picked, rows)
    spread = unit[len(features) :]
    unit[len(features) :] = np.where((spread > _LARGEST) | (spread < _SMALLEST), spread, 1.0)
    coordinates = Coordinates(len(features), free, centre[chosen], unit)
    standard = _Standard(summaries, features, targets, picked, unit)
    return coordinates, tuple(standard) if picked.are_few else standard


def _require_digits(columns: tuple[str, ...], picked: _Picked, rows: int, product: str = "", weights: str = "") -> None:
    """Refuse columns that lost digits: they are tiny, or were multiplied by the roots of tiny weights."""
    largest = np.max([np.abs(stack).max(axis=0, initial=0.0) for stack in picked.stacks()], axis=0)
    for name, size in zip(columns, largest / np.sqrt(rows), strict=True):
        if 0 < size < SMALLEST_SIZE:
            raise InputError(
                f"Column {name!r}{product} is below what doubles hold with all digits: multiply the column{weights} by "
                "a constant."
            )


class _Picked:
    """The chosen columns of summaries, less a centre: of thousands of summaries only some at a time."""

    def __init__(self, summaries: Sequence[Summary], chosen: list[int], centre: FloatArray) -> None:
        self._summaries, self._chosen, self._centre = summaries, chosen, centre
        self._are_all = chosen == list(range(len(summaries[0].columns)))
        at_once = max(1, _NUMBERS_AT_ONCE // max(1, summaries[0].matrix.size))
        self._groups = [summaries[i : i + at_once] for i in range(0, len(summaries), at_once)]
        self._kept = self._pick(summaries) if len(self._groups) == 1 else None
        #: Factors of those that are kept, where they are smaller by far: made once, for units and for solving.
        self.triangles: list[FloatArray] | None = None
        if self._kept is not None and all(_is_tall(part) for part in self._kept):
            self.triangles = tall_factors([part.high for part in self._kept])
        self._stack: FloatArray | None = None
        if self._kept is not None:
            self._stack = np.vstack(self.triangles) if self.triangles is not None else _stacked(self._kept)

    def _pick(self, summaries: Sequence[Summary]) -> list[DoubleDouble]:
        return [self._picked(summary) for summary in summaries]

    def _picked(self, summary: Summary) -> DoubleDouble:
        from partsketch.common.linalg.double_double import DoubleDouble

        if summary.low is None and not self._centre.any():
            # Sketches by the hundred: nothing is copied that is not needed, and zeros take no memory.
            high = summary.matrix if self._are_all else summary.matrix[:, self._chosen]
            return DoubleDouble.plain(high)
        part = summary.rows.moved(-self._centre)
        if summary.low is None and get_sketch(summary.kind).is_random and law_of_kind(summary.kind).keeps_rows:
            # Of a column that is constant in a sample nothing is left but the rounding of its products. Other sketches
            # add rows up: what is left of theirs may be as small, and true.
            left = np.abs(part.high).max(axis=0, initial=0.0)
            size = np.abs(summary.matrix[:, 0]).max(initial=0.0) * np.abs(self._centre)
            part = part.scaled(np.where((left <= 2 * np.spacing(size)) & (size > 0), 0.0, 1.0))
        return DoubleDouble(part.high[:, self._chosen], part.low[:, self._chosen])

    @property
    def are_few(self) -> bool:
        """Whether all of them are kept."""
        return self._kept is not None

    def __getitem__(self, number: int) -> DoubleDouble:
        return self._pick(self._summaries[number : number + 1])[0] if self._kept is None else self._kept[number]

    def stacks(self) -> Iterator[FloatArray]:
        """Yield the rows of all summaries, or others with their sums of products, many of them one below the other."""
        for group in self._groups:
            yield _stacked(self._pick(group)) if self._stack is None else self._stack


class _Standard(Sequence[Summary]):
    """Summaries in units of their columns, made when they are looked at: thousands of them would be a second copy."""

    def __init__(
        self,
        summaries: Sequence[Summary],
        features: tuple[str, ...],
        targets: tuple[str, ...],
        picked: _Picked,
        unit: FloatArray,
    ) -> None:
        self._summaries, self._columns, self._picked, self._unit = summaries, features + targets, picked, unit
        self._features = set(features)
        self._target_units = dict(zip(targets, unit[len(features) :].tolist(), strict=True))

    def _summary(self, number: int) -> Summary:
        """Return a summary whose noise is in units of its targets."""
        summary = self._summaries[number]
        if not summary.about.noise:
            return summary
        about = summary.about.with_noise_in(self._target_units, set(summary.columns), self._features)
        return summary.told(summary.parts, about)

    def __len__(self) -> int:
        return len(self._summaries)

    @overload
    def __getitem__(self, number: int) -> Summary: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[Summary]: ...

    def __getitem__(self, number: int | slice) -> Summary | Sequence[Summary]:
        if isinstance(number, slice):
            return tuple(self[i] for i in range(*number.indices(len(self))))
        part, unit = self._picked[number], self._unit
        if self._picked.triangles is not None:
            triangle = self._picked.triangles[number]
            return Scaled.made(self._summary(number), self._columns, part.high, triangle, unit)
        return replace(
            self._summary(number),
            matrix=divided(part.high, unit),
            low=part.low / unit if part.low.strides[0] else None,
            centre=np.zeros(len(self._columns)),
            columns=self._columns,
        )


def _is_tall(part: DoubleDouble) -> bool:
    """Tell whether doubles alone hold a matrix, and it has far more rows than columns."""
    return not part.low.strides[0] and part.high.shape[0] > 2 * part.high.shape[1]


def _stacked(parts: Sequence[DoubleDouble]) -> FloatArray:
    return parts[0].high if len(parts) == 1 else np.vstack([part.high for part in parts])
