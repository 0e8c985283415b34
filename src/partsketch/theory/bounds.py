"""The bound that holds with high probability over the sketches (Remark 3.5)."""

from __future__ import annotations

import math

from partsketch.common.errors import InputError
from partsketch.theory.arguments import require_count, require_non_negative
from partsketch.theory.expected_loss import require_divergence


def _deviation(k: int, delta: float) -> float:
    require_count("k", k)
    if not 0 < delta < 1:
        raise InputError(f"delta must lie strictly between 0 and 1, not {delta}: it is the probability of failure.")
    # Apart: their ratio may be beyond what a double holds.
    return math.sqrt(2 * (math.log(2 * k) - math.log(delta)))


def smallest_sketch_size(d: int, k: int, delta: float) -> int:
    """Smallest integer m for which `B'_θ` is finite: √m > √d + √(2 ln(2k/δ)) (condition of Remark 3.5, made strict).

    Parameters
    ----------
    d, k : int
        Columns, partitions.
    delta : float
        Probability of failure, strictly between 0 and 1.

    Returns
    -------
    int
        Sketch size m. The paper allows equality, where its bound is infinite.
    """
    require_count("d", d)
    limit = math.sqrt(d) + _deviation(k, delta)
    size = max(1, math.floor(limit**2) - 1)
    while math.sqrt(size) <= limit:
        size += 1
    return size


def high_probability_excess_loss(
    n: int, d: int, sketch_size: int, k: int, noise_variance: float, divergence: float, delta: float
) -> float:
    """`B'_θ = σ² (Γ D − d)`, a bound on the out-of-sample excess loss of θ̄ (Remark 3.5).

    With probability at least 1 − δ over the sketches it bounds the excess over exact least squares of the squared
    error on fresh targets for the same rows, expected over the noise, with
    `Γ = (√m + √p + t)²/(√m − √d − t)²`, `t = √(2 ln(2k/δ))` and `p = n/k`.

    Parameters
    ----------
    n, d : int
        Rows and columns; every partition has n/k > d rows and full rank.
    sketch_size : int
        Rows m of each sketch; valid for √m > √d + t, see `smallest_sketch_size`.
    k : int
        Number of partitions.
    noise_variance : float
        σ².
    divergence : float
        D, at least d.
    delta : float
        Probability of failure, strictly between 0 and 1.

    Returns
    -------
    float
        B'_θ.
    """
    require_count("d", d)
    require_non_negative("noise_variance", noise_variance)
    require_divergence(divergence, d)
    deviation = _deviation(k, delta)
    if n <= k * d:
        raise InputError(
            f"n = {n} rows in k = {k} partitions leave no more than d = {d} rows each: use more rows or fewer "
            "partitions."
        )
    if math.sqrt(sketch_size) <= math.sqrt(d) + deviation:
        raise InputError(
            f"sketch_size is {sketch_size}, too small for a bound with delta = {delta:g}: use at least "
            f"{smallest_sketch_size(d, k, delta)}, or a larger delta."
        )
    root = math.sqrt(sketch_size)
    factor = ((root + math.sqrt(n / k) + deviation) / (root - math.sqrt(d) - deviation)) ** 2
    return noise_variance * (factor * divergence - d)
