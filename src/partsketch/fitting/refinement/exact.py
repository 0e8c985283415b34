"""Exact least squares without a factor of the rows: a sketch or the column norms precondition, passes refine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from partsketch.common.linalg.solution import Alias, Solution
from partsketch.engines.base import Engine
from partsketch.engines.gather import Gathered, gather
from partsketch.engines.local import LocalEngine, usable_cores
from partsketch.fitting.refinement.column_sketch import sketch_by_columns
from partsketch.fitting.refinement.conditioners import DiagonalConditioner, TriangularConditioner
from partsketch.fitting.refinement.iteration import PROBE_LEFT, Iterated, iterate
from partsketch.fitting.refinement.passes import Products, RowPasses
from partsketch.sketches.base import SketchSpecification
from partsketch.sources.base import Source
from partsketch.sources.memory.arrays import ArraySource
from partsketch.summaries.partitions import Partitioning
from partsketch.summaries.tasks import SummaryRequest

FloatArray = NDArray[np.float64]

#: Rows of the sketch per column: eight make a step gain a factor of √8, four cost half as much to factor.
_DENSE_SKETCH, _SPARSE_SKETCH = 8, 4

#: Non-zeros per row of the sketch that preconditions: fewer than for inference, since passes mend what it misses.
_SPARSITY = 4

#: Rows that are sketched apart from the others: a sketch is large, and so few should be added up.
_SEGMENT_ROWS = 2**18

#: Condition number beyond which a factor of all rows, which finds dependent columns, is the better judge.
LARGEST_CONDITION = 1e13

#: Steps with the column norms alone before a sketch is made.
_PLAIN_STEPS = 80

_SKETCHED_STEPS = 60

#: Sums of squares beyond which products overflow; the factor knows what to say of such columns.
_LARGEST_SQUARES = 1e150


@dataclass(frozen=True, eq=False)
class Refined:
    """An exact solution, what was gathered of the rows (no summaries), and how it went."""

    solution: Solution
    gathered: Gathered
    reason: str


class Refinement:
    """Refines to the exact solution of one regression."""

    def __init__(
        self, source: Source, partitioning: Partitioning, fit_intercept: bool, engine: Engine, seed: int
    ) -> None:
        self._source, self._partitioning, self._engine = source, partitioning, engine
        self._intercept, self._seed = fit_intercept, seed
        self._columns = int(fit_intercept) + len(source.feature_names)
        self._targets = len(source.target_names)
        self._rows = RowPasses(source, partitioning, fit_intercept, engine, source.stored_entries is not None)

    def dense(self) -> Refined | None:
        """Precondition by a sketch; None when its columns are as good as dependent."""
        return self._sketched(_DENSE_SKETCH, None, ())

    def sparse(self) -> Refined | None:
        """Precondition by column norms, and by a sketch if that is not enough; None when columns are dependent.

        A random probe rides along in the same passes: a gradient with a share in every direction of the coefficients.
        Steps take nothing from its share in directions in which no row has anything, so what is left of it shows
        dependent columns, and slow convergence, which the targets need not show.
        """
        zeros = np.zeros((self._columns, self._targets))
        first = self._rows.multiply(zeros, with_targets=True, with_scales=True)
        if not first.scales.max() < _LARGEST_SQUARES:
            return None
        conditioner = DiagonalConditioner(first.scales, self._intercept)
        aliased = tuple(
            Alias(name, ()) for name, zero in zip(self._feature_columns(), conditioner.zero, strict=True) if zero
        )
        probe = np.random.default_rng(self._seed).standard_normal((self._columns, 1)) * ~conditioner.zero[:, None]
        refined = iterate(self._rows, conditioner, zeros, _PLAIN_STEPS, first, probe)
        if refined.converged and refined.probe_left <= PROBE_LEFT:
            how = f"column norms and {self._rows.passes} passes over the stored entries led to rounding"
            solution = self._solution(refined, aliased, float("nan"), None, conditioner.norms)
            return Refined(solution, _as_gathered(first), how)
        return self._sketched(_SPARSE_SKETCH, refined.coefficients, aliased)

    def _feature_columns(self) -> tuple[str, ...]:
        from partsketch.summaries.tasks import INTERCEPT

        return ((INTERCEPT,) if self._intercept else ()) + self._source.feature_names

    def _sketched(self, rows_per_column: int, start: FloatArray | None, aliased: tuple[Alias, ...]) -> Refined | None:
        from partsketch.common.linalg.blas import triangular_inverse
        from partsketch.fitting.refinement.tall_factor import tall_factor

        size = rows_per_column * self._columns
        sketch = self._sketch(SketchSpecification("sparse_sign", size, self._seed, _SPARSITY))
        factor = tall_factor(sketch, usable_cores())
        conditioner = TriangularConditioner(np.asfortranarray(factor[: self._columns, : self._columns]))
        if not conditioner.condition <= LARGEST_CONDITION:
            return None
        if start is None:
            start = conditioner.divide(factor[: self._columns, self._columns :])
        refined = iterate(self._rows, conditioner, start, _SKETCHED_STEPS)
        if not refined.converged:
            return None
        # The inverse of a sketched Gram matrix is too large by this factor on average.
        shrink = np.sqrt((size - self._columns - 1) / size)
        inverse = triangular_inverse(conditioner.factor) * shrink
        solution = self._solution(refined, aliased, conditioner.condition, inverse, conditioner.norms)
        how = (
            f"a sparse sign sketch of {size} rows made the columns almost orthogonal, and {self._rows.passes} passes "
            f"led to rounding; standard errors come from the sketch and are known to about "
            f"{100 / np.sqrt(2 * (size - self._columns)):.1f}%"
        )
        return Refined(solution, _as_gathered(refined.last), how)

    def _sketch(self, specification: SketchSpecification) -> FloatArray:
        """Return the sketch of all rows; columns are worked on apart from one another where they lie in memory."""
        source, engine = self._source, self._engine
        whole = self._partitioning.bounds == (0, source.row_count)
        if isinstance(engine, LocalEngine) and isinstance(source, ArraySource) and source.has_rows_of_doubles and whole:
            sketch = sketch_by_columns(source, self._intercept, specification, _SEGMENT_ROWS, engine.threads)
            if np.isfinite(sketch).all():
                return sketch
        # Also tells which value is not finite.
        request = SummaryRequest(specification, self._partitioning, self._intercept, segment_rows=_SEGMENT_ROWS)
        return gather(source, request, engine).summaries[0].matrix

    def _solution(
        self,
        refined: Iterated,
        aliased: tuple[Alias, ...],
        condition: float,
        inverse_root: FloatArray | None,
        column_norms: FloatArray,
    ) -> Solution:
        return Solution(
            coefficients=refined.coefficients,
            residual_sums=refined.residual_sums,
            rank=self._columns - len(aliased),
            condition=condition,
            tolerance=1.0 / LARGEST_CONDITION,
            aliased=aliased,
            inverse_root=np.empty((self._columns, 0)) if inverse_root is None else inverse_root,
            inverse="unknown" if inverse_root is None else "estimated",
            total_sums=self._total_sums(refined.last),
            row_count=refined.last.whole.row_count,
            column_norms=column_norms,
        )

    def _total_sums(self, products: Products) -> FloatArray:
        """Return the sums of squares of the targets, around their means with an intercept."""
        sums, squares = products.target_sums
        if not self._intercept:
            return np.asarray(squares)
        weight = products.whole.weight_sum
        means = sums / weight
        if (weight * means**2 < 100 * (squares - weight * means**2)).all():
            return np.asarray(squares - weight * means**2)
        # Far from zero the difference would have lost its digits: one more pass around the means.
        around = np.zeros((self._columns, self._targets))
        around[0] = means
        centred = self._rows.multiply(around, with_targets=True)
        return np.asarray(centred.residual_sums - centred.gradients[0] ** 2 / weight)


def _as_gathered(products: Products) -> Gathered:
    whole = products.whole
    return Gathered(
        summaries=(),
        names=("all",),
        row_counts=(whole.row_count,),
        weight_sums=(whole.weight_sum,),
        target_range=whole.target_range,
        rows_dropped=products.rows_dropped,
    )
