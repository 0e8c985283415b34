"""Sums and products of arrays without error: what doubles hold of them, and what rounding took off."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def two_sum(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a sum and what rounding took off it."""
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def two_product(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a product and what rounding took off it, by Dekker's splitting; values must be below 1e290."""
    product = first * second
    first_high, second_high = _upper_half(first), _upper_half(second)
    first_low, second_low = first - first_high, second - second_high
    rest = (first_high * second_high - product) + first_high * second_low + first_low * second_high
    return product, rest + first_low * second_low


def _upper_half(values: FloatArray) -> FloatArray:
    large = values * 134217729.0  # 2²⁷ + 1
    return np.asarray(large - (large - values))
