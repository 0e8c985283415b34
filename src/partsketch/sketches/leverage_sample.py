"""Sample of m rows by approximate leverage scores, in two passes over the rows.

The first pass makes a sparse sign sketch of each partition; its triangular factor R turns a row a into a score close to
its leverage, ‖a R⁻¹‖², projected on a few random directions when there are many columns. A tenth of the probability is
spread evenly, so that rows with a large residual and little leverage are not missed.

The second pass is priority sampling (Duffield, Lund and Thorup, J. ACM 2007): a row's priority is its score divided by
a uniform number; the m rows of highest priority are kept, and the next one's priority τ makes their weights
max(score, τ)/score. The weighted sum over the sample of anything is unbiased, whatever the scores: `E[SᵀS] = I`.
"""

from __future__ import annotations

import numpy as np

from partsketch.common.errors import InputError
from partsketch.common.linalg.solve import RANK_TOLERANCE
from partsketch.common.sketch_law import LEVERAGE_SAMPLE
from partsketch.sketches.accumulator import Accumulator, Columns, FloatArray, IntArray, Stream
from partsketch.sketches.base import SketchSpecification, usual_size
from partsketch.sketches.cost import SketchCost
from partsketch.sketches.random import derive_key, fill_normals, random_words
from partsketch.sketches.row_sample import ORDER_COLUMNS, SampleAccumulator, SampleSketch

#: Share of the probability that does not depend on leverage.
_EVEN_SHARE = 0.1

#: Random directions that a row is projected on: scores are within a third of the leverage for two rows out of three.
_DIRECTIONS = 16


class LeverageAccumulator(SampleAccumulator):
    """Orders rows by minus their priority; the second order column is the score."""

    def __init__(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> None:
        assert specification.size is not None
        assert specification.seed is not None
        assert stream.guide is not None
        super().__init__(specification.size + 1, columns)
        self._key, self._stream = derive_key(specification.seed, specification.kind), stream.number
        self._projection, self._floor = np.ascontiguousarray(stream.guide[:-1]), float(stream.guide[-1, 0])

    def order(self, tile: FloatArray, row_numbers: IntArray) -> FloatArray:
        """Return minus the priority, and the score, of each row."""
        features = tile[: self._projection.shape[0]]
        scores = np.sum((self._projection.T @ features) ** 2, axis=0) + self._floor
        words = random_words(self._key, self._stream, row_numbers) >> np.uint64(11)
        return np.stack([-scores / ((words.astype(np.float64) + 0.5) / 2.0**53), scores])


class LeverageSample(SampleSketch):
    """m rows drawn by leverage, weighted so that every sum is unbiased."""

    kind = "leverage_sample"
    law = LEVERAGE_SAMPLE
    cost = SketchCost(lambda m, q, p: q * (q + 1) + 2 * q * q, passes=2, by_tile=True)

    def accumulator(self, specification: SketchSpecification, stream: Stream, columns: Columns) -> Accumulator:
        """Return an accumulator that keeps m + 1 rows."""
        return LeverageAccumulator(specification, stream, columns)

    def scaled(self, specification: SketchSpecification, kept: FloatArray, row_count: int) -> FloatArray:
        """Multiply by √(max(score, τ)/score), τ being the priority of the first row that is not in the sample."""
        sample, next_one = kept[:-1], kept[-1]
        threshold = -next_one[0] if np.isfinite(next_one[0]) else 0.0
        roots = np.sqrt(np.maximum(1.0, threshold / sample[:, 1]))
        return np.ascontiguousarray(sample[:, ORDER_COLUMNS:] * roots[:, None])

    def first_pass(self, specification: SketchSpecification, columns: int) -> SketchSpecification | None:
        """Return a sparse sign sketch of four rows per column."""
        return SketchSpecification("sparse_sign", usual_size(columns), specification.seed)

    def guide(self, specification: SketchSpecification, features: FloatArray, row_count: int) -> FloatArray:
        """Return the projection that turns a row into the root of its score, and below it the even share of a row."""
        assert specification.seed is not None
        _, singular, rotation = np.linalg.svd(features, full_matrices=False)
        # Directions that are zero up to rounding have no leverage.
        rank = int(np.sum(singular > singular[0] * RANK_TOLERANCE)) if row_count else 0
        projection = rotation[:rank].T / singular[:rank]
        if rank > _DIRECTIONS:
            normals = np.empty((_DIRECTIONS, rank))
            key = derive_key(specification.seed, "leverage_directions")
            fill_normals(key, 0, np.arange(rank, dtype=np.int64), 1.0 / np.sqrt(_DIRECTIONS), normals)
            projection = projection @ normals.T
        projection = projection * np.sqrt((1.0 - _EVEN_SHARE) / max(rank, 1))
        last = np.full((1, projection.shape[1]), _EVEN_SHARE / max(row_count, 1))
        return np.concatenate([projection, last]) if rank else np.array([[0.0]] * features.shape[1] + [[1.0]])

    def chances(self, size: int, row_count: int, ones: FloatArray | None) -> FloatArray:
        """Return the chances by the column of ones: a sampled row is divided by the root of its chance."""
        if size >= row_count:
            return np.ones(size)
        if ones is None:
            raise InputError(
                "a leverage_sample shows the chances of its rows by a column of ones and equal weights only: fit an "
                "intercept, without weights, or use sketch='gaussian' or 'srht'."
            )
        return np.asarray(np.minimum(1.0, 1.0 / ones**2))
