"""What the formulas need to know of a partition: Gram matrix, fit and minimal loss, found without squaring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from partsketch.common.errors import InputError
from partsketch.common.linalg.solution import Solution
from partsketch.common.linalg.solve import sketch_rounding, solve_least_squares, tall_factor
from partsketch.theory.arguments import FloatArray


def triangular(rows: FloatArray) -> FloatArray:
    """Triangular factor of a matrix with more rows than columns; any other matrix as it is."""
    return rows if rows.shape[0] <= rows.shape[1] else tall_factor(rows)


#: Size of a Gram matrix times that of its inverse up to which entries of both may be multiplied: it loses three digits.
_WELL_SPANNED = 1e3


@dataclass(frozen=True, eq=False)
class PartitionMoments:
    """Second moments of the rows of one partition, rank-aware.

    Built from any matrix `Z` with `ZᵀZ = [X y]ᵀ[X y]`: the rows themselves, their triangular factor, or, where the
    moments of a sketch are meant, the sketch. Nothing is computed through the normal equations.

    Parameters
    ----------
    factor : array of shape (rows, d + 1)
        `Z`, the target in the last column; reduced to a triangle when it has more rows than columns.
    row_count : int
        Number of rows behind the factor.
    free_columns : int
        How many leading columns (the intercept) do not count in the norm that picks a solution when `rank < d`.
    source_rows : int, optional
        Rows whose rounding the factor carries, when it is a sketch of more rows than it has.

    Attributes
    ----------
    root : array of shape (rows, d)
        Feature part of the factor; `rootᵀ root` is the Gram matrix.
    inverse_root : array of shape (d, rank)
        `H` with `H Hᵀ` the pseudo-inverse of the Gram matrix, or with free columns the symmetric generalised inverse
        that belongs to the solution.
    solution : array of shape (d,)
        Exact least-squares coefficients, of minimum norm (of all but the free columns) when `rank < d`.
    loss : float
        Minimal squared loss `ℓ = ‖X a − y‖²`.
    rank : int
        Rank of `X`: columns of which those before them leave more than rounding.
    condition : float
        Condition number of `X` after its free columns, scaled to norm one.
    """

    factor: FloatArray
    row_count: int
    free_columns: int = 0
    source_rows: int | None = None
    root: FloatArray = field(init=False)
    inverse_root: FloatArray = field(init=False)
    solution: FloatArray = field(init=False)
    loss: float = field(init=False)
    rank: int = field(init=False)
    condition: float = field(init=False)

    def __post_init__(self) -> None:
        factor = np.asarray(self.factor, dtype=np.float64)
        if factor.ndim != 2 or factor.shape[1] < 2 or factor.shape[0] < 1:
            raise InputError(
                f"a factor has shape {factor.shape}: pass at least one row, and columns for features and target."
            )
        if not np.all(np.isfinite(factor)):
            raise InputError("a factor or partition holds missing or infinite values: remove or impute those rows.")
        factor = triangular(factor)
        root = factor[:, :-1]
        names = tuple(str(column) for column in range(root.shape[1]))
        rounding = 0.0 if self.source_rows is None else sketch_rounding(self.source_rows)
        solution = solve_least_squares(factor, names, 1, self.free_columns, rounding)
        rank, inverse_root = solution.rank, solution.inverse_root
        loss = float(solution.residual_sums[0]) if self.row_count > rank else 0.0
        values = {"factor": factor, "root": root, "inverse_root": inverse_root, "rank": rank, "loss": loss}
        values["condition"] = float(solution.condition)
        for name, value in {**values, "solution": solution.coefficients[:, 0]}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_solution(
        cls, factor: FloatArray, row_count: int, free_columns: int, solution: Solution, target: int
    ) -> PartitionMoments:
        """Moments from a factor and a solution of it: of one of its targets, the last column of the factor."""
        found = solution.inverse_root, solution.coefficients[:, target], float(solution.residual_sums[target])
        return cls.solved(factor, row_count, free_columns, *found, solution.rank, float(solution.condition))

    @classmethod
    def solved(
        cls,
        factor: FloatArray,
        row_count: int,
        free_columns: int,
        inverse_root: FloatArray,
        solution: FloatArray,
        loss: float,
        rank: int,
        condition: float,
    ) -> PartitionMoments:
        """Moments of which all is known that is otherwise found from the factor."""
        moments = object.__new__(cls)
        moments.__dict__.update(
            factor=factor,
            row_count=row_count,
            free_columns=free_columns,
            source_rows=None,
            root=factor[:, :-1],
            inverse_root=inverse_root,
            solution=solution,
            loss=loss if row_count > rank else 0.0,
            rank=rank,
            condition=condition,
        )
        return moments

    @classmethod
    def from_rows(cls, X: ArrayLike, y: ArrayLike) -> PartitionMoments:
        """Moments of the rows `X` (p × d) with targets `y` (p)."""
        features, target = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        if features.ndim != 2 or target.shape != (features.shape[0],):
            raise InputError(
                f"X has shape {features.shape} and y {target.shape}: pass a table X and one target per row of X."
            )
        return cls(np.column_stack([features, target]), features.shape[0])

    @classmethod
    def from_triangular(cls, R: ArrayLike, row_count: int) -> PartitionMoments:
        """Moments from any matrix with the same Gram matrix as `[X y]`, such as its triangular factor."""
        return cls(np.asarray(R, dtype=np.float64), row_count)

    @property
    def columns(self) -> int:
        """Number of features, d."""
        return int(self.root.shape[1])

    @property
    def gram(self) -> FloatArray:
        """`XᵀX`, d × d."""
        product: FloatArray = self.root.T @ self.root
        return product

    @property
    def inverse_gram(self) -> FloatArray:
        """Inverse of `XᵀX`, or its pseudo-inverse when the rank is below d."""
        product: FloatArray = self.inverse_root @ self.inverse_root.T
        return product

    @property
    def projection(self) -> FloatArray:
        """What a fit to these rows shows of a coefficient vector: `G⁺G`, the identity at full rank."""
        product: FloatArray = self.inverse_root @ (self.root @ self.inverse_root).T @ self.root
        return product


PartitionLike: TypeAlias = PartitionMoments | tuple[ArrayLike, ArrayLike]


def moments_of(partitions: Sequence[PartitionLike]) -> list[PartitionMoments]:
    """Moments of each partition, given as moments or as a pair `(X_i, y_i)`."""
    if len(partitions) == 0:
        raise InputError("partitions is empty: pass at least one partition.")
    moments = [part if isinstance(part, PartitionMoments) else PartitionMoments.from_rows(*part) for part in partitions]
    widths = sorted({part.columns for part in moments})
    if len(widths) > 1:
        raise InputError(f"partitions have {widths} feature columns: give every partition the same columns.")
    return moments


def pooled_moments(partitions: Sequence[PartitionLike]) -> PartitionMoments:
    """Moments of all rows together: the stacked factors, factored again."""
    moments = moments_of(partitions)
    stacked = np.vstack([part.factor for part in moments])
    return PartitionMoments(stacked, sum(part.row_count for part in moments), moments[0].free_columns)


def dependent_columns(moments: PartitionMoments) -> list[int]:
    """Return the columns that depend on the others; none where the rank is full."""
    if moments.rank == moments.columns:
        return []
    from scipy.linalg import qr

    lengths = np.linalg.norm(moments.root, axis=0)
    _, pivots = qr(moments.root / np.where(lengths > 0, lengths, 1.0), mode="r", pivoting=True)
    return sorted(int(column) for column in pivots[moments.rank :])


def require_full_rank(moments: PartitionMoments, partition: int | None, names: Sequence[str] | None = None) -> None:
    """Refuse a singular Gram matrix, naming the partition and the columns that depend on the others."""
    dependent = dependent_columns(moments)
    if not dependent:
        return
    labels = ", ".join(str(column) if names is None else names[column] for column in dependent)
    where = "the data" if partition is None else f"partition {partition}"
    raise InputError(
        f"{where} has a singular Gram matrix (rank {moments.rank} of {moments.columns}; columns {labels} depend on the "
        "others): drop those columns or merge partitions, or use partition_excess_loss, which accepts any rank."
    )


def trace_products(moments: Sequence[PartitionMoments]) -> FloatArray:
    """`tr(G_i G_j⁺)` for all pairs, k × k: of sums that may cancel as squared lengths of `root_i @ inverse_root_j`."""
    inverses = np.stack([part.inverse_root @ part.inverse_root.T for part in moments])
    grams = np.stack([part.root.T @ part.root for part in moments])
    # Of matrices whose inverse is exact to almost all digits the product of entries is too.
    traces = grams.reshape(len(moments), -1) @ inverses.reshape(len(moments), -1).T
    spans = np.linalg.norm(grams, axis=(1, 2)) * np.linalg.norm(inverses, axis=(1, 2))
    rows = np.cumsum([0] + [part.root.shape[0] for part in moments])
    # Side by side, so that sums over the few columns run along the many rows.
    stacked = np.hstack([part.root.T for part in moments])
    full = np.array([part.rank == part.columns for part in moments])
    for j in np.flatnonzero(~((spans < _WELL_SPANNED) & full)).tolist():
        squares = np.sum((moments[j].inverse_root.T @ stacked) ** 2, axis=0)
        traces[:, j] = np.add.reduceat(squares, rows[:-1])
    np.fill_diagonal(traces, [part.rank for part in moments])
    return traces
