"""What a diagnosis says: frozen data that prints as tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from partsketch.common.shown import ShownAsText
from partsketch.theory.heterogeneity import Heterogeneity


@dataclass(frozen=True)
class PartitionDiagnosis:
    """One partition.

    Attributes
    ----------
    name, row_count, rank, condition
        Rank and condition number are those of its columns scaled to unit length.
    burg_divergence
        Mean Burg divergence to the other partitions per column, sizes evened out; None when a partition is singular.
    distance
        Median over the others of (tr(G_i G_j⁺) + tr(G_j G_i⁺))/2d − 1, sizes evened out: zero for equal partitions.
    stands_apart
        Whether the distance is far beyond that of random partitions.
    """

    name: str
    row_count: int
    rank: int
    condition: float
    burg_divergence: float | None
    distance: float
    stands_apart: bool


@dataclass(frozen=True)
class InfluentialRow:
    """A row that decides a direction in its partition.

    Attributes
    ----------
    row, partition
        Its number in the data, counted from 0, and its partition.
    leverage
        In its own partition, at most 1.
    relative_leverage
        Mean over the other partitions of x G_j⁺ xᵀ, its share of D_ij.
    column, value, deviations
        The feature furthest from its mean, its value there, and how many standard deviations away that is.
    """

    row: int
    partition: str
    leverage: float
    relative_leverage: float
    column: str
    value: float
    deviations: float

    @property
    def outweighs(self) -> bool:
        """Whether it weighs as much as all rows of another partition together, on average, in some direction."""
        return self.relative_leverage >= 1


@dataclass(frozen=True)
class MethodLoss:
    """What a method would lose on these partitions, as a part of the minimal loss; None when it is not known.

    `kind` is "exact" or "approximate"; losses of sketches are expected over sketches. `shuffled` is the same for one
    random partitioning of the same rows.
    """

    method: str
    sketch_size: int | None
    excess: float | None
    shuffled: float | None
    kind: str


@dataclass(frozen=True)
class CurvePoint:
    """What methods would lose with this many partitions, as parts of the minimal loss."""

    partitions: int
    average: float | None
    partition: float | None
    stack: float | None
    whole: float | None


@dataclass(frozen=True, repr=False)
class Diagnosis(ShownAsText):
    """How a partitioning is, from one pass over the rows.

    Attributes
    ----------
    row_count, columns, rank, condition
        Of all rows together; columns with the intercept.
    target
        Name of the target.
    aliased
        Dependent columns, each with those it depends on.
    partitions
        One entry per partition.
    divergence_matrix
        D_ij = tr(G_i G_j⁺).
    divergence_ratio
        D/d: one for equal partitions.
    random_divergence_ratio
        Its expectation for Gaussian rows in random partitions of these sizes; None when there are too few rows.
    shuffled_divergence_ratio
        D/d of one random partitioning of these very rows; None when a random partition would be singular.
    ratio_without_rows, ratio_without_heavy_rows
        D/d without the influential rows, and without those alone that outweigh another partition; None when there are
        none, or when a partition without them, or already with them, does not determine all coefficients.
    burg_divergence
        Mean Burg divergence between partitions; None when one is singular.
    influential_rows
        Every row whose leverage in its own partition is at least 0.1 and three times the average there, largest
        relative leverage first.
    heterogeneity
        Test of whether partitions share their coefficients, beside random partitions of the same rows, or why there is
        none; None when there is one partition.
    losses
        What each method would lose.
    curve
        The same for fewer partitions, neighbours merged.
    advice
        What to do, a sentence each.
    """

    data: str
    target: str
    row_count: int
    columns: int
    rank: int
    condition: float
    aliased: tuple[tuple[str, tuple[str, ...]], ...]
    partitions: tuple[PartitionDiagnosis, ...]
    divergence_matrix: tuple[tuple[float, ...], ...]
    divergence_ratio: float
    random_divergence_ratio: float | None
    shuffled_divergence_ratio: float | None
    ratio_without_rows: float | None
    ratio_without_heavy_rows: float | None
    burg_divergence: float | None
    influential_rows: tuple[InfluentialRow, ...]
    heterogeneity: Heterogeneity | None
    losses: tuple[MethodLoss, ...]
    curve: tuple[CurvePoint, ...]
    advice: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        from partsketch.planner.diagnosis.table import diagnosis_text

        return diagnosis_text(self)
