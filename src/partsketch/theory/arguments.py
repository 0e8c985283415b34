"""Checks of arguments that several formulas share: each refusal is one sentence that says what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partsketch.common.errors import InputError

FloatArray = NDArray[np.float64]


def require_count(name: str, value: int, minimum: int = 1) -> None:
    """Refuse a count below its minimum, and what is not a count."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{name} is {value}: give a whole number, at least {minimum}.")
    if value != int(value) or value < minimum:
        raise InputError(f"{name} must be an integer of at least {minimum}, not {value}: pass a larger {name}.")


def require_non_negative(name: str, value: float) -> None:
    """Refuse a negative or non-finite number."""
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"{name} must be a finite number of at least 0, not {value}: pass a valid {name}.")


def require_sketch_size(sketch_size: float, rank: int, partition: int | None = None) -> None:
    """Refuse m ≤ r + 1, where the expected excess loss is infinite."""
    if sketch_size <= rank + 1:
        where = "" if partition is None else f" of partition {partition}"
        raise InputError(
            f"sketch_size{where} is {sketch_size:g}, but the expected excess loss is finite only for sketch_size > "
            f"rank + 1 = {rank + 1}: use a sketch_size of at least {rank + 2}, better {rank + 8} or more."
        )


def weights_for(count: int, weights: ArrayLike | None) -> FloatArray:
    """Averaging weights: equal when none are given, else checked to be one per partition and to sum to one."""
    if weights is None:
        return np.full(count, 1.0 / count)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (count,):
        raise InputError(f"weights has shape {array.shape} for {count} partitions: pass one weight per partition.")
    if not np.all(np.isfinite(array)) or abs(float(array.sum()) - 1.0) > 1e-9:
        raise InputError(f"weights sum to {array.sum():.6g}: divide them by their sum so that they sum to one.")
    return array


def sizes_for(count: int, sketch_size: int | Sequence[int] | NDArray[np.int64]) -> FloatArray:
    """One sketch size per partition, from a single number or a sequence."""
    array = np.asarray(sketch_size, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(count, float(array))
    if array.shape != (count,):
        raise InputError(
            f"sketch_size has {array.size} values for {count} partitions: pass one number, or one per partition."
        )
    if np.any(array < 1) or np.any(array != np.floor(array)):
        raise InputError("sketch_size must be a positive integer: pass the number of rows of each sketch.")
    return array
