"""Products of matrices whose entries are sums of two doubles."""

from __future__ import annotations

import numpy as np

from partsketch.common.linalg.double_double import DoubleDouble
from partsketch.common.linalg.error_free import two_product, two_sum


def product(first: DoubleDouble, second: DoubleDouble) -> DoubleDouble:
    """Return the product of a tall matrix with a small one, column of the first by row of the second."""
    shape = (first.high.shape[0], second.high.shape[1])
    total, rest = np.zeros(shape), np.zeros(shape)
    for inner in range(first.high.shape[1]):
        left, left_low = first.high[:, inner, None], first.low[:, inner, None]
        right, right_low = second.high[None, inner], second.low[None, inner]
        part, error = two_product(left, right)
        total, lost = two_sum(total, part)
        rest += lost + error + (left * right_low + left_low * right)
    high = total + rest
    return DoubleDouble(high, rest - (high - total))
