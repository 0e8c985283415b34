"""Moments of thousands of partitions at once, where doubles are enough for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solve import RANK_TOLERANCE, SAFE_INFLATION
from partsketch.theory.arguments import FloatArray
from partsketch.theory.moments import PartitionMoments

#: Of fewer partitions each is done by itself.
_MANY = 64
#: Numbers that are worked on at once.
_AT_ONCE = 2**21
#: Part of a column that must be left of it beside the free ones, for doubles to judge it.
_LEFT = 1e-9


def many_moments(factors: Sequence[FloatArray], row_counts: Sequence[int], free: int = 0) -> list[PartitionMoments]:
    """Return the moments of partitions, given matrices with their Gram matrices, the target in the last column.

    Those of which no column nearly depends on others are done together, the others one by one; what comes out is the
    same but for rounding.
    """
    shapes = {factor.shape for factor in factors}
    height, width = next(iter(shapes)) if len(shapes) == 1 else (0, 0)
    if len(factors) < _MANY or width < 2 or height < width - 1:
        return [PartitionMoments(factor, rows, free) for factor, rows in zip(factors, row_counts, strict=True)]
    step = max(1, _AT_ONCE // (height * width))
    found: list[PartitionMoments] = []
    for begin in range(0, len(factors), step):
        found += _together(np.stack(factors[begin : begin + step]), row_counts[begin : begin + step], free)
    return found


def _together(factors: FloatArray, row_counts: Sequence[int], free: int) -> list[PartitionMoments]:
    width = factors.shape[2] - 1
    safe = np.asarray(np.isfinite(factors).all(axis=(1, 2)))
    triangles = np.asarray(np.linalg.qr(np.where(safe[:, None, None], factors, 0.0), mode="r"), dtype=np.float64)
    roots = triangles[:, :width, :width]
    with np.errstate(all="ignore"):
        norms = np.linalg.norm(roots, axis=1)
        # Beside the free columns, as the solver of one partition judges it.
        inner = np.sqrt(np.square(roots[:, free:]).sum(axis=1))
        diagonal = np.abs(np.diagonal(roots, axis1=1, axis2=2))
        safe &= (inner[:, free:] > _LEFT * norms[:, free:]).all(axis=1) & (diagonal > 0).all(axis=1)
        # Columns of norm one, so that what is large is so for what columns are to one another, not for their units.
        units = np.where(safe[:, None], 1 / np.maximum(norms, 1e-300), 1.0)
        scaled = np.where(safe[:, None, None], roots * units[:, None, :], np.eye(width))
        inverses = np.linalg.inv(scaled)
        lengths = np.where(np.arange(width) < free, np.abs(np.diagonal(scaled, axis1=1, axis2=2)), inner * units)
        sizes = np.square(lengths) * np.square(inverses[:, :, free:]).sum(axis=2)
        safe &= (sizes[:, free:].max(axis=1, initial=0.0) <= min(SAFE_INFLATION, RANK_TOLERANCE**-2)) & np.isfinite(
            sizes
        ).all(axis=1)
    conditions = _conditions(scaled[:, free:, free:], safe)
    targets = triangles[:, :, width]
    solutions = np.einsum("kij,kj->ki", inverses, targets[:, :width])
    missed = targets[:, :width] - np.einsum("kij,kj->ki", scaled, solutions)
    losses = np.square(targets[:, width:]).sum(axis=1) + np.square(missed).sum(axis=1)
    made = []
    for number, rows in enumerate(row_counts):
        if not safe[number]:
            made.append(PartitionMoments(factors[number], rows, free))
            continue
        factor = factors[number] if factors.shape[1] <= width + 1 else triangles[number]
        inverse_root, solution = inverses[number] * units[number][:, None], solutions[number] * units[number]
        known = inverse_root, solution, float(losses[number]), width, conditions[number]
        made.append(PartitionMoments.solved(factor, rows, free, *known))
    return made


def _conditions(inner: FloatArray, safe: NDArray[np.bool_]) -> list[float]:
    """Return the condition numbers of triangles whose columns are scaled to norm one."""
    if not inner.shape[1]:
        return [1.0] * len(inner)
    lengths = np.linalg.norm(inner, axis=1)
    scaled = np.where(
        safe[:, None, None], inner / np.where(lengths > 0, lengths, 1.0)[:, None, :], np.eye(inner.shape[1])
    )
    values = np.linalg.svd(scaled, compute_uv=False)
    ratios: list[float] = (values[:, 0] / values[:, -1]).tolist()
    return ratios
