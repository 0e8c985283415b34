"""What a Gaussian sketch tells of one row: how far its law is from that of the sketch without the row."""

from __future__ import annotations

import math

from partsketch.common.errors import InputError
from partsketch.theory.arguments import require_count


def row_removal_divergence(leverage: float, sketch_size: int, order: float = 2.0) -> float:
    """Return the Rényi divergence between a Gaussian sketch and the sketch of all rows but one.

    Rows of the sketch are normal with covariance AᵀA/m; without a row a it is AᵀA/m less aaᵀ/m, which is smaller by the
    leverage h = aᵀ(AᵀA)⁻¹a in one direction and the same in all others, so that

        D_α = m/(2(α − 1)) [α log(1 − h) − log(1 − αh)],    αh < 1,

    and infinite otherwise: a row of high leverage is not hidden, however few rows the sketch has.

    Parameters
    ----------
    leverage : float
        h of the row among all columns, targets included, from 0 to 1.
    sketch_size : int
        m.
    order : float
        α, above 1.

    Returns
    -------
    float
        D_α in nats.
    """
    require_count("sketch_size", sketch_size)
    if not 0 <= leverage <= 1:
        raise InputError(f"leverage is {leverage}: give a number from 0 to 1.")
    if not 1 < order < math.inf:
        raise InputError(f"order is {order}: give a number above 1.")
    if order * leverage >= 1:
        return math.inf
    bracket = order * math.log1p(-leverage) - math.log1p(-order * leverage)
    return max(sketch_size / (2 * (order - 1)) * bracket, 0.0)
