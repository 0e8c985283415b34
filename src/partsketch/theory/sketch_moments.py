"""Unbiased estimates of what the formulas need, from the sketches alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.linalg.helpers import shared_map
from partsketch.common.sketch_law import SketchLaw
from partsketch.theory.approximations import law_of, noise_factor, rotation_rows
from partsketch.theory.arguments import FloatArray, require_sketch_size
from partsketch.theory.moments import PartitionMoments, require_full_rank, triangular
from partsketch.theory.turned_grams import parts_of


@dataclass(frozen=True, eq=False)
class SketchMoments:
    """Estimates from the sketches `Z_i = S_i [X_i y_i]` of all partitions (Extension of Claim 4.5).

    With `A_i` the Gram matrix of the features of `Z_i`, of rank r_i, and `ρ_i` the residual sum of squares of its fit,
    all of `A_i`, `A_i⁺ (m − r − 1)/m` and `ρ_i m/(m − r)` are unbiased for `G_i`, `G_i⁺` and `ℓ_i`, and `ρ_i` is
    independent of `A_i`. For sketches that sample a rotation of P rows the constants are those of that law.

    Attributes
    ----------
    sketches : list of PartitionMoments
        Moments of the sketches themselves: `gram` is A_i, `solution` is θ_i, `loss` is ρ_i.
    row_counts : array of shape (k,)
        Rows p_i behind each sketch.
    sizes, ranks : arrays of shape (k,)
        Rows m_i, no more than the rotation has, and rank r_i of each sketch.
    losses : array of shape (k,)
        Estimates of ℓ_i.
    inverse_roots : sequence of arrays of shape (d, r_i)
        `H_i` with `H_i H_iᵀ` the estimate of `G_i⁺`, made when they are looked at.
    inverse_scales : array of shape (k,)
        What multiplies `A_i⁺` to give that estimate; `(m_i − r_i − 1)/m_i` for Gaussian sketches.
    noise_factors : array of shape (k,)
        `1/(m_i − r_i − 1)` for Gaussian sketches.
    sampling : array of shape (k,)
        Share of the Gaussian law's variance that remains when the rotation has finitely many rows; else 1.
    traces : array of shape (k,)
        Unbiased estimates of `tr(G G_i⁺)`.
    noise_variance : float
        `Σ ℓ̂_i/(n − Σ r_i)`, an estimate of σ².
    law : SketchLaw
        Of the sketches; for Gaussian ones the statements above are exact.
    """

    sketches: list[PartitionMoments]
    row_counts: FloatArray
    sizes: FloatArray
    ranks: FloatArray
    losses: FloatArray
    inverse_roots: Sequence[FloatArray]
    inverse_scales: FloatArray
    noise_factors: FloatArray
    sampling: FloatArray
    traces: FloatArray
    noise_variance: float
    law: SketchLaw

    @property
    def coefficients(self) -> FloatArray:
        """The fits θ_i, k × d."""
        return np.stack([part.solution for part in self.sketches])

    @property
    def residual_degrees_of_freedom(self) -> float:
        """`Σ (m_i − r_i)`, behind the estimate of the noise variance."""
        return float(np.sum(self.sizes - self.ranks))

    def require_full_rank(self) -> None:
        """Refuse singular partitions, where averages are biased and intervals would be wrong."""
        for index, part in enumerate(self.sketches):
            require_full_rank(part, index)


def read_sketch(
    sketch: ArrayLike,
    feature_columns: Sequence[int] | None = None,
    target_column: int = -1,
    free_columns: int = 0,
    source_rows: int | None = None,
) -> PartitionMoments:
    """Moments of one sketch matrix, its features and target picked by position (all but the last, and the last)."""
    matrix = np.asarray(sketch, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(f"a sketch has shape {matrix.shape}: pass a matrix with columns for features and target.")
    target = target_column % matrix.shape[1]
    features = feature_columns if feature_columns is not None else [j for j in range(matrix.shape[1]) if j != target]
    if target in features:
        raise InputError(f"target_column {target} is also among feature_columns: take it out of feature_columns.")
    picked = np.column_stack([matrix[:, list(features)], matrix[:, target]])
    return PartitionMoments(picked, matrix.shape[0], free_columns, source_rows)


def sketch_moments(
    sketches: Sequence[ArrayLike],
    row_counts: Sequence[int],
    feature_columns: Sequence[int] | None = None,
    target_column: int = -1,
    sketch: str | SketchLaw = "gaussian",
    free_columns: int = 0,
) -> SketchMoments:
    """Estimate moments of all partitions from one independent sketch of each (Extension of Claim 4.5).

    Parameters
    ----------
    sketches : sequence of arrays of shape (m_i, q)
        `S_i [X_i y_i]`, scaled so that `E SᵀS` is the identity; valid for m_i > r_i + 1.
    row_counts : sequence of int
        Rows p_i of each partition.
    feature_columns : sequence of int, optional
        Positions of the features; all but the target by default.
    target_column : int
        Position of the target.
    sketch : str or SketchLaw
        Kind of sketch, as in `rotation_rows`; exact for "gaussian", approximate otherwise.
    free_columns : int
        How many leading columns do not count in the norm of solutions of singular partitions.

    Returns
    -------
    SketchMoments
        All that the certificate, the covariances and the heterogeneity test use.
    """
    if len(sketches) == 0 or len(sketches) != len(row_counts):
        raise InputError(f"{len(sketches)} sketches came with {len(row_counts)} row_counts: pass one count per sketch.")
    parts = [
        read_sketch(matrix, feature_columns, target_column, free_columns, int(count))
        for matrix, count in zip(sketches, row_counts, strict=True)
    ]
    return moments_of_parts(parts, row_counts, sketch)


def moments_of_parts(
    parts: Sequence[PartitionMoments], row_counts: Sequence[int], sketch: str | SketchLaw
) -> SketchMoments:
    """Do as `sketch_moments` with sketches that have been read."""
    ranks = np.array([float(part.rank) for part in parts])
    counts = np.asarray(row_counts, dtype=np.float64)
    rotations = np.array([rotation_rows(sketch, int(count)) for count in counts])
    # A sketch with more rows than its rotation holds all of them, and zeros.
    sizes = np.minimum([float(part.row_count) for part in parts], rotations)
    for index, (part, rotation) in enumerate(zip(parts, rotations, strict=True)):
        # A sketch with no more rows than its rank does not show the rank of its partition: assume all columns.
        rank = part.columns if part.rank == part.row_count else part.rank
        require_sketch_size(part.row_count, rank, index)
        if rotation <= part.rank + 1:
            raise InputError(
                f"partition {index} has too few rows to show its noise: {int(counts[index])} of rank {part.rank}."
            )
    if counts.sum() <= ranks.sum():
        raise InputError(
            f"{counts.sum():g} rows leave nothing to estimate the noise from after ranks that sum to {ranks.sum():g}: "
            "use fewer partitions."
        )
    # With P rows in the rotation, m/P times the sketched Gram matrix is a matrix beta variate; P → ∞ is Wishart's law.
    finite = np.isfinite(rotations)
    shrink = np.where(finite, (rotations - ranks) / np.where(finite, rotations, 1.0), 1.0)
    widen = np.where(finite, np.where(finite, rotations, 1.0) / (rotations - ranks - 1), 1.0)
    losses = np.array([part.loss for part in parts]) * sizes / (sizes - ranks) * shrink
    scales = (sizes - ranks - 1) / sizes * widen
    inverse_roots = _InverseRoots(parts, np.sqrt(scales))
    noise = [noise_factor(m, int(r), rotation) for m, r, rotation in zip(sizes, ranks, rotations, strict=True)]
    sampling = np.where(finite, (rotations - sizes) / np.where(finite, rotations - ranks, 1.0), 1.0)
    return SketchMoments(
        sketches=list(parts),
        row_counts=counts,
        sizes=sizes,
        ranks=ranks,
        losses=losses,
        inverse_roots=inverse_roots,
        inverse_scales=scales,
        noise_factors=np.array(noise),
        sampling=np.maximum(sampling, 0.0),
        traces=_traces(parts, inverse_roots, ranks),
        noise_variance=float(losses.sum() / (counts.sum() - ranks.sum())),
        law=law_of(sketch),
    )


class _InverseRoots(Sequence[FloatArray]):
    """Inverse roots of sketches times a number each: thousands of them would be a second copy."""

    def __init__(self, parts: Sequence[PartitionMoments], scales: FloatArray) -> None:
        self._parts, self._scales = parts, scales

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, number: int) -> FloatArray: ...

    @overload
    def __getitem__(self, number: slice) -> Sequence[FloatArray]: ...

    def __getitem__(self, number: int | slice) -> FloatArray | Sequence[FloatArray]:
        if isinstance(number, slice):
            return _InverseRoots(self._parts[number], self._scales[number])
        return np.asarray(self._parts[number].inverse_root * self._scales[number])


def _traces(parts: Sequence[PartitionMoments], inverse_roots: Sequence[FloatArray], ranks: FloatArray) -> FloatArray:
    total = triangular(np.vstack([part.root for part in parts]))
    traces = np.empty(len(parts))

    def trace(some: slice) -> None:
        for i in range(len(parts))[some]:
            inverse = inverse_roots[i]
            # A sketch knows its own trace exactly, r_i; estimating that part would only add noise and bias.
            own = np.sum((parts[i].root @ inverse) ** 2)
            traces[i] = ranks[i] + np.sum((total @ inverse) ** 2) - own

    shared_map(trace, parts_of(len(parts), total.shape[-1]))
    return traces
