"""Standard errors and intervals of predictions, block by block.

Around the centre of the features nothing cancels: the variance of a prediction is that of the value there, plus what
the slopes add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from partsketch.common.errors import InputError
from partsketch.model.held import lengths, no_covariance

if TYPE_CHECKING:
    from partsketch.model.model import Model
    from partsketch.sources.base import Source

FloatArray = NDArray[np.float64]

_BLOCK_ROWS = 65536

#: What rounding may be of a standard error: the digits that are shown hold.
_LARGEST_ROUNDING = 1e-6


def checked(row_numbers: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Return predictions of some rows, the first axis, unless some are beyond doubles."""
    if not np.isfinite(values).all():
        row = row_numbers[np.argwhere(~np.isfinite(values))[0, 0]]
        raise InputError(
            f"What is predicted of row {row} is larger than any number: correct its values, or leave the row out."
        )
    return values


def blocks_with_errors(model: Model, source: Source) -> Iterator[tuple[NDArray[np.int64], FloatArray, FloatArray]]:
    """Yield row numbers, predictions and their standard errors, both rows × targets."""
    if model.record.options.get("absorb") is not None:
        raise InputError(
            "How sure the intercepts of absorbed levels are is not known, and so no interval of a prediction: encode "
            "the column instead (encode=True)."
        )
    spreads = [_spread(model, number) for number in range(len(model.target_names))]
    free = len(model.column_names) - len(model.feature_names)
    buffer = np.empty((len(model.feature_names), _BLOCK_ROWS))
    for block in source.read(0, None, _BLOCK_ROWS):
        columns = buffer[:, : len(block)]
        block.copy_into(columns, 0, len(block))
        around = np.ones((len(block), free + len(columns)))
        around[:, free:] = (columns - model.centre[:, None]).T if free else columns.T
        with np.errstate(over="ignore", invalid="ignore"):
            values = model.predicted(columns)
            errors = np.column_stack([spread(around, block.row_numbers) for spread in spreads])
        checked(block.row_numbers, np.hstack([values, errors]))
        yield block.row_numbers, values, errors


def _spread(model: Model, number: int) -> Callable[[FloatArray, NDArray[np.int64]], FloatArray]:
    """Return what makes standard errors of rows around the centre, or say why there are none."""
    inference = model.inferences[number]
    inference.errors_of("model")
    if inference.wild is not None:
        raise InputError("The wild bootstrap has no intervals of predictions: fit with vcov='CRV1'.")
    measured = model.column_names != model.feature_names and inference.level_covariance is None
    if inference.covariance is None or measured:
        raise no_covariance(len(inference.errors_of("model")[0]))
    if inference.covariance_root is not None:
        return partial(_by_root, inference.covariance_root)
    matrix = inference.covariance.copy()
    if inference.level_covariance is not None:
        matrix[0] = matrix[:, 0] = inference.level_covariance
    return partial(_by_covariance, matrix)


def _by_covariance(covariance: FloatArray, around: FloatArray, row_numbers: NDArray[np.int64]) -> FloatArray:
    squares = np.maximum(np.einsum("ij,ij->i", around @ covariance, around), 0.0)
    # No term is larger than the product of two such sums, and each is rounded to a double.
    added = np.square(np.abs(around) @ np.sqrt(np.maximum(np.diagonal(covariance), 0.0)))
    _require_digits(added, squares, row_numbers)
    return np.asarray(np.sqrt(squares))


def _by_root(root: FloatArray, around: FloatArray, row_numbers: NDArray[np.int64]) -> FloatArray:
    """Return the same from a root, which takes no square of what nearly cancels."""
    errors = lengths(root @ around.T)
    _require_digits(np.abs(around) @ lengths(root), errors, row_numbers)
    return errors


def _require_digits(added: FloatArray, left: FloatArray, row_numbers: NDArray[np.int64]) -> None:
    """Refuse rows of whose errors rounding leaves too little: those of nearly dependent columns cancel."""
    hidden = float(np.finfo(np.float64).eps) * added > _LARGEST_ROUNDING * left
    if hidden.any():
        raise InputError(
            "There are no intervals, for rounding hides how sure the prediction of row "
            f"{row_numbers[np.argmax(hidden)]} is: where columns nearly determine one another give "
            "differences of them, or leave some out; where robust errors see no noise in a coefficient ask for "
            "vcov='iid'. Predictions alone are not touched by it."
        )


def blocks_with_intervals(
    model: Model, source: Source, interval: str, level: float
) -> Iterator[tuple[NDArray[np.int64], FloatArray, FloatArray]]:
    """Yield row numbers, fit, lower, upper, shape (rows, targets, 3), and standard errors of the mean of such rows."""
    from scipy.special import stdtrit

    if interval not in ("confidence", "prediction"):
        raise InputError(f"interval is {interval!r}: choose 'confidence' or 'prediction'.")
    if not 0 < level < 1:
        raise InputError(f"level is {level}: give a number between 0 and 1, such as 0.95.")
    freedoms = [inference.errors_of("model")[1] for inference in model.inferences]
    quantiles = np.array([float(stdtrit(freedom, 0.5 + level / 2)) for freedom in freedoms])
    noise = np.zeros(len(model.target_names))
    if interval == "prediction":
        noise = np.array([_noise(model, number) for number in range(len(model.target_names))])
    for row_numbers, values, errors in blocks_with_errors(model, source):
        with np.errstate(over="ignore"):
            reach = quantiles * np.sqrt(errors**2 + noise)
            found = np.stack([values, values - reach, values + reach], axis=2)
        yield row_numbers, checked(row_numbers, found), errors


def _noise(model: Model, number: int) -> float:
    variance = model.inferences[number].noise_variance
    if variance is None:
        raise InputError("The variance of the noise is not known, and no prediction interval: ask for 'confidence'.")
    return variance


def intervals_of_predictions(model: Model, source: Source, interval: str, level: float) -> FloatArray:
    """Return fit, lower and upper of all rows: (rows, 3), or (rows, targets, 3) for several."""
    parts = [values for _, values, _ in blocks_with_intervals(model, source, interval, level)]
    found = np.concatenate(parts) if parts else np.empty((0, len(model.target_names), 3))
    return found[:, 0] if len(model.target_names) == 1 else found


def errors_of_predictions(model: Model, source: Source) -> FloatArray:
    """Return standard errors of the mean of all rows."""
    parts = [errors for _, _, errors in blocks_with_errors(model, source)]
    found = np.concatenate(parts) if parts else np.empty((0, len(model.target_names)))
    return found[:, 0] if len(model.target_names) == 1 else found
