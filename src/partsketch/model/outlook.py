"""What a fit would lose with other numbers of partitions and other sketch sizes, and how unlike its partitions are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class LossPoint:
    """Expected excess loss of the methods that are not exact, for one number of partitions and one sketch size.

    Attributes
    ----------
    partitions, sketch_size
        k and m.
    whole, partition, stack, average
        Excess loss of each method; None where it is infinite or nothing is known.
    basis
        How much of these partitions is known: "exact" summaries, "estimated" from sketches, "extrapolated" to more
        partitions than there are, or "assumed" (Gaussian rows, dealt out at random).
    """

    partitions: int
    sketch_size: int
    whole: float | None
    partition: float | None
    stack: float | None
    average: float | None
    basis: str


@dataclass(frozen=True)
class TargetOutlook:
    """The curves of one target: over the number of partitions, and over the sketch size."""

    over_partitions: tuple[LossPoint, ...]
    over_sizes: tuple[LossPoint, ...]


@dataclass(frozen=True)
class Outlook:
    """What is known beyond the fit itself.

    Attributes
    ----------
    divergences
        `D_ij = tr(G_i G_j⁻¹)`, k × k; None when `divergences_reason` says why.
    divergences_are_exact
        Whether they come from exact summaries; otherwise they are estimated from sketches.
    divergences_reason
        Why there are none; empty when there are.
    targets
        One entry per target; empty when `reason` says why.
    reason
        Why there are no curves.
    """

    divergences: tuple[tuple[float, ...], ...] | None
    divergences_are_exact: bool
    divergences_reason: str
    targets: tuple[TargetOutlook, ...]
    reason: str

    @classmethod
    def nothing(cls, reason: str) -> Outlook:
        """Return an outlook that knows nothing, for this reason."""
        return cls(None, False, reason, (), reason)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Settled:
    """An outlook that is known already, in the place of one that must be worked out."""

    outlook: Outlook

    def __call__(self) -> Outlook:
        """Return it."""
        return self.outlook
