"""Whether doubles hold variances: squares of standard errors of columns and targets of any size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.common.linalg.blas import triangular_factor
from partsketch.model.coordinates import SMALLEST_SIZE, Coordinates

FloatArray = NDArray[np.float64]

#: With more columns than these the covariance is not kept: it is their square.
MOST_COLUMNS_WITH_COVARIANCE = 1000

#: With a larger condition number the covariance loses more than six digits of some sums.
_SAFE_CONDITION = 1e3

#: Squares above this are known to nine digits, like what is stated of exact fits.
_NINE_DIGITS = 2.0**-1044


def held(square: float, before: float) -> bool:
    """Tell whether a square in other units, which was not zero `before` unless it is now, has its digits."""
    return before == 0 or _NINE_DIGITS <= abs(square) < np.inf


def held_covariance(matrix: FloatArray, errors: FloatArray) -> FloatArray | None:
    """Return the covariance that belongs to standard errors; None where a variance has lost digits, or all of them."""
    squares = np.diagonal(matrix)
    if not np.isfinite(matrix).all() or (squares[errors > 0] < SMALLEST_SIZE).any():
        return None
    return matrix


def product_held(lines: FloatArray) -> FloatArray | None:
    """Return the covariance of which lines are a root, if doubles hold it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return held_covariance(lines.T @ lines, lengths(lines))


def level_held(lines: FloatArray) -> FloatArray | None:
    """Return the first row of that covariance, if doubles hold it."""
    with np.errstate(over="ignore", invalid="ignore"):
        row = lines[:, 0] @ lines
    return row if np.isfinite(row).all() and held(float(row[0]), float(np.abs(lines[:, 0]).max(initial=0.0))) else None


def lengths(lines: FloatArray) -> FloatArray:
    """Return the norms of columns of any size: squares of small ones would be zero."""
    largest = np.abs(lines).max(axis=0, initial=0.0)
    known = (largest > 0) & np.isfinite(largest)
    exponents = np.where(known, np.frexp(np.where(known, largest, 1.0))[1], 0)
    return np.asarray(np.ldexp(np.linalg.norm(np.ldexp(lines, -exponents), axis=0), exponents))


def root_kept(lines: FloatArray, coordinates: Coordinates, condition: float) -> FloatArray | None:
    """Return a root of the covariance of the value at the centre and the slopes, where one is kept; lines are a root.

    Of nearly dependent columns, and of columns far from zero, the covariance has lost digits of some sums of
    coefficients twice over: where it is made of the root these are lost once. Elsewhere it says all.
    """
    far = float(np.abs(coordinates.locations[1:]).max(initial=0.0)) if coordinates.free else 0.0
    few = lines.shape[1] <= MOST_COLUMNS_WITH_COVARIANCE
    if not few or max(condition, far) <= _SAFE_CONDITION or not np.isfinite(lines).all():
        return None
    return triangular_factor(lines) if len(lines) > lines.shape[1] else lines


def no_covariance(columns: int) -> InputError:
    """Return what to say where a covariance was not kept."""
    if columns > MOST_COLUMNS_WITH_COVARIANCE:
        return InputError(
            f"The covariance of more than {MOST_COLUMNS_WITH_COVARIANCE} columns is not kept: fit with fewer features."
        )
    return InputError(
        "The variances of some coefficients are beyond what doubles hold: divide columns, or the target, by constants."
    )
