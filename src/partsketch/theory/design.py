"""Rows drawn i.i.d. from a centred Gaussian: the expected divergence and the gap between the two averages."""

from __future__ import annotations

from collections.abc import Sequence

from partsketch.common.errors import InputError
from partsketch.theory.arguments import require_count, require_non_negative, require_sketch_size


def _require_enough_rows(n: int, d: int, k: int) -> None:
    require_count("d", d)
    require_count("k", k)
    require_count("n", n)
    if k > 1 and n <= k * (d + 1):
        raise InputError(
            f"n = {n} is not above k(d + 1) = {k * (d + 1)}, where the expected divergence is infinite: use more rows "
            "or fewer partitions."
        )


def gaussian_design_divergence(n: int, d: int, k: int) -> float:
    """`E[D] = d (n − (d+1))/(n − k(d+1))` for i.i.d. Gaussian rows in k even partitions (Remark 3.4).

    Parameters
    ----------
    n, d, k : int
        Rows, columns, partitions; valid for n > k(d + 1).

    Returns
    -------
    float
        Expected divergence over the design.
    """
    _require_enough_rows(n, d, k)
    return d * (n - (d + 1)) / (n - k * (d + 1)) if k > 1 else float(d)


def gaussian_design_divergence_of_sizes(sizes: Sequence[int], d: int) -> float:
    """`E[D] = (d/k²) (k + Σ_{i≠j} n_j / (n_i − d − 1))` for i.i.d. Gaussian rows in partitions of these sizes.

    From `E[G_i⁻¹] = Σ⁻¹/(n_i − d − 1)` and the independence of partitions; for even sizes it is Remark 3.4.

    Parameters
    ----------
    sizes : sequence of int
        Rows of each partition; valid when each exceeds d + 1.
    d : int
        Columns.

    Returns
    -------
    float
        Expected divergence over the design.
    """
    count = len(sizes)
    if count > 1 and min(sizes) <= d + 1:
        raise InputError(f"sizes has a partition of {min(sizes)} rows: each needs more than d + 1 = {d + 1}.")
    total = sum(sizes)
    others = sum((total - size) / (size - d - 1) for size in sizes) if count > 1 else 0.0
    return d * (count + others) / count**2


def gaussian_design_gap(n: int, d: int, sketch_size: int, k: int, noise_variance: float) -> float:
    """`E[B_β − B_θ]` for i.i.d. Gaussian rows, corrected: never positive (Section 3, equation after Remark 3.4).

    `−σ² d (k−1)/(n − k(d+1)) · [n/(k(m−d−1)) + d + 1]`. The paper prints F(k; n, d, m) with its first term multiplied
    by k where B_β divides by k (see `printed_gap_factor`); with the right term θ̄ is, in the mean over such designs,
    never better than β̄, and the gap only widens with k.

    Parameters
    ----------
    n, d, k : int
        Rows, columns, partitions; valid for n > k(d + 1).
    sketch_size : int
        Rows m of each sketch; valid for m > d + 1.
    noise_variance : float
        σ².

    Returns
    -------
    float
        Zero for k = 1, negative otherwise: the loss that partitioning adds, with a minus sign.
    """
    _require_enough_rows(n, d, k)
    require_sketch_size(sketch_size, d)
    require_non_negative("noise_variance", noise_variance)
    if k == 1:
        return 0.0
    bracket = n / (k * (sketch_size - d - 1)) + d + 1
    return -noise_variance * d * (k - 1) / (n - k * (d + 1)) * bracket


def printed_gap_factor(k: int, n: int, d: int, sketch_size: int) -> float:
    """F(k; n, d, m) exactly as the paper prints it, for comparison only: it is wrong for k > 1 (see docs/errata.md).

    The paper states `E[B_β − B_θ] = σ² d (F + 1)`; use `gaussian_design_gap` for the right value.

    Parameters
    ----------
    k, n, d : int
        Partitions, rows, columns; valid for n > k(d + 1).
    sketch_size : int
        Rows m of each sketch; valid for m > d + 1.

    Returns
    -------
    float
        `(n−d)/(m−d−1) · k − (1/k)(n−kd)/(m−d−1) · ρ − ρ` with `ρ = (n−(d+1))/(n−k(d+1))`.
    """
    _require_enough_rows(n, d, k)
    require_sketch_size(sketch_size, d)
    ratio = (n - (d + 1)) / (n - k * (d + 1)) if k > 1 else 1.0
    freedom = sketch_size - d - 1
    return (n - d) / freedom * k - (n - k * d) / (k * freedom) * ratio - ratio


def odd_partition_divergence(d: int, k: int, scale: float) -> float:
    """D of k partitions that are alike, except that all rows of one are `scale` times as large (Section 2).

    `d (k − 1 + s²)(k − 1 + s⁻²)/k²`, from `D_ij = d g_i/g_j` with Gram matrices in proportion to g = (s², 1, …, 1).

    Parameters
    ----------
    d, k : int
        Columns, partitions.
    scale : float
        s, positive.

    Returns
    -------
    float
        D, which is d for s = 1 and k = 1.
    """
    require_count("d", d)
    require_count("k", k)
    if not 0 < scale < float("inf"):
        raise InputError(f"scale is {scale}: it must be positive and finite.")
    if k == 1:
        return float(d)
    return d * (k - 1 + scale**2) * (k - 1 + scale**-2) / k**2
